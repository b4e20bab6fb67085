"""One thread hop: the only way from an ``async`` twin to the synchronous core."""

from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

P = ParamSpec("P")
T = TypeVar("T")

MAX_HOPS = 32
"""Worker threads that may serve async twins at the same time, per event loop."""

_limiter: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("libctx_hops")


async def run_sync(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a synchronous operation in a worker thread and return its result.

    The caller's context variables are visible in the thread. A cancelled caller
    waits for the operation to end, so a commit is never half abandoned.
    """
    try:
        limiter = _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(MAX_HOPS)
        _limiter.set(limiter)
    return await anyio.to_thread.run_sync(partial(function, *args, **kwargs), limiter=limiter)
