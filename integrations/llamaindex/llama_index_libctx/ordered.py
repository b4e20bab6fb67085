"""Async twins that keep the order in which they were awaited."""

import asyncio
import weakref
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from libctx_core.concurrency import run_sync

P = ParamSpec("P")
T = TypeVar("T")


class OrderedCalls:
    """Runs the synchronous calls of one object off the event loop, first come first served.

    Worker threads alone would store fifty messages in any order.
    """

    def __init__(self) -> None:
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `function` in a worker thread once all earlier calls on this loop have ended."""
        lock = self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            return await run_sync(function, *args, **kwargs)
