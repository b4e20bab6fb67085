"""Carrying a scope to where context variables do not go: threads, executors, generators."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextvars import Context, copy_context
from functools import partial, wraps
from types import coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Generator

    from libctx_core.access.context import ContextAccess

P = ParamSpec("P")
T = TypeVar("T")


def carry(access: "ContextAccess", function: Callable[P, T]) -> Callable[P, T]:
    """Return `function` bound to the scope of this moment; unchanged where there is none."""
    scope = access.current_scope()
    if scope is None:
        return function
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def call_later(*args: P.args, **kwargs: P.kwargs) -> Any:
            with access.scope(scope):
                return await function(*args, **kwargs)

        return cast("Callable[P, T]", call_later)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with access.scope(scope):
            return function(*args, **kwargs)

    return call


class ScopedExecutor(Executor):
    """An executor whose calls run under the scope of whoever submitted them.

    Args:
        inner: A thread pool. A process pool cannot carry scopes: they do not pickle.
        access: The authority whose scope is carried.
    """

    def __init__(self, inner: Executor, access: "ContextAccess") -> None:
        self._inner = inner
        self._access = access

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a call under the current scope."""
        return self._inner.submit(carry(self._access, fn), *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut the inner executor down."""
        self._inner.shutdown(wait=wait, cancel_futures=cancel_futures)


class ContextIterator(Iterator[T]):
    """Steps an iterator inside the context captured at construction.

    What a generator installs while it is suspended never reaches its consumer.
    """

    def __init__(self, source: Iterable[T]) -> None:
        self._context = copy_context()
        self._source = self._context.run(iter, source)

    def __next__(self) -> T:
        return self._context.run(next, self._source)

    def close(self) -> None:
        """Close the source in its own context, if it can be closed."""
        close = getattr(self._source, "close", None)
        if close is not None:
            self._context.run(close)


class ContextAsyncIterator(AsyncIterator[T]):
    """Steps an asynchronous iterator inside the context captured at construction."""

    def __init__(self, source: AsyncIterable[T]) -> None:
        self._context = copy_context()
        self._source = self._context.run(aiter, source)

    async def __anext__(self) -> T:
        return await _in_context(self._context, _next_of(self._source))

    async def aclose(self) -> None:
        """Close the source in its own context, if it can be closed."""
        if isinstance(self._source, AsyncGenerator):
            await _in_context(self._context, _close(self._source))


async def _next_of(source: AsyncIterator[T]) -> T:
    return await anext(source)


async def _close(source: AsyncGenerator[Any, Any]) -> None:
    await source.aclose()


@coroutine
def _in_context(context: Context, awaitable: Coroutine[Any, Any, T]) -> "Generator[Any, Any, T]":
    """Drive a coroutine so that each of its steps runs in `context`, in the caller's task."""
    step: Callable[[], Any] = partial(awaitable.send, None)
    while True:
        try:
            waiting_for = context.run(step)
        except StopIteration as stop:
            return cast("T", stop.value)
        try:
            step = partial(awaitable.send, (yield waiting_for))
        except BaseException as error:  # noqa: BLE001 - thrown into the coroutine
            step = partial(awaitable.throw, error)
