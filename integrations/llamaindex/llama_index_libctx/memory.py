"""`LibraryMemory`: LlamaIndex's memory, governed by the library."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any, Self

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import (
    Field,
    PrivateAttr,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from llama_index.core.llms import LLM
from llama_index.core.memory import BaseMemory
from llama_index_instrumentation import get_dispatcher

from libctx_core import ContextGovernor, GovernedPrompt
from libctx_core.access import Scope
from libctx_core.concurrency import run_sync
from libctx_core.models import HEAD_ROLES
from llama_index_libctx.events import LibraryPromptEvent
from llama_index_libctx.library import MEMORY, PathOrLibrary, lease
from llama_index_libctx.messages import prompt_message
from llama_index_libctx.ordered import OrderedCalls
from llama_index_libctx.reopening import refuse_scope
from llama_index_libctx.sessions import Session, message_of

dispatcher = get_dispatcher(__name__)

DEFAULT_TOKEN_LIMIT = 30_000
"""Tokens of the view where neither a limit nor a model is given; LlamaIndex's own default."""

_WINDOW_SHARE = 0.75
"""Share of a model's window that the view may fill; LlamaIndex's own default."""


class LibraryMemory(BaseMemory):
    """A conversation stored whole in a library file and shown within a token limit.

    `put` makes a message durable. `get` returns the view the model gets: system and
    protected messages, the recent turns, what matters of the older ones, and the running
    turn, as valid messages within the limit; it stores nothing and may be called as often
    as one likes. What it leaves out stays searchable and comes back when it matters.

    `set` lets the conversation hold other messages and `reset` lets it start over; what
    it held before remains in the library.

    Args:
        path: The library's file, an open library, or ``":memory:"``.
        session_id: Name of the conversation; a new one where none is given.
        collection: Namespace of the conversation; the library's by default.
        owner: The user it belongs to.
        token_limit: Tokens of the view, the system prompt of an engine included.
        recent_token_limit: Ceiling of the recent turns.
        protected_token_limit: Ceiling of the protected messages.
        desk_token_limit: Ceiling of what is retrieved.
        llm_name: The model whose tokens are counted.
        tokenizer: The encoding tokens are counted with; beats `llm_name`.
        overflow: What happens to a turn that alone exceeds the limit: ``"error"``, or
            ``"truncate_top"``, ``"truncate_middle"``, ``"truncate_bottom"``.
        reach: What is retrieved from besides the collection's shelf: ``"thread"``,
            ``"owner"`` for the owner's other conversations, or ``"collection"``.
        scope: Access scope that every call is held to.
        messages: Messages a new conversation starts with.
    """

    path: str = Field(default=MEMORY, description="File of the library.")
    session_id: str = Field(description="Name of the conversation.")
    collection: str | None = Field(default=None, description="Namespace of the conversation.")
    owner: str | None = Field(default=None, description="User it belongs to.")
    token_limit: int = Field(default=DEFAULT_TOKEN_LIMIT, description="Tokens of the view.")
    recent_token_limit: int | None = Field(default=None, description="Ceiling of the recent turns.")
    protected_token_limit: int | None = Field(default=None, description="Ceiling of protected messages.")
    desk_token_limit: int | None = Field(default=None, description="Ceiling of what is retrieved.")
    llm_name: str | None = Field(default=None, description="Model whose tokens are counted.")
    tokenizer: str | None = Field(default=None, description="Encoding tokens are counted with.")
    overflow: str = Field(default="error", description="What happens to a turn that exceeds the limit.")
    reach: str = Field(default="thread", description="What is retrieved from.")

    _session: Session = PrivateAttr()
    _calls: OrderedCalls = PrivateAttr(default_factory=OrderedCalls)
    _scope: Scope | None = PrivateAttr(default=None)
    _lease: Any = PrivateAttr()

    def __init__(
        self,
        path: PathOrLibrary = MEMORY,
        session_id: str | None = None,
        *,
        scope: Scope | None = None,
        messages: Sequence[ChatMessage | dict[str, Any]] = (),
        **fields: Any,
    ) -> None:
        unknown = sorted(fields.keys() - type(self).model_fields.keys())
        if unknown:
            raise TypeError(f"LibraryMemory does not take {', '.join(unknown)}")
        shared = lease(path)
        super().__init__(path=shared.path, session_id=session_id or str(uuid.uuid4()), **fields)
        self._lease = shared
        self._scope = scope
        self._session = Session(
            shared.view(scope),
            self.session_id,
            collection=self.collection,
            owner=self.owner,
            model=self.llm_name,
            tokenizer=self.tokenizer,
            token_budget=self.token_limit,
            recent_token_budget=self.recent_token_limit,
            protected_token_budget=self.protected_token_limit,
            desk_token_budget=self.desk_token_limit,
            overflow=self.overflow,
            reach=self.reach,
        )
        if messages:
            self.set([ChatMessage.model_validate(message) for message in messages])

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the memory is serialised."""
        return "LibraryMemory"

    @classmethod
    def from_defaults(
        cls,
        chat_history: list[ChatMessage] | None = None,
        llm: LLM | None = None,
        token_limit: int | None = None,
        *,
        path: PathOrLibrary = MEMORY,
        session_id: str | None = None,
        **fields: Any,
    ) -> Self:
        """Return a memory with what an engine knows.

        Args:
            chat_history: Messages the conversation starts with.
            llm: The model; its name chooses the token counter, its window the limit.
            token_limit: Tokens of the view; three quarters of the model's window by default.
            path: The library's file, an open library, or ``":memory:"``.
            session_id: Name of the conversation.
            **fields: Further arguments of the class.
        """
        if llm is not None:
            fields.setdefault("llm_name", llm.metadata.model_name)
            token_limit = token_limit or int(llm.metadata.context_window * _WINDOW_SHARE)
        if token_limit is not None:
            fields["token_limit"] = token_limit
        return cls(path, session_id, messages=chat_history or (), **fields)

    @property
    def governor(self) -> ContextGovernor:
        """The governor of the conversation, for what LlamaIndex has no word for."""
        return self._session.governor

    @property
    def tokenizer_fn(self) -> Callable[[str], Sequence[int]]:
        """Turns text into a sequence as long as its tokens; engines measure their prompts with it."""
        counter = self._session.governor.counter
        return lambda text: range(counter.count(text))

    # -- reading --------------------------------------------------------------

    @dispatcher.span
    def get(self, input: str | ChatMessage | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002
        """Return the view of the conversation.

        A question that is stored already ends the view. One that is not, because the
        engine adds it itself, is what the view is built for; its tokens are kept free.

        Args:
            input: The user's question.
            **kwargs: ``initial_token_count``: tokens of what the engine puts before the view.

        Raises:
            TurnTooLargeError: The running turn alone exceeds the limit.
        """
        return to_llama_index(self.prompt(input, **kwargs))

    @dispatcher.span
    async def aget(self, input: str | ChatMessage | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: A002
        """Return the view off the event loop; see `get`."""
        return await run_sync(self.get, input, **kwargs)

    def prompt(
        self,
        input: str | ChatMessage | None = None,  # noqa: A002
        *,
        initial_token_count: int = 0,
        **kwargs: Any,
    ) -> GovernedPrompt:
        """Return the view as the library explains it: every message's reason, and what was left out."""
        asked = input.content if isinstance(input, ChatMessage) else input
        governor = self._session.governor
        running = _running_question(governor)
        upcoming = running is None if not asked else running != asked
        reserved = initial_token_count
        if upcoming and asked:
            reserved += governor.counter.count_message({"role": "user", "content": asked})
        prompt = governor.build_prompt(focus=asked or None, reserve_tokens=reserved, upcoming=upcoming)
        dispatcher.event(
            LibraryPromptEvent(
                session_id=self.session_id,
                token_count=prompt.token_count,
                token_budget=prompt.token_budget,
                paged_out_events=prompt.paged_out_events,
                omitted_protected=[omitted.event_id for omitted in prompt.omitted_protected],
                swapped_in=list(prompt.desk.swapped_in),
                swapped_out=list(prompt.desk.swapped_out),
            )
        )
        return prompt

    def get_all(self) -> list[ChatMessage]:
        """Return the whole conversation, oldest message first."""
        return self._session.messages()

    async def aget_all(self) -> list[ChatMessage]:
        """Return the whole conversation off the event loop."""
        return await run_sync(self.get_all)

    # -- writing --------------------------------------------------------------

    def put(self, message: ChatMessage) -> None:
        """Store a message; it is durable when the call returns.

        Raises:
            BlankContentError: A user or system message without text and attachment.
        """
        self._session.append([message])

    async def aput(self, message: ChatMessage) -> None:
        """Store a message off the event loop, in the order of the calls; see `put`."""
        await self._calls.run(self.put, message)

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Store messages, all or none; no messages are nothing to do."""
        self._session.append(messages)

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Store messages off the event loop, in the order of the calls; see `put_messages`."""
        await self._calls.run(self.put_messages, messages)

    def set(self, messages: list[ChatMessage]) -> None:
        """Let the conversation hold exactly these messages, all at once.

        Those it holds already at its beginning are not stored again. If one of them
        changed, the conversation as it was remains in the library.
        """
        self._session.replace(messages, keep_old=True)

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Let the conversation hold other messages, off the event loop; see `set`."""
        await self._calls.run(self.set, messages)

    def reset(self) -> None:
        """Let the conversation start over; what it held remains in the library."""
        self._session.start_over()

    async def areset(self) -> None:
        """Let the conversation start over, off the event loop; see `reset`."""
        await self._calls.run(self.reset)

    # -- copies and serialised forms ------------------------------------------

    @model_serializer(mode="wrap")
    def custom_model_dump(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        """Return what opens the conversation again; a memory without a file takes its messages along."""
        data: dict[str, Any] = handler(self)
        data["class_name"] = self.class_name()
        if self.path == MEMORY:
            data["messages"] = [message.model_dump(mode="json", fallback=repr) for message in self.get_all()]
        return data

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return what `from_dict` opens the conversation with.

        Raises:
            TypeError: The memory is held under a scope; scopes are handed over, not copied.
        """
        refuse_scope(self._scope)
        return super().to_dict(**kwargs)

    def __getstate__(self) -> dict[str, Any]:
        """Return the arguments that open the conversation again elsewhere."""
        refuse_scope(self._scope)
        arguments = self.model_dump()
        del arguments["class_name"]
        return {"__dict__": arguments, "__pydantic_private__": None}

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # a copy goes on using the same open file
        return self.model_copy()


def to_llama_index(prompt: GovernedPrompt) -> list[ChatMessage]:
    """Return a governed prompt as new LlamaIndex messages; whole events in the form they were put."""
    return [
        message_of(part.event) if part.event is not None and not part.cut else prompt_message(message)
        for message, part in zip(prompt.messages, prompt.parts, strict=True)
    ]


def _running_question(governor: ContextGovernor) -> str | None:
    """Return the words of the user's turn that waits for its answer, None if none does."""
    before: int | None = None
    while True:
        page = list(governor.history(limit=4, before=before))
        for event in reversed(page):
            if event.redacted or event.role in HEAD_ROLES:
                continue
            if event.role == "user":
                return message_of(event).content or ""
            if event.role == "assistant" and not event.tool_calls:
                return None
        if not page or page[0].sequence <= 1:
            return None
        before = page[0].sequence
