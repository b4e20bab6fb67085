"""From the messages of an agent's state to the events of its thread, found from the tail back.

The state is a list that grows; the log is the truth. Only the tail is compared: what was
recorded before is known by its id, so the cost of a call does not grow with the
conversation.
"""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_libctx.chat_message_histories import store_messages
from langchain_libctx.fingerprints import fingerprint
from langchain_libctx.messages import event_fields, usable_id
from libctx_core.errors import EventNotFoundError
from libctx_core.governor import ContextGovernor
from libctx_core.models import MAX_ID_LENGTH, ContextEvent

DEPTH = 64
"""Known messages that are compared with the log again, from the tail back, to notice edits."""

KEPT = 256
"""Fingerprints remembered per session."""

MAX_SESSIONS = 256

DOOR = "door"
AGENT = "agent"
"""Metadata of events that came from an agent's state, so that other doors' events are told apart."""

SUMMARY_MARK = "lc_source"
SUMMARY = "summarization"


def event_id_of(message: BaseMessage, place: int) -> str:
    """Return the id under which a message of a state is recorded first; see `names_of`."""
    return names_of(message, place)[0]


def names_of(message: BaseMessage, place: int) -> tuple[str, ...]:
    """Return the ids under which a message of a state may be recorded.

    A result that an agent invents for a call that could not be parsed has no id when it
    is first sent, and one when it comes back with the state; its call names it both times.
    Anything else without an id is named by what it says and where it stands.
    """
    own = usable_id(message.id)
    if isinstance(message, ToolMessage) and usable_id(message.tool_call_id):
        answered = f"result:{message.tool_call_id}"[:MAX_ID_LENGTH]
        return (answered,) if own is None else (own, answered)
    if own is not None:
        return (own,)
    said = f"{message.type}\n{place}\n{message.content!r}"
    return (f"said:{hashlib.blake2b(said.encode('utf-8', 'replace'), digest_size=16).hexdigest()}",)


def is_summary(message: BaseMessage) -> bool:
    """Tell whether a human message is a summary that another middleware wrote."""
    return isinstance(message, HumanMessage) and message.additional_kwargs.get(SUMMARY_MARK) == SUMMARY


def from_agent(event: ContextEvent) -> bool:
    """Tell whether an event was recorded from an agent's state."""
    return (event.metadata or {}).get(DOOR) == AGENT and event.role in ("user", "assistant", "tool")


@dataclass(slots=True)
class Seen:
    """What this process recorded last of one session.

    Attributes:
        marks: Event id to the fingerprint of the message as it was recorded.
        tip: Event id recorded last.
    """

    marks: "OrderedDict[str, bytes | None]" = field(default_factory=OrderedDict)
    tip: str | None = None

    def note(self, event_id: str, message: BaseMessage) -> None:
        """Remember a message as recorded."""
        self.marks.pop(event_id, None)
        self.marks[event_id] = fingerprint(message)
        while len(self.marks) > KEPT:
            self.marks.popitem(last=False)


