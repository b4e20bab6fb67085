"""Turns of a chain that have begun and not ended: which reply belongs to which question."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias
from weakref import ReferenceType, ref

from langchain_core.messages import BaseMessage

from langchain_libctx.messages import event_fields, message_from_event, usable_id
from libctx_core.governor import ContextGovernor
from libctx_core.models import new_id

Caller: TypeAlias = Hashable

MAX_OPEN_TURNS = 1024
"""Open turns remembered; a turn whose model failed is never closed."""


class TurnText(str):
    """A memory variable as text that knows the turn it was loaded for.

    Chains hand the very object back to `save_context`, on whatever thread or task that
    runs, so it is the one thing that ties a reply to its question.
    """

    __slots__ = ("turn",)

    turn: "Turn | None"

    @classmethod
    def of(cls, text: str, turn: "Turn | None") -> "TurnText":
        """Return text that carries a turn."""
        marked = cls(text)
        marked.turn = turn
        return marked


class TurnMessages(list[BaseMessage]):
    """A memory variable as messages that knows the turn it was loaded for."""

    turn: "Turn | None" = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One question that is stored and waits for its answer.

    Attributes:
        session_id: Session it belongs to.
        event_id: The stored user event.
        said: What the user said, to recognise a repeated call.
    """

    session_id: str
    event_id: str
    said: str


def caller() -> Caller:
    """Return what identifies the running task, or the thread outside of tasks."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is not None:
        return ref(task)
    return threading.get_ident()


class OpenTurns:
    """The turns in flight of one memory; safe for threads and tasks."""

    def __init__(self) -> None:
        self._turns: OrderedDict[tuple[str, str], tuple[Turn, Caller]] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, turn: Turn, by: Caller) -> None:
        """Note that a caller waits for the answer to a turn."""
        with self._lock:
            self._turns[turn.session_id, turn.event_id] = (turn, by)
            while len(self._turns) > MAX_OPEN_TURNS:
                self._turns.popitem(last=False)

    def end(self, turn: Turn) -> None:
        """Note that a turn was answered."""
        with self._lock:
            self._turns.pop((turn.session_id, turn.event_id), None)

    def runs_elsewhere(self, session_id: str, event_id: str, by: Caller) -> bool:
        """Tell whether another caller, still alive, waits for the answer to this event.

        A caller that asks the same again itself has given up on its first attempt.
        """
        with self._lock:
            found = self._turns.get((session_id, event_id))
        return found is not None and found[1] != by and _alive(found[1])

    def waiting(self, session_id: str, said: str, by: Caller) -> Turn | None:
        """Return the newest open turn of a caller in which this was said."""
        with self._lock:
            for turn, whose in reversed(self._turns.values()):
                if whose == by and turn.session_id == session_id and turn.said == said:
                    return turn
        return None


def begin_turn(governor: ContextGovernor, said: BaseMessage, turns: OpenTurns, by: Caller) -> Turn:
    """Store the user's turn, unless it is the unanswered end of the thread already.

    At this interface a repeated call has no id: what tells it from a second question is
    that nobody waits for the answer to the first one any more.
    """
    session_id, words = governor.key.session_id, str(said.content)
    for event in governor.history(limit=1):
        repeated = event.role == "user" and message_from_event(event).content == said.content
        if repeated and not turns.runs_elsewhere(session_id, event.event_id, by):
            turn = Turn(session_id, event.event_id, words)
            turns.begin(turn, by)
            return turn
    turn = Turn(session_id, usable_id(said.id) or new_id("evt"), words)
    # noted before it is stored: whoever finds the event must find that somebody waits for its answer
    turns.begin(turn, by)
    try:
        governor.record_many([event_fields(said, event_id=turn.event_id)])
    except BaseException:
        turns.end(turn)
        raise
    return turn


def _alive(whose: Caller) -> bool:
    if isinstance(whose, ReferenceType):
        task = whose()
        return task is not None and not task.done()
    return any(thread.ident == whose for thread in threading.enumerate())
