"""One thread hop: the only way from an ``async`` twin to the synchronous core."""

import threading
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

P = ParamSpec("P")
T = TypeVar("T")

MAX_HOPS: Final = 32
"""Worker threads that may serve async twins at the same time, per event loop."""

_limiter: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("libctx_hops")


async def run_sync(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous operation in a worker thread and return its result.

    The caller's context variables are visible in the thread. A caller that is cancelled
    while the operation runs waits for its end, so that nothing is half abandoned and what
    comes next sees what was stored.
    """
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(MAX_HOPS)
        _limiter.set(limiter)
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
