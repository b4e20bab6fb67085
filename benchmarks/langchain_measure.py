"""What the benchmarks of the LangChain package share: a conversation, a library that holds it, clocks."""

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_libctx.chat_message_histories import store_messages
from langchain_libctx.messages import event_fields
from report import sentence

from libctx_core import LibraryOfContext
from libctx_core.governor import ContextGovernor

ROUNDS = 4
"""Our turns for each of a peer's, so that a page that is filled or not does not tell."""

CORE = ("record_many", "build_prompt", "open_event", "history", "amend", "delete")
Row = dict[str, Any]


def said(number: int) -> list[BaseMessage]:
    """Return a conversation of `number` messages of about 50 tokens."""
    kinds = itertools.cycle((HumanMessage, AIMessage))
    return [kind(sentence(n), id=f"m{n}") for n, kind in zip(range(number), kinds, strict=False)]


class CoreClock:
    """CPU seconds spent inside the governor, wherever it is called from."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0

    def watch(self) -> None:
        for name in CORE:
            setattr(ContextGovernor, name, self._timed(getattr(ContextGovernor, name)))

    def _timed(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            started = time.thread_time()
            try:
                result = method(*args, **kwargs)
                return iter(list(result)) if isinstance(result, Iterator) else result
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self.seconds += time.thread_time() - started

        return timed


CLOCK = CoreClock()


@contextmanager
def library_with(messages: list[BaseMessage], session: str = "s") -> Iterator[LibraryOfContext]:
    """Lend a new library whose thread holds the messages, indexed."""
    with tempfile.TemporaryDirectory() as folder, LibraryOfContext(Path(folder) / "library.sqlite") as library:
        governor = library.open_context_governor(session)
        for at in range(0, len(messages), 1_000):
            store_messages(
                governor,
                [{**event_fields(message), "metadata": {"door": "agent"}} for message in messages[at : at + 1_000]],
            )
        library.flush(600)
        yield library


def turns(library: LibraryOfContext, turn: Callable[[int], tuple[float, float]], count: int) -> Row:
    """Run turns that return total and framework CPU; return medians in ms and bytes stored per turn."""
    turn(-1)
    turn(-2)
    library.flush(60)
    before = used(library)
    total, core, framework = [], [], []
    for number in range(count * ROUNDS):
        CLOCK.seconds = 0.0
        spent, frame = turn(number)
        total.append(spent)
        core.append(CLOCK.seconds)
        framework.append(frame)
        library.flush(60)
    own = [whole - inner - frame for whole, inner, frame in zip(total, core, framework, strict=True)]
    return {
        "own ms": ms(own),
        "core ms": ms(core),
        "framework ms": ms(framework),
        "bytes/turn": round((used(library) - before) / len(total)),
    }


def used(library: LibraryOfContext) -> int:
    """Return the bytes of the pages that hold anything: what filling a library freed would flatter its turns."""
    with library.database.read() as connection:
        pages = connection.pragma("page_count") - connection.pragma("freelist_count")
        return pages * connection.pragma("page_size")


def ms(seconds: list[float]) -> float:
    """Return the median in milliseconds."""
    return round(statistics.median(seconds) * 1e3, 3)


def timed(work: Callable[[], Any]) -> float:
    """Return the CPU seconds of the calling thread."""
    started = time.thread_time()
    work()
    return time.thread_time() - started
