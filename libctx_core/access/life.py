"""How long a scope may be used: revocation, expiry, and binding to a context."""

import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

Clock = Callable[[], tuple[float, float]]
"""Returns monotonic and wall time in seconds."""

_bindings: Final[ContextVar[frozenset[int]]] = ContextVar("libctx_scope_bindings", default=frozenset())


def system_clock() -> tuple[float, float]:
    """Return the machine's monotonic and wall time."""
    return time.monotonic(), time.time()


class Life:
    """Whether a scope may still be used; every scope derived from it shares the answer."""

    __slots__ = ("_bound", "_clock", "_deadline", "_expires_at", "_over")

    def __init__(self, clock: Clock = system_clock, *, expires_at: float | None = None) -> None:
        self._over = False
        self._bound = False
        self._clock = clock
        self._expires_at = expires_at
        self._deadline = 0.0
        if expires_at is not None:
            monotonic, wall = clock()
            self._deadline = monotonic + (expires_at - wall)

    def bind(self) -> None:
        """Make the scope unusable outside this context and those copied from it."""
        self._bound = True
        _bindings.set(_bindings.get() | {id(self)})

    def revoke(self) -> None:
        """End it for good."""
        self._over = True

    def ended(self) -> bool:
        """Return whether the scope was revoked, has expired, or is out of its context.

        Monotonic time catches a wall clock that was set back, wall time a machine that slept.
        """
        if self._over:
            return True
        if self._expires_at is not None:
            monotonic, wall = self._clock()
            if monotonic >= self._deadline or wall >= self._expires_at:
                self._over = True
                return True
        return self._bound and id(self) not in _bindings.get()