class SeenSessions:
    """What was recorded last, by session; bounded, safe for threads."""

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[str, str], Seen] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, governor: ContextGovernor) -> Seen:
        """Return what is known of a governor's session."""
        key = (governor.key.collection, governor.key.session_id)
        with self._lock:
            seen = self._sessions.pop(key, None) or Seen()
            self._sessions[key] = seen
            while len(self._sessions) > MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return seen


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a state, compared with the log.

    Attributes:
        fresh: Messages after the last known one, in order: they continue the conversation.
        changed: Known messages that say something else now, and unknown ones between known ones.
        anchor: Event id of the last known message, None if none is known.
        last: Event id of the last message that is recorded at all.
    """

    fresh: tuple[tuple[str, BaseMessage], ...]
    changed: tuple[tuple[str, BaseMessage], ...]
    anchor: str | None
    last: str | None


def compare(messages: Sequence[BaseMessage], seen: Seen, stored: Callable[[str], bool]) -> Tail:
    """Walk from the last message back until enough known ones were met.

    Args:
        messages: The state's messages.
        seen: What this process recorded.
        stored: Tells whether an event of this id is in the log.
    """
    fresh: list[tuple[str, BaseMessage]] = []
    changed: list[tuple[str, BaseMessage]] = []
    anchor: str | None = None
    last: str | None = None
    met = 0
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if is_summary(message):
            continue
        name, mark = _recorded_name(message, place, seen, stored)
        last = last or name
        if mark is _STORED:
            # another process, or an earlier life of this one, recorded it: check it, and stop
            changed.append((name, message))
            met = DEPTH
        elif mark is not _UNKNOWN:
            if mark is None or mark != fingerprint(message):
                changed.append((name, message))
        elif anchor is None:
            fresh.append((name, message))
            continue
        else:
            changed.append((name, message))
            continue
        anchor = anchor or name
        met += 1
        if met >= DEPTH:
            break
    return Tail(tuple(reversed(fresh)), tuple(reversed(changed)), anchor, last)


_UNKNOWN, _STORED = object(), object()


def _recorded_name(message: BaseMessage, place: int, seen: Seen, stored: Callable[[str], bool]) -> tuple[str, object]:
    """Return the id a message is recorded under, and its mark: what was seen, `_STORED` or `_UNKNOWN`."""
    names = names_of(message, place)
    for name in names:
        if name in seen.marks:
            return name, seen.marks[name]
    for name in names:
        if stored(name):
            return name, _STORED
    return names[0], _UNKNOWN


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records messages of a state as events.

    Attributes:
        governor: Governor of the session.
        seen: What was recorded before.
        protect_tools: Tools whose results are protected.
    """

    governor: ContextGovernor
    seen: Seen
    protect_tools: frozenset[str] = frozenset()

    def reconcile(self, messages: Sequence[BaseMessage]) -> str | None:
        """Record what the log lacks, amend what was edited; return the id of the last event of the state.

        A message that does not follow the newest event of the log, because the agent went
        back in time or another reply was discarded, begins a branch.
        """
        tail = compare(messages, self.seen, self._stored)
        if tail.changed:
            store_messages(self.governor, [self._fields(name, message) for name, message in tail.changed])
        if tail.fresh:
            self._append(tail.fresh, tail.anchor, messages)
        for name, message in (*tail.changed, *tail.fresh):
            self.seen.note(name, message)
        return tail.last

    def record_reply(self, reply: Iterable[BaseMessage], last: str | None) -> None:
        """Record what the model answered, as the continuation of the state's last event."""
        named = [(event_id_of(message, place), message) for place, message in enumerate(reply)]
        if not named:
            return
        self._append(tuple(named), last, ())
        for name, message in named:
            self.seen.note(name, message)

    def _append(
        self, fresh: Sequence[tuple[str, BaseMessage]], anchor: str | None, state: Sequence[BaseMessage]
    ) -> None:
        fields = [self._fields(name, message) for name, message in fresh]
        if anchor is not None and anchor != self.seen.tip and self._left_behind(anchor, state):
            fields[0]["parent_event_id"] = anchor
        store_messages(self.governor, fields)
        self.seen.tip = fresh[-1][0]

    def _fields(self, name: str, message: BaseMessage) -> dict[str, Any]:
        fields = {**event_fields(message, event_id=name), "metadata": {DOOR: AGENT}}
        if isinstance(message, ToolMessage) and message.name in self.protect_tools:
            fields["protected"] = True
        return fields

    def _stored(self, name: str) -> bool:
        try:
            return self.governor.open_event(name).event_id == name
        except EventNotFoundError:
            return False

    def _left_behind(self, anchor: str, state: Sequence[BaseMessage]) -> bool:
        """Tell whether the log holds messages after the anchor that the state does not have."""
        for event in reversed(list(self.governor.history(limit=DEPTH))):
            if event.event_id == anchor:
                return False
            if from_agent(event):
                return True
        return True


def with_ids(reply: Sequence[BaseMessage], new_id: Callable[[], str]) -> None:
    """Give replies without an id one, so that the state and the log name them alike."""
    for message in reply:
        if isinstance(message, AIMessage) and message.id is None:
            message.id = new_id()
