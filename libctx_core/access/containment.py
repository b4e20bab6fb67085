"""Which requested resources lie in a granted boundary, asked of a trusted resolver."""

import asyncio
import concurrent.futures
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Protocol, TypeAlias, runtime_checkable

from libctx_core.access.rights import SELECTABLE, Rights, rights_from_sets
from libctx_core.access.selectors import Boundary, Contained, Resource, Selector

RESOLVER_TIMEOUT: Final = 5.0
"""Seconds an awaited answer may take before the resource is left out."""

Pair: TypeAlias = tuple[Resource, Boundary]
Question: TypeAlias = Callable[[Resource, Boundary], bool | Awaitable[bool]]


@runtime_checkable
class ContainmentResolver(Protocol):
    """Knows which resource lies in which boundary; trusted, and given no protected value."""

    def is_resource_in_boundary(self, resource: Resource, boundary: Boundary, /) -> bool | Awaitable[bool]:
        """Return exactly True if `resource` lies in `boundary`; anything else omits it."""
        ...


Containment: TypeAlias = ContainmentResolver | Question
"""A resolver object, or a function of a resource and a boundary, of either colour."""


def open_questions(ambient: Rights, requested: Rights) -> dict[Resource, tuple[Boundary, ...]]:
    """Return, for each requested resource no equal selector grants, the boundaries to ask about."""
    questions: dict[Resource, dict[Boundary, None]] = {}
    for operation in SELECTABLE:
        granted = ambient.selectors(operation)
        boundaries = sorted((selector for selector in granted if type(selector) is Boundary), key=lambda b: b.id)
        for selector in requested.selectors(operation):
            if type(selector) is Resource and selector not in granted and boundaries:
                questions.setdefault(selector, {}).update(dict.fromkeys(boundaries))
    return {resource: tuple(boundaries) for resource, boundaries in questions.items()}


def admit(ambient: Rights, requested: Rights, confirmed: Iterable[Pair], *, recheck: bool) -> Rights:
    """Intersect by value and add the resources that are confirmed to lie in a granted boundary."""
    pairs = list(confirmed)
    equal = ambient.intersect(requested)
    return rights_from_sets(
        [
            equal.selectors(operation)
            | _admitted(ambient.selectors(operation), requested.selectors(operation), pairs, recheck=recheck)
            for operation in SELECTABLE
        ],
        delegable=equal.delegable,
    )


def _admitted(
    granted: frozenset[Selector], requested: frozenset[Selector], confirmed: list[Pair], *, recheck: bool
) -> frozenset[Selector]:
    return frozenset(
        Contained(resource.id, boundary.id) if recheck else resource
        for resource, boundary in confirmed
        if resource in requested and resource not in granted and boundary in granted
    )


def resolve_rights(ambient: Rights, requested: Rights, resolver: Containment, *, recheck: bool = False) -> Rights:
    """Narrow with a resolver that answers at once; an awaitable answer is no answer."""
    confirmed = [
        (resource, boundary)
        for resource, boundaries in open_questions(ambient, requested).items()
        for boundary in boundaries
        if _ask(resolver, resource, boundary)
    ]
    return admit(ambient, requested, confirmed, recheck=recheck)


async def aresolve_rights(
    ambient: Rights,
    requested: Rights,
    resolver: Containment,
    *,
    recheck: bool = False,
    timeout: float = RESOLVER_TIMEOUT,
) -> Rights:
    """Narrow with a resolver of either colour; each pair is asked once.

    A failure or a late answer omits the resource, a cancelled caller stays cancelled. A
    plain function is called in a thread, so that it cannot hold up the event loop.
    """
    import anyio

    confirmed = []
    for resource, boundaries in open_questions(ambient, requested).items():
        for boundary in boundaries:
            with anyio.move_on_after(timeout):
                if await _aask(resolver, resource, boundary):
                    confirmed.append((resource, boundary))
    return admit(ambient, requested, confirmed, recheck=recheck)


def _question(resolver: Containment) -> Question:
    return resolver.is_resource_in_boundary if isinstance(resolver, ContainmentResolver) else resolver


def _ask(resolver: Containment, resource: Resource, boundary: Boundary) -> bool:
    try:
        answer = _question(resolver)(resource, boundary)
    except Exception:  # noqa: BLE001 - a failing resolver omits the resource
        return False
    if inspect.iscoroutine(answer):
        answer.close()
    return answer is True


async def _aask(resolver: Containment, resource: Resource, boundary: Boundary) -> bool:
    import anyio.to_thread

    ask = _question(resolver)
    try:
        answer = (
            ask(resource, boundary)
            if inspect.iscoroutinefunction(ask)
            else await anyio.to_thread.run_sync(ask, resource, boundary, abandon_on_cancel=True)
        )
        return (await answer if inspect.isawaitable(answer) else answer) is True
    except concurrent.futures.CancelledError:
        if _being_cancelled():
            raise
        return False
    except Exception:  # noqa: BLE001 - a failing resolver omits the resource
        return False


def _being_cancelled() -> bool:
    """Return whether the running asyncio task is asked to stop; elsewhere cancellation is no Exception."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0
