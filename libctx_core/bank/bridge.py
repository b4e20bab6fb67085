"""Between the colours of a bank: async twins of its operations, and callbacks of either colour."""

import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar, cast

from libctx_core.concurrency import Portal, run_sync

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")

Maybe: TypeAlias = T | Awaitable[T]
"""A value, or something that is awaited for one."""

_hop = threading.local()


def twin(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Return the async twin of a synchronous method: one hop to a thread, under the caller's scope."""

    @wraps(method)
    async def call(self: S, *args: P.args, **kwargs: P.kwargs) -> T:
        return await run_sync(_hopped, method, self, *args, **kwargs)

    return cast("Callable[Concatenate[S, P], Coroutine[Any, Any, T]]", call)


def _hopped(method: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    _hop.active = True
    try:
        return method(*args, **kwargs)
    finally:
        _hop.active = False


class Bridge:
    """Settles what callbacks and remote backends return, whichever colour they are.

    Called through an async twin, an awaitable is awaited on the caller's own event loop;
    called synchronously, on the portal's thread.
    """

    def __init__(self, portal: Portal | None = None) -> None:
        self._portal = portal or Portal()
        self._owned = portal is None

    def settle(self, value: Maybe[T]) -> T:
        """Return a value, awaiting it first if it has to be."""
        if not inspect.isawaitable(value):
            return value
        awaitable = cast("Awaitable[T]", value)
        if getattr(_hop, "active", False):
            import anyio.from_thread

            return anyio.from_thread.run(_wait_for, awaitable)
        return self._portal.call(_wait_for, awaitable)

    def close(self) -> None:
        """End the portal's thread if this bridge started it."""
        if self._owned:
            self._portal.close()


async def _wait_for(value: Awaitable[T]) -> T:
    return await value
