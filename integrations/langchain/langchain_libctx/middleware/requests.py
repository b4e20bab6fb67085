"""What a request says beyond the state, and what of it belongs to the conversation."""

from collections.abc import Sequence
from operator import is_

from langchain_core.messages import BaseMessage, ToolMessage

from langchain_libctx.middleware.reconcile import names_of


def same(messages: Sequence[BaseMessage], state: Sequence[BaseMessage]) -> bool:
    """Tell whether two lists hold the very same messages."""
    return messages is state or (len(messages) == len(state) and all(map(is_, messages, state)))


def conversation(messages: Sequence[BaseMessage], state: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return the messages to record: the state, and the results that an agent added for calls it could not parse.

    Other middleware may have rewritten or trimmed messages for this request only; the
    state is what was really said.
    """
    if same(messages, state):
        # this very list, so that asking again what was added costs nothing
        return messages
    own = {name: message for place, message in enumerate(state) for name in names_of(message, place)}
    repaired: list[BaseMessage] = []
    met = 0
    for place, message in enumerate(messages):
        known = next((own[name] for name in names_of(message, place) if name in own), None)
        if known is not None:
            met += 1
            repaired.append(known)
        elif isinstance(message, ToolMessage):
            repaired.append(message)
    return repaired if met == len(state) else state


def added(messages: Sequence[BaseMessage], state: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return messages that another middleware added to this request only."""
    if same(messages, state):
        return []
    known = {name for place, message in enumerate(state) for name in names_of(message, place)}
    return [message for place, message in enumerate(messages) if known.isdisjoint(names_of(message, place))]
