"""What one build reads of a thread: its recent events and its running turn."""

import bisect
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import apsw

from libctx_core.governor.budget import WHOLE_TURNS, window_start
from libctx_core.models import HEAD_ROLES, ContextEvent, Hit
from libctx_core.store import events as log
from libctx_core.store.events import ThreadHead

MAX_THREADS = 256
"""Threads whose recent events are kept in memory; others are read from the file again."""

MAX_BYTES = 64 * 1024 * 1024
"""Approximate bytes of all that is kept."""

MAX_KEPT_EVENTS = 2048
MAX_LEAD_IN = 1024
"""Events that are looked through for the question of a long turn."""

_PAGE = 64
_EVENT_BYTES = 600
"""What an event takes besides its text."""


@dataclass(slots=True)
class ThreadState:
    """The newest events of a thread as last read, and its last desk; derived, never the truth.

    Attributes:
        revision: The thread's revision they belong to.
        events: A stretch of the log that reaches to the newest event read.
        desk: Record ids shown by the last build.
        turn: The question of the running turn and what was retrieved for it, so that the
            calls of one turn share their prefix.
        lock: Held while the state is read or changed.
    """

    revision: int = -1
    events: list[ContextEvent] = field(default_factory=list)
    desk: tuple[str, ...] = ()
    turn: tuple[tuple[object, ...], tuple[Hit, ...]] | None = None
    size: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class ThreadStates:
    """The states of the threads in use, bounded in number and in bytes."""

    def __init__(self) -> None:
        self._states: OrderedDict[int, ThreadState] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, thread: int) -> ThreadState:
        """Return the state of a thread, an empty one if it was not kept."""
        with self._lock:
            state = self._states.pop(thread, None) or ThreadState()
            self._states[thread] = state
            while len(self._states) > 1 and (
                len(self._states) > MAX_THREADS or sum(kept.size for kept in self._states.values()) > MAX_BYTES
            ):
                self._states.popitem(last=False)
            return state

    def forget(self, thread: int) -> None:
        """Drop what is kept of a thread."""
        with self._lock:
            self._states.pop(thread, None)


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a thread.

    Attributes:
        head: The thread's row.
        through: Newest sequence that counts.
        visible: Number of events up to there.
        question: The user event of the turn in which the window begins, if that turn is so long
            that the window holds little else; it stands before the window, not in it.
        window: Events of the recent window before the running turn, in order.
        turn: Events of the running turn, the user's first; empty if nobody waits for an answer.
        path: Newest visible sequence by branch; empty for a thread without forks.
    """

    head: ThreadHead
    through: int
    visible: int
    question: ContextEvent | None
    window: tuple[ContextEvent, ...]
    turn: tuple[ContextEvent, ...]
    path: dict[int, int]

    @property
    def events(self) -> tuple[ContextEvent, ...]:
        """All its events, in order."""
        return (*((self.question,) if self.question is not None else ()), *self.window, *self.turn)

    @property
    def asked(self) -> ContextEvent | None:
        """The user event that the running turn begins with, if it does."""
        return self.turn[0] if self.turn and self.turn[0].role == "user" else None

    @property
    def turn_start(self) -> int:
        """Sequence at which the running turn starts; beyond every event if there is none."""
        return self.turn[0].sequence if self.turn else self.through + 1


def read_tail(
    connection: apsw.Connection,
    head: ThreadHead,
    state: ThreadState,
    *,
    through: int | None,
    branch: int | None,
    high: int,
    upcoming: bool,
) -> Tail:
    """Read the recent window and the running turn.

    Args:
        connection: A snapshot.
        head: The thread's row in that snapshot.
        state: What is kept of the thread; brought up to date.
        through: Ignore events after this sequence.
        branch: See the thread as this branch does; None for the branch of the newest event.
        high: Tokens the recent window may grow to.
        upcoming: The caller adds the user's turn itself: everything stored is history.
    """
    newest = head.last_sequence if through is None else min(through, head.last_sequence)
    chosen = head.tip_branch if branch is None else branch
    path = None if head.branches == 0 else log.branch_path(connection, head.owner, chosen)
    with state.lock:
        _synchronise(connection, head, state)
        end = _last_visible(connection, head, state, newest, path)
        limit = window_start(end.running_total if end is not None else 0, high)

        def look(start: int) -> list[ContextEvent]:
            return [event for event in _stretch(connection, head, state, start, newest) if _on(path, event)]

        start = _first_in_window(connection, head, state, newest, limit)
        seen = look(start)
        cut = len(seen) if upcoming else _turn_start(seen)
        while cut is None:
            if start <= 1:
                cut = len(seen)
                break
            start = max(1, start - _PAGE)
            seen = look(start)
            cut = _turn_start(seen)
        turn = seen[cut:]
        window = [event for event in seen[:cut] if event.running_total > limit]
        question = None
        if _amid_a_long_turn(window, high):
            question, window = _lead_in(look, start, seen[: cut - len(window)], window)
        state.size = sum(_EVENT_BYTES + len(event.content) for event in state.events)
    visible = _visible_count(connection, head, newest, path)
    return Tail(head, newest, visible, question, tuple(window), tuple(turn), path or {})


def _amid_a_long_turn(window: Sequence[ContextEvent], high: int) -> bool:
    """Whether the window begins inside a turn, and whole turns hold little after it."""
    opened = next((place for place, event in enumerate(window) if _asks(event)), len(window))
    return opened > 0 and sum(event.token_count for event in window[opened:]) < int(high * WHOLE_TURNS)


def _lead_in(
    look: Callable[[int], list[ContextEvent]], start: int, earlier: list[ContextEvent], window: list[ContextEvent]
) -> tuple[ContextEvent | None, list[ContextEvent]]:
    """Return the user event of the turn a window begins in, and the window with its first call whole.

    Args:
        look: Reads the visible events from a sequence on.
        start: Sequence from which `earlier` was read.
        earlier: Visible events before the window, as far as they were read.
        window: The window, not empty.
    """
    after = window[0].sequence
    lowest = max(1, start - MAX_LEAD_IN)
    while not any(map(_asks, earlier)) and start > lowest:
        start = max(lowest, start - _PAGE)
        earlier = [event for event in look(start) if event.sequence < after]
    asked = next((place for place in range(len(earlier) - 1, -1, -1) if _asks(earlier[place])), None)
    if asked is None:
        return None, window
    first = len(earlier)
    while first > asked + 1 and (earlier[first] if first < len(earlier) else window[0]).role == "tool":
        first -= 1
    return earlier[asked], [*earlier[first:], *window]


def _asks(event: ContextEvent) -> bool:
    return event.role == "user" and not event.redacted


def _on(path: dict[int, int] | None, event: ContextEvent) -> bool:
    return path is None or event.sequence <= path.get(event.branch, 0)


def _visible_count(connection: apsw.Connection, head: ThreadHead, newest: int, path: dict[int, int] | None) -> int:
    if path is None:
        return newest
    return sum(
        connection.execute(
            "SELECT count(*) FROM event WHERE thread = ? AND branch = ? AND sequence <= ?",
            (head.owner, branch, min(limit, newest)),
        ).get
        for branch, limit in path.items()
    )


def _turn_start(seen: Sequence[ContextEvent]) -> int | None:
    """Return where the running turn starts, `len(seen)` if the last turn is answered, None if further back."""
    tail = len(seen)
    while tail and (seen[tail - 1].role in HEAD_ROLES or seen[tail - 1].redacted):
        tail -= 1
    if tail and seen[tail - 1].role == "assistant" and not seen[tail - 1].tool_calls:
        return len(seen)
    for place in range(tail - 1, -1, -1):
        if _asks(seen[place]):
            return place
    return None


def _synchronise(connection: apsw.Connection, head: ThreadHead, state: ThreadState) -> None:
    """Drop what changed and read what was appended since."""
    if state.revision != head.revision or (state.events and state.events[-1].sequence > head.last_sequence):
        state.events = []
        state.turn = None
        state.revision = head.revision
    if not state.events:
        return
    missing = head.last_sequence - state.events[-1].sequence
    if missing > MAX_KEPT_EVENTS // 2:
        state.events = []
    elif missing:
        state.events.extend(log.after(connection, head.owner, state.events[-1].sequence, missing))


def _last_visible(
    connection: apsw.Connection, head: ThreadHead, state: ThreadState, newest: int, path: dict[int, int] | None
) -> ContextEvent | None:
    at = newest
    while at > 0:
        for event in reversed(_stretch(connection, head, state, max(1, at - _PAGE + 1), at)):
            if _on(path, event):
                return event
        at -= _PAGE
    return None


def _first_in_window(connection: apsw.Connection, head: ThreadHead, state: ThreadState, newest: int, limit: int) -> int:
    """Return the first sequence whose running total exceeds the limit."""
    kept = state.events
    if kept and kept[0].running_total <= limit:
        place = bisect.bisect_right(kept, limit, key=lambda event: event.running_total)
        return kept[place].sequence if place < len(kept) else newest + 1
    if limit <= 0:
        return 1
    return log.start_of_running_total(connection, head.owner, newest, limit)


def _stretch(
    connection: apsw.Connection, head: ThreadHead, state: ThreadState, start: int, end: int
) -> list[ContextEvent]:
    """Return the events from `start` to `end`, reading only those that are not kept."""
    if end < start:
        return []
    kept = state.events
    if not kept:
        state.events = kept = log.after(connection, head.owner, start - 1, head.last_sequence - start + 1)
    elif start < kept[0].sequence:
        older = log.after(connection, head.owner, start - 1, kept[0].sequence - start)
        state.events = kept = [*older, *kept]
    if not kept:
        return []
    first = kept[0].sequence
    result = kept[start - first : end - first + 1]
    if len(kept) > MAX_KEPT_EVENTS:
        keep_from = max(0, min(start - first, len(kept) - MAX_KEPT_EVENTS))
        state.events = kept[keep_from:]
    return result
