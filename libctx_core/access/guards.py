"""Deny-only guards: what plugins may add to a decision, asked in batches and remembered."""

from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeAlias

from libctx_core.access.metadata import ResourceMetadata
from libctx_core.errors.access import Operation
from libctx_core.ports import AccessQuestion, ResourceRef

AccessGuard: TypeAlias = Callable[[AccessQuestion], Collection[str]]
"""Returns the resource ids to deny, out of those asked about."""

MAX_REMEMBERED: Final = 65_536
"""Answers after which all are forgotten and asked again."""

_Key: TypeAlias = tuple[str, Operation, str, str, str | None]


class Guard:
    """Asks a guard once per principal, operation and resource; an exception denies."""

    __slots__ = ("_answers", "_ask", "generation")

    def __init__(self, ask: AccessGuard) -> None:
        self._ask = ask
        self._answers: dict[_Key, bool] = {}
        self.generation = 0

    def forget(self) -> None:
        """Ask everything anew: the guard's own rules have changed."""
        self.generation += 1
        self._answers = {}

    def denies(self, principal: str, operation: Operation, metadata: ResourceMetadata) -> bool:
        """Return whether the guard denies one resource."""
        return bool(self.denied(principal, operation, (metadata,)))

    def denied(
        self, principal: str, operation: Operation, resources: Iterable[ResourceMetadata]
    ) -> set[ResourceMetadata]:
        """Return those of the resources that the guard denies."""
        remembered = self._answers
        refused: set[ResourceMetadata] = set()
        unknown: dict[ResourceMetadata, _Key] = {}
        for resource in resources:
            key = (principal, operation, resource.resource_kind, resource.resource_id, resource.boundary_id)
            answer = remembered.get(key)
            if answer is None:
                unknown[resource] = key
            elif answer:
                refused.add(resource)
        if unknown:
            refused |= self._learn(principal, operation, unknown)
        return refused

    def _learn(
        self, principal: str, operation: Operation, unknown: dict[ResourceMetadata, _Key]
    ) -> set[ResourceMetadata]:
        question = AccessQuestion(
            principal,
            operation.value,
            tuple(
                [
                    ResourceRef(resource.resource_kind, resource.resource_id, resource.boundary_id)
                    for resource in unknown
                ]
            ),
        )
        answers = self._answers
        try:
            denied = frozenset(self._ask(question))
        except Exception:  # noqa: BLE001 - a guard that fails denies, and is asked again next time
            self.generation += 1
            return set(unknown)
        if len(answers) + len(unknown) > MAX_REMEMBERED:
            answers.clear()
        # if everything was forgotten meanwhile, this answer came from the old rules and goes with them
        answers.update((key, resource.resource_id in denied) for resource, key in unknown.items())
        return {resource for resource in unknown if resource.resource_id in denied}
