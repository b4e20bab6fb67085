"""Answers for methods that two interfaces of LlamaIndex share by name, one of them asynchronous."""

import inspect
import sys
from collections.abc import Coroutine, Generator, Iterable
from types import FrameType, TracebackType
from typing import Any, Self, TypeVar

T = TypeVar("T")


_COMPREHENSIONS = frozenset({"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"})


def asked_by_coroutine() -> bool:
    """Tell whether the method that calls this was called by a coroutine function, or a comprehension in one."""
    asking: FrameType | None = sys._getframe(2)  # noqa: SLF001 - the frame of the method's caller
    while asking is not None and asking.f_code.co_name in _COMPREHENSIONS:
        asking = asking.f_back
    return asking is not None and bool(asking.f_code.co_flags & inspect.CO_COROUTINE)


class Settled(list[T], Coroutine[Any, Any, "Settled[T]"]):
    """A list that may also be awaited, at once and for itself.

    Plain functions hand what a method returned to `asyncio.run`; it need not be awaited.
    """

    def __init__(self, items: Iterable[T] = ()) -> None:
        super().__init__(items)

    def __hash__(self) -> int:  # type: ignore[override]
        # asyncio.gather keeps what it waits for in a dictionary
        return id(self)

    def send(self, value: Any, /) -> Any:
        """End at the first step, with the list as result."""
        raise StopIteration(self)

    def throw(self, kind: Any, error: Any = None, trace: TracebackType | None = None, /) -> Any:
        """Raise what is thrown in."""
        raise error if error is not None else kind

    def close(self) -> None:
        """Nothing has to be closed."""

    def __await__(self) -> Generator[Any, Any, Self]:
        yield from ()
        return self
