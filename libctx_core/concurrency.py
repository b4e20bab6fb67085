"""Between the colours: one thread hop into the synchronous core, one portal out of it."""

import threading
import weakref
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    import asyncio

    import anyio
    import anyio.lowlevel

P = ParamSpec("P")
T = TypeVar("T")

MAX_HOPS: Final = 32
"""Worker threads that may serve async twins at the same time, per event loop."""


@cache
def _limiters() -> "anyio.lowlevel.RunVar[anyio.CapacityLimiter]":
    """Return where each event loop keeps its limiter; anyio loads with the first hop."""
    import anyio.lowlevel

    return anyio.lowlevel.RunVar("libctx_hops")


async def run_sync(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous operation in a worker thread and return its result.

    The caller's context variables are visible in the thread. A caller that is cancelled
    while the operation runs waits for its end, so that nothing is half abandoned and what
    comes next sees what was stored.
    """
    import anyio
    import anyio.to_thread

    try:
        limiter = _limiters().get()
    except LookupError:
        limiter = anyio.CapacityLimiter(MAX_HOPS)
        _limiters().set(limiter)
    started, finished = threading.Event(), threading.Event()

    def work() -> T:
        started.set()
        try:
            return function(*args, **kwargs)
        finally:
            finished.set()

    try:
        return await anyio.to_thread.run_sync(work, limiter=limiter)
    except anyio.get_cancelled_exc_class():
        if started.is_set() and not finished.is_set():
            # a native cancellation passes anyio's own shield
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(finished.wait)
        raise


class Portal:
    """One thread with an event loop, started when first needed.

    It is how a synchronous call reaches a part that a user wrote only asynchronously. It
    works inside a running loop too: that loop waits, as for any synchronous call. The
    thread ends with the portal, or with the interpreter.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: weakref.finalize[..., Portal] | None = None

    def call(self, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Await `function(*args)` on the portal's loop, under the caller's context, and return its result."""

        async def run() -> T:
            return await function(*args, **kwargs)

        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_serve, args=(self._loop,), name="libctx-portal", daemon=True).start()
                self._stop = weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)
            loop = self._loop
        if _runs_here(loop):
            # what runs on the portal calls the library synchronously, which needs a portal again
            inner = Portal()
            try:
                return inner.call(function, *args, **kwargs)
            finally:
                inner.close()
        return asyncio.run_coroutine_threadsafe(run(), loop).result()

    def close(self) -> None:
        """End the thread, if it was started; the next call starts another."""
        with self._lock:
            if self._stop is not None:
                self._stop()
            self._loop = self._stop = None


def _runs_here(loop: "asyncio.AbstractEventLoop") -> bool:
    import asyncio

    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False


def _serve(loop: "asyncio.AbstractEventLoop") -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
