"""From a governed prompt to the messages of a model request."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage

from langchain_libctx.messages import message_from_event, message_from_prompt
from langchain_libctx.middleware.reconcile import names_of
from libctx_core.governor import GovernedPrompt
from libctx_core.models import HEAD_ROLES


@dataclass(frozen=True, slots=True)
class Envelope:
    """What is sent to the model.

    Attributes:
        messages: The request without its system message.
        system: Text of protected system events, to be added to the system message.
        shown: Event ids of the state's messages that are in it.
        tokens: Tokens of the whole request under the governor's counter.
        budget: Tokens it may hold.
        paged_out: Events of the thread that are not shown directly.
        desk: Retrieved items.
        stubs: Tool results that were replaced by a stub.
        missing: Protected events that found no room.
    """

    messages: tuple[BaseMessage, ...]
    system: str
    shown: frozenset[str]
    tokens: int
    budget: int
    paged_out: int
    desk: int
    stubs: int
    missing: int

    def statistics(self) -> dict[str, Any]:
        """Return the numbers that are worth a line in a log or a stream."""
        return {
            "tokens": self.tokens,
            "budget": self.budget,
            "messages": len(self.messages),
            "paged_out": self.paged_out,
            "desk": self.desk,
            "stubs": self.stubs,
            "omitted_protected": self.missing,
        }


class StateMessages:
    """The messages of a state by event id, read from the tail back only as far as asked for."""

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self._messages = messages
        self._known: dict[str, BaseMessage] = {}
        self._left = len(messages)

    def get(self, event_id: str) -> BaseMessage | None:
        """Return the message recorded under an id, or None if the state does not hold it."""
        while event_id not in self._known and self._left:
            self._left -= 1
            message = self._messages[self._left]
            for name in names_of(message, self._left):
                self._known.setdefault(name, message)
        return self._known.get(event_id)


def envelope_of(prompt: GovernedPrompt, state: StateMessages, extra: Sequence[BaseMessage], reserved: int) -> Envelope:
    """Put a prompt into LangChain's form; what the state holds is sent as the state has it.

    Args:
        prompt: The governed prompt.
        state: The messages of the request.
        extra: Messages that another middleware added to this request only; they follow the turn.
        reserved: Tokens of tools and of `extra`, which the prompt does not count.
    """
    messages: list[BaseMessage] = []
    system: list[str] = []
    shown: set[str] = set()
    stubs = 0
    for part, message in zip(prompt.parts, prompt.messages, strict=True):
        if part.origin == "system":
            continue
        if part.role in HEAD_ROLES:
            system.append(_text(message["content"]))
            continue
        own = state.get(part.event_id) if part.event_id is not None else None
        if own is not None and part.event_id is not None:
            shown.add(part.event_id)
        if part.cut and isinstance(own, ToolMessage):
            stubs += 1
            messages.append(own.model_copy(update={"content": message["content"], "artifact": None}))
        elif own is not None and not part.cut:
            messages.append(own)
        elif part.event is not None and not part.cut:
            messages.append(message_from_event(part.event))
        else:
            messages.append(message_from_prompt(message, part.event_id))
    return Envelope(
        messages=(*messages, *extra),
        system="\n\n".join(system),
        shown=frozenset(shown),
        tokens=prompt.token_count + reserved,
        budget=prompt.token_budget,
        paged_out=prompt.paged_out_events,
        desk=len(prompt.desk),
        stubs=stubs,
        missing=len(prompt.omitted_protected),
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, Mapping))


def system_message(base: SystemMessage | None, *more: str) -> SystemMessage | None:
    """Return a system message with further text at its end; the base itself where there is none."""
    text = "\n\n".join(filter(None, more))
    if not text:
        return base
    if base is None:
        return SystemMessage(content=text)
    if isinstance(base.content, str):
        return base.model_copy(update={"content": f"{base.content}\n\n{text}" if base.content else text})
    return base.model_copy(update={"content": [*base.content, {"type": "text", "text": text}]})
