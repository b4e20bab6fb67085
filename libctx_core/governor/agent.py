"""A governed agent around a plain callable model: text in, text or a checked value out."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from libctx_core.concurrency import run_sync
from libctx_core.errors import LibctxError
from libctx_core.governor.drafts import EventFields
from libctx_core.governor.envelope import GovernedPrompt
from libctx_core.governor.governor import ContextGovernor
from libctx_core.governor.rendering import Message
from libctx_core.models import Content, ContextEvent

if TYPE_CHECKING:
    import pydantic

T = TypeVar("T")
Output = TypeVar("Output", bound="pydantic.BaseModel")

Model = Callable[[Sequence[Message]], str]
"""Takes the messages of one request and returns the reply."""

AsyncModel = Callable[[Sequence[Message]], Awaitable[str]]


class ReplyFormatError(LibctxError, ValueError):
    """The model's reply does not have the asked-for form; it is stored all the same.

    Attributes:
        event_id: The stored reply.
        fields: What is wrong, field by field, without the values.
    """

    code = "reply_format"

    def __init__(self, event_id: str, fields: tuple[str, ...]) -> None:
        super().__init__(f"the reply {event_id!r} does not have the asked-for form: {'; '.join(fields)}")
        self.event_id = event_id
        self.fields = fields


@dataclass(frozen=True, slots=True)
class AgentReply(Generic[T]):
    """What one turn came to.

    Attributes:
        value: The reply as text, or the value it was read as.
        event: The stored reply.
        prompt: The request the model saw.
        repeated: The turn was answered before, so that the model was not called.
    """

    value: T
    event: ContextEvent
    prompt: GovernedPrompt
    repeated: bool


class GovernedTextAgent:
    """Runs turns: prepare, call the model with the bounded messages, commit.

    A turn repeated with its event id returns the stored reply and calls no model.

    Args:
        governor: The thread's governor.
        model: Takes the messages and returns the reply's text; give `async_model` for the
            async methods, or they run `model` in a worker thread.
        system_prompt: Text at the head of every request.
        async_model: The same, as a coroutine function.
    """

    def __init__(
        self,
        governor: ContextGovernor,
        model: Model,
        *,
        system_prompt: str = "",
        async_model: AsyncModel | None = None,
    ) -> None:
        self.governor = governor
        self._model = model
        self._async_model = async_model
        self._system_prompt = system_prompt

    def run(self, user_message: Content, **fields: Unpack[EventFields]) -> AgentReply[str]:
        """Run one turn and return its reply as text."""
        prompt = self.governor.prepare(user_message, system_prompt=self._system_prompt, **fields)
        if prompt.answer is not None:
            return AgentReply(prompt.answer.text, prompt.answer, prompt, repeated=True)
        text = self._model(prompt.messages)
        event = self.governor.commit(text, reply_to=prompt.event_id)
        return AgentReply(text, event, prompt, repeated=False)

    def run_structured(
        self, user_message: Content, output: type[Output], **fields: Unpack[EventFields]
    ) -> AgentReply[Output]:
        """Run one turn and read its reply as a pydantic model.

        Raises:
            ReplyFormatError: The reply is not JSON of that shape.
        """
        return _read(self.run(user_message, **fields), output)

    async def arun(self, user_message: Content, **fields: Unpack[EventFields]) -> AgentReply[str]:
        """Do what `run` does, without blocking the event loop."""
        prompt = await self.governor.aprepare(user_message, system_prompt=self._system_prompt, **fields)
        if prompt.answer is not None:
            return AgentReply(prompt.answer.text, prompt.answer, prompt, repeated=True)
        if self._async_model is not None:
            text = await self._async_model(prompt.messages)
        else:
            text = await run_sync(self._model, prompt.messages)
        event = await self.governor.acommit(text, reply_to=prompt.event_id)
        return AgentReply(text, event, prompt, repeated=False)

    async def arun_structured(
        self, user_message: Content, output: type[Output], **fields: Unpack[EventFields]
    ) -> AgentReply[Output]:
        """Do what `run_structured` does, without blocking the event loop."""
        return _read(await self.arun(user_message, **fields), output)


def _read(reply: AgentReply[str], output: type[Output]) -> AgentReply[Output]:
    import pydantic

    try:
        value = output.model_validate(_json(reply.value))
    except pydantic.ValidationError as error:
        fields = tuple(f"{'.'.join(map(str, item['loc'])) or 'reply'}: {item['type']}" for item in error.errors())
        raise ReplyFormatError(reply.event.event_id, fields) from None
    except ValueError:
        raise ReplyFormatError(reply.event.event_id, ("reply: no JSON object",)) from None
    return AgentReply(value, reply.event, reply.prompt, reply.repeated)


def _json(text: str) -> Mapping[str, Any]:
    """Return the JSON object of a reply; models like to wrap it in a fenced block."""
    start, end = text.find("{"), text.rfind("}")
    if start == -1 or end < start:
        raise ValueError("no object")
    value: Mapping[str, Any] = json.loads(text[start : end + 1])
    return value
