"""`GovernedRunnable`: prepare before a model or chain, commit after it."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import BaseMessage, BaseMessageChunk, HumanMessage, message_chunk_to_message
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.utils import ConfigurableFieldSpec

from langchain_libctx.chat_message_histories import store_messages
from langchain_libctx.messages import as_ai, as_human, event_fields, to_langchain
from langchain_libctx.opening import LibrarySource, open_library
from langchain_libctx.sessions import Governors, MissingSessionError, SessionId
from langchain_libctx.turns import Caller, OpenTurns, Turn, begin_turn, caller
from libctx_core.access.metadata import ResourceMetadata
from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.errors import InvalidInputError
from libctx_core.governor import ContextGovernor, GovernedPrompt

_VIEW = ("system", "protected", "recent", "desk")


class GovernedRunnable(Runnable[Any, Any]):
    """Runs a model, or a chain, on a governed view of the conversation.

    The user's turn is durable before the model is called, and the reply is stored as its
    answer; a failed or abandoned call loses nothing, and asking again stores nothing
    twice. Errors of storage reach the caller.

    Without keys the bound runnable gets messages: what was said so far, as far as it fits
    and matters, and the new turn. With `history_messages_key` it gets the input mapping
    with that view under the key, for a prompt with a placeholder.

    Args:
        bound: A chat model, or anything that takes messages or the mapping.
        library: An open library or view, or a path that this object then owns.
        session_id: The thread, or a callable that names it; by default
            ``config["configurable"][session_key]``.
        session_key: The key that names the session in a configuration.
        input_messages_key: Key of the new turn, where the input is a mapping.
        history_messages_key: Key under which the view is passed on.
        output_messages_key: Key of the reply, where the output is a mapping.
        system_prompt: Text at the head of every request; only without `history_messages_key`.
        reserve_tokens: What the rest of the prompt needs.
        keep_partial: Store what was said of a reply whose stream ended early.
        collection: Namespace of the threads; the library's by default.
        owner: The user they belong to.
        scope: Held for every call.
        resource: Access metadata for threads created under a scope.
        **options: Further arguments of `open_context_governor`, such as ``token_budget``.
    """

    def __init__(
        self,
        bound: Runnable[Any, Any],
        library: LibrarySource,
        session_id: SessionId | None = None,
        *,
        session_key: str = "session_id",
        input_messages_key: str | None = None,
        history_messages_key: str | None = None,
        output_messages_key: str | None = None,
        system_prompt: str = "",
        reserve_tokens: int = 0,
        keep_partial: bool = True,
        collection: str | None = None,
        owner: str | None = None,
        scope: Scope | None = None,
        resource: ResourceMetadata | Callable[[str], ResourceMetadata] | None = None,
        **options: Any,
    ) -> None:
        if history_messages_key is not None and system_prompt:
            raise InvalidInputError("system_prompt", "belongs into the prompt that has the placeholder")
        self.bound = bound
        self._session_id = session_id
        self._session_key = session_key
        self._input_key = input_messages_key
        self._history_key = history_messages_key
        self._output_key = output_messages_key
        self._system_prompt = system_prompt
        self._reserve = reserve_tokens
        self._keep_partial = keep_partial
        self._turns = OpenTurns()
        view, self._owned = open_library(library, scope)
        self._governors = Governors(
            view,
            "unused" if session_id is None else session_id,
            collection=collection,
            owner=owner,
            resource=resource,
            **options,
        )

    def close(self) -> None:
        """Close the library if this object opened it."""
        if self._owned is not None:
            self._owned.close()

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The session key, beside what the bound runnable can be configured with."""
        specs = list(self.bound.config_specs)
        if self._session_id is None:
            specs.append(ConfigurableFieldSpec(id=self._session_key, annotation=str, name="Session", is_shared=True))
        return specs

    # -- running --------------------------------------------------------------

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """Run on one turn and return the reply.

        Raises:
            MissingSessionError: Nothing names the session.
            TurnTooLargeError: The turn does not fit the budget.
            StoreError: The turn or the reply could not be stored durably.
        """
        config = ensure_config(config)
        governor = self._governor(config)
        request, turn = self._begin(governor, input, caller())
        output = self.bound.invoke(request, config, **kwargs)
        self._commit(governor, turn, output)
        return output

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        """See `invoke`; one thread hop before the model and one after it."""
        config = ensure_config(config)
        governor = self._governor(config)
        request, turn = await run_sync(self._begin, governor, input, caller())
        output = await self.bound.ainvoke(request, config, **kwargs)
        await run_sync(self._commit, governor, turn, output)
        return output

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:  # noqa: A002
        """Run on one turn and yield the reply in pieces; it is stored when the stream ends, however it ends."""
        config = ensure_config(config)
        governor = self._governor(config)
        request, turn = self._begin(governor, input, caller())
        pieces: list[Any] = []
        ending: Literal["whole", "partial"] = "partial"
        try:
            for piece in self.bound.stream(request, config, **kwargs):
                pieces.append(piece)
                yield piece
            ending = "whole"
        finally:
            self._end_stream(governor, turn, pieces, ending)

    async def astream(
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        """See `stream`."""
        config = ensure_config(config)
        governor = self._governor(config)
        request, turn = await run_sync(self._begin, governor, input, caller())
        pieces: list[Any] = []
        ending: Literal["whole", "partial"] = "partial"
        try:
            async for piece in self.bound.astream(request, config, **kwargs):
                pieces.append(piece)
                yield piece
            ending = "whole"
        finally:
            await run_sync(self._end_stream, governor, turn, pieces, ending)

    # -- before ---------------------------------------------------------------

    def _governor(self, config: RunnableConfig) -> ContextGovernor:
        if self._session_id is not None:
            return self._governors.current()
        session = config.get("configurable", {}).get(self._session_key)
        if not isinstance(session, str) or not session:
            raise MissingSessionError(self._session_key)
        return self._governors.of(session)

    def _begin(self, governor: ContextGovernor, value: Any, by: Caller) -> tuple[Any, Turn]:
        """Store the turn, and return the request that asks it."""
        turn = self._store_turn(governor, self._turn_messages(value), by)
        prompt = governor.build_prompt(
            at=turn.event_id, system_prompt=self._system_prompt, reserve_tokens=self._reserve
        )
        if self._history_key is None:
            messages = to_langchain(prompt)
            return ({**value, self._input_key: messages} if self._is_mapping(value) else messages), turn
        return {**value, self._history_key: self._history(prompt)}, turn

    def _is_mapping(self, value: Any) -> bool:
        return isinstance(value, Mapping) and self._input_key is not None

    def _history(self, prompt: GovernedPrompt) -> list[BaseMessage]:
        return to_langchain(prompt, origins=_VIEW)

    def _turn_messages(self, value: Any) -> list[BaseMessage]:
        given = value[self._input_key] if isinstance(value, Mapping) and self._input_key is not None else value
        if isinstance(given, Mapping):
            raise InvalidInputError("input", "is a mapping; name the key of the new turn with input_messages_key")
        return list(given) if _are_messages(given) else [as_human(given)]

    def _store_turn(self, governor: ContextGovernor, messages: Sequence[BaseMessage], by: Caller) -> Turn:
        if len(messages) == 1 and isinstance(messages[0], HumanMessage) and messages[0].id is None:
            return begin_turn(governor, messages[0], self._turns, by)
        fields = [event_fields(message) for message in messages]
        stored = store_messages(governor, fields)
        turn = Turn(governor.key.session_id, stored[-1].event_id, str(messages[-1].content))
        self._turns.begin(turn, by)
        return turn

    # -- after ----------------------------------------------------------------

    def _commit(self, governor: ContextGovernor, turn: Turn, output: Any, *, partial: bool = False) -> None:
        replies = self._replies(output)
        marks: dict[str, Any] = {"metadata": {"partial": True}} if partial else {}
        governor.record_many({**event_fields(reply), "reply_to": turn.event_id, **marks} for reply in replies)
        self._turns.end(turn)

    def _replies(self, output: Any) -> list[BaseMessage]:
        if isinstance(output, Mapping):
            key = self._output_key or next(iter(output), None)
            output = output.get(key)
        return list(output) if _are_messages(output) else [as_ai(output)]

    def _end_stream(self, governor: ContextGovernor, turn: Turn, pieces: Sequence[Any], ending: str) -> None:
        if not pieces or (ending == "partial" and not self._keep_partial):
            return
        self._commit(governor, turn, _joined(pieces), partial=ending == "partial")


def _are_messages(value: Any) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, BaseMessage) for one in value)


def _joined(pieces: Sequence[Any]) -> Any:
    """Return the pieces of a stream as the one output they make."""
    if all(isinstance(piece, BaseMessageChunk) for piece in pieces):
        whole = pieces[0]
        for piece in pieces[1:]:
            whole = whole + piece
        return message_chunk_to_message(whole)
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    if all(isinstance(piece, Mapping) for piece in pieces):
        keys = dict.fromkeys(key for piece in pieces for key in piece)
        return {key: _joined([piece[key] for piece in pieces if key in piece]) for key in keys}
    return pieces[-1]
