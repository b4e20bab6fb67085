"""What makes a list of messages acceptable to every provider, as one function."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage


@dataclass(frozen=True, slots=True)
class Violation:
    """One rule that a request breaks.

    Attributes:
        rule: ``V1`` first message human, ``V2`` system text only at the head, ``V3`` a
            result without its call, ``V4`` a call without its result, ``V8`` nothing to
            send, ``V10`` two equal ids.
        place: Index of the message.
    """

    rule: str
    place: int


def call_ids(message: BaseMessage) -> list[str]:
    """Return the ids of the calls that must be answered after a message."""
    if not isinstance(message, AIMessage):
        return []
    return [str(call["id"]) for call in (*message.tool_calls, *message.invalid_tool_calls)]


def violations(messages: Sequence[BaseMessage]) -> list[Violation]:
    """Return every rule that a request breaks; none for one that any provider takes."""
    found: list[Violation] = []
    body = [(place, message) for place, message in enumerate(messages) if not isinstance(message, SystemMessage)]
    if not body:
        return [Violation("V8", 0)]
    first = body[0][0]
    if not isinstance(body[0][1], HumanMessage):
        found.append(Violation("V1", first))
    found.extend(Violation("V2", at) for at, m in enumerate(messages) if isinstance(m, SystemMessage) and at > first)
    ids = Counter(message.id for message in messages if message.id is not None)
    found.extend(Violation("V10", at) for at, m in enumerate(messages) if m.id is not None and ids[m.id] > 1)
    open_calls: list[str] = []
    for place, message in body:
        if isinstance(message, ToolMessage):
            if message.tool_call_id in open_calls:
                open_calls.remove(message.tool_call_id)
            else:
                found.append(Violation("V3", place))
            continue
        if open_calls:
            found.append(Violation("V4", place))
        open_calls = call_ids(message)
    if open_calls:
        found.append(Violation("V4", len(messages)))
    return found
