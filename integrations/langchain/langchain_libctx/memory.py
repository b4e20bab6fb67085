"""`LibraryMemory`: the ``memory=`` of classic chains, bounded and durable.

Needs the extra ``langchain-libctx[classic]``.
"""

import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

from langchain_core.messages import BaseMessage, get_buffer_string
from pydantic import ConfigDict, PrivateAttr

from langchain_libctx.agent_steps import STEPS_KEY, step_messages
from langchain_libctx.chat_message_histories import LibraryChatMessageHistory
from langchain_libctx.extras import extra
from langchain_libctx.messages import as_ai, as_human, event_fields, message_from_event, message_from_prompt, usable_id
from langchain_libctx.opening import LibrarySource, open_library
from langchain_libctx.sessions import Governors, SessionId, configurable_session
from langchain_libctx.turns import Caller, OpenTurns, Turn, TurnMessages, TurnText, begin_turn, caller
from libctx_core.access.metadata import ResourceMetadata
from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.governor import ContextGovernor, GovernedPrompt
from libctx_core.library import LibraryOfContext
from libctx_core.models import new_id

with extra("classic", "LibraryMemory"):
    from langchain_classic.memory.chat_memory import BaseChatMemory
    from langchain_classic.memory.readonly import ReadOnlySharedMemory
    from langchain_classic.memory.utils import get_prompt_input_key

_VIEW = frozenset({"system", "protected", "recent", "desk"})
"""Origins of a prompt's messages that are memory; the running turn is the chain's own input."""

_INPUT_NAMES = ("input", "question", "query", "human_input")
_OUTPUT_NAMES = ("output", "answer", "response", "result", "text")


class LibraryMemory(BaseChatMemory):
    """Memory of a classic chain: everything is stored, a bounded view is shown.

    Loading stores the user's turn before anything else and returns the part of the
    conversation that fits the budget: protected and recent messages, and older ones that
    matter to the question. Saving stores the reply, and the tool steps of an agent, as
    the answer to exactly that turn, however many turns run at the same time.

    ``chat_memory.messages`` is the whole conversation, ``buffer`` the bounded view.

    Args:
        library: An open library or view, or a path that this object then owns.
        session_id: The conversation, or a callable that names it per call, for instance
            `configurable_session`. None reads ``config["configurable"]["session_id"]``.
        collection: Its namespace; the library's by default.
        owner: The user it belongs to.
        scope: Held for every call.
        resource: Access metadata for a conversation that is created under a scope.
        token_budget: Tokens of one request: view, question and `reserve_tokens`.
        reserve_tokens: What the rest of the chain's prompt needs.
        model: Chooses the token counter.
        memory_key: Name of the variable that carries the view.
        input_key: Name of the chain's input, where it has several.
        output_key: Name of the chain's output, where it has several.
        return_messages: Return messages instead of text.
        human_prefix: Name of the user in text.
        ai_prefix: Name of the model in text.
        options: Further arguments of `open_context_governor`.

    Raises:
        OptionalDependencyError: langchain-classic is not installed.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    memory_key: str = "history"
    human_prefix: str = "Human"
    ai_prefix: str = "AI"
    reserve_tokens: int = 0

    _governors: Governors = PrivateAttr()
    _turns: OpenTurns = PrivateAttr(default_factory=OpenTurns)
    _owned: LibraryOfContext | None = PrivateAttr(default=None)

    def __init__(
        self,
        library: LibrarySource,
        session_id: SessionId | None = None,
        *,
        collection: str | None = None,
        owner: str | None = None,
        scope: Scope | None = None,
        resource: ResourceMetadata | Callable[[str], ResourceMetadata] | None = None,
        token_budget: int | None = None,
        model: str | None = None,
        options: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        view, owned = open_library(library, scope)
        settings: dict[str, Any] = {
            "resource": resource,
            "collection": collection,
            "owner": owner,
            "model": model,
            **(options or {}),
        }
        session = configurable_session() if session_id is None else session_id
        super().__init__(chat_memory=LibraryChatMessageHistory(view, session, **settings), **fields)
        self._governors = Governors(view, session, token_budget=token_budget, **settings)
        self._owned = owned

    @property
    def governor(self) -> ContextGovernor:
        """The governor of the session that this call belongs to."""
        return self._governors.current()

    @property
    def memory_variables(self) -> list[str]:
        """The one variable this memory adds."""
        return [self.memory_key]

    # -- loading --------------------------------------------------------------

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Store the user's turn and return the view that belongs to it.

        Without an input there is no turn: the view of the conversation so far is returned
        and nothing is stored. Asking the same again after the model failed stores nothing
        twice.

        Raises:
            BlankContentError: The input is empty.
            TurnTooLargeError: The input alone exceeds the budget.
            MissingSessionError: The configuration should name the session and does not.
            ValueError: Several inputs, and no `input_key`.
        """
        if _asked_by(ReadOnlySharedMemory):
            # a wrapper that promises not to write: its input is no turn of this conversation
            return {self.memory_key: self._variable(self._now(), None)}
        return self._load(inputs, self.governor, caller())

    async def aload_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """See `load_memory_variables`; one thread hop."""
        return await run_sync(self._load, inputs, self.governor, caller())

    def _load(self, inputs: dict[str, Any], governor: ContextGovernor, by: Caller) -> dict[str, Any]:
        said = self._input(inputs)
        if said is None:
            return {self.memory_key: self._variable(self._upcoming(governor), None)}
        turn = begin_turn(governor, said, self._turns, by)
        prompt = governor.build_prompt(at=turn.event_id, reserve_tokens=self.reserve_tokens)
        return {self.memory_key: self._variable(prompt, turn)}

    def _input(self, inputs: Mapping[str, Any]) -> BaseMessage | None:
        own = (self.memory_key, "stop")
        given = {
            key: value
            for key, value in inputs.items()
            if key not in own and not isinstance(value, TurnText | TurnMessages)
        }
        if self.input_key is not None:
            return as_human(inputs[self.input_key])
        if not given:
            return None
        known = [name for name in _INPUT_NAMES if name in given]
        return as_human(given[known[0] if len(known) == 1 else get_prompt_input_key(given, self.memory_variables)])

    def _variable(self, prompt: GovernedPrompt, turn: Turn | None) -> TurnText | TurnMessages:
        if self.return_messages:
            messages = TurnMessages(_view(prompt))
            messages.turn = turn
            return messages
        return TurnText.of(self._text(prompt), turn)

    def _text(self, prompt: GovernedPrompt) -> str:
        lines = []
        for part, message in zip(prompt.parts, _shown(prompt), strict=True):
            if part.origin in ("desk", "synthetic") or (part.origin == "protected" and part.record_ids):
                lines.append(str(message.content))
            elif part.origin in _VIEW:
                lines.append(get_buffer_string([message], self.human_prefix, self.ai_prefix))
        return "\n".join(lines)

    @property
    def buffer(self) -> str | list[BaseMessage]:
        """The bounded view, as text or as messages."""
        return self.buffer_as_messages if self.return_messages else self.buffer_as_str

    @property
    def buffer_as_messages(self) -> list[BaseMessage]:
        """The bounded view as messages."""
        return _view(self._now())

    @property
    def buffer_as_str(self) -> str:
        """The bounded view as text."""
        return self._text(self._now())

    def _now(self) -> GovernedPrompt:
        return self._upcoming(self.governor)

    def _upcoming(self, governor: ContextGovernor) -> GovernedPrompt:
        return governor.build_prompt(upcoming=True, reserve_tokens=self.reserve_tokens)

    # -- saving ---------------------------------------------------------------

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """Store the reply, and an agent's tool steps, as the answer to the turn they belong to.

        Raises:
            ValueError: No output that could be the reply, or several inputs and no `input_key`.
            StoreError: The reply could not be stored durably.
        """
        self._save(inputs, outputs, self._governor_of(inputs), caller())

    async def asave_context(self, inputs: dict[str, Any], outputs: dict[str, Any]) -> None:
        """See `save_context`; one thread hop."""
        await run_sync(self._save, inputs, outputs, self._governor_of(inputs), caller())

    def _governor_of(self, inputs: Mapping[str, Any]) -> ContextGovernor:
        turn = self._loaded_turn(inputs)
        return self.governor if turn is None else self._governors.of(turn.session_id)

    def _loaded_turn(self, inputs: Mapping[str, Any]) -> Turn | None:
        variable = inputs.get(self.memory_key)
        return variable.turn if isinstance(variable, TurnText | TurnMessages) else None

    def _save(self, inputs: dict[str, Any], outputs: dict[str, Any], governor: ContextGovernor, by: Caller) -> None:
        replies = [*step_messages(outputs.get(STEPS_KEY)), as_ai(outputs[self._output_key(outputs)])]
        turn = self._loaded_turn(inputs)
        said = None if turn is not None else self._input(inputs)
        if said is not None:
            turn = self._turns.waiting(governor.key.session_id, str(said.content), by)
        fields: list[dict[str, Any]] = []
        question = None if turn is None else turn.event_id
        if turn is None and said is not None:
            # saved without having been loaded: the turn and its answer are stored together
            question = usable_id(said.id) or new_id("evt")
            fields.append(event_fields(said, event_id=question))
        fields.extend({**event_fields(reply), "reply_to": question} for reply in replies)
        governor.record_many(fields)
        if turn is not None:
            self._turns.end(turn)

    def _output_key(self, outputs: Mapping[str, Any]) -> str:
        """Return the output that is the reply; with a warning where it had to be guessed."""
        if self.output_key is not None:
            return self.output_key
        names = [name for name in outputs if name != STEPS_KEY]
        if len(names) == 1:
            return names[0]
        for name in (*_OUTPUT_NAMES, *(name for name in names if isinstance(outputs[name], str))):
            if name in names:
                warnings.warn(
                    f"LibraryMemory got the outputs {names} and stores {name!r} as the reply; "
                    "set output_key to choose another",
                    stacklevel=4,
                )
                return name
        raise ValueError(f"none of the outputs {names} can be the reply; set output_key")

    # -- housekeeping ---------------------------------------------------------

    def clear(self) -> None:
        """Delete the conversation and everything derived from it."""
        self.chat_memory.clear()

    async def aclear(self) -> None:
        """See `clear`; one thread hop."""
        await self.chat_memory.aclear()

    def close(self) -> None:
        """Close the library if this object opened it."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # copying a chain shares its memory; the file cannot be copied by copying the object
        return self


def _asked_by(kind: type) -> bool:
    """Tell whether the method that called this one was called by an object of a kind."""
    frame = inspect.currentframe()
    asking = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    return asking is not None and isinstance(asking.f_locals.get("self"), kind)


def _shown(prompt: GovernedPrompt) -> list[BaseMessage]:
    return [
        message_from_event(part.event)
        if part.event is not None and not part.cut
        else message_from_prompt(message, part.event_id)
        for message, part in zip(prompt.messages, prompt.parts, strict=True)
    ]


def _view(prompt: GovernedPrompt) -> list[BaseMessage]:
    return [message for part, message in zip(prompt.parts, _shown(prompt), strict=True) if part.origin in _VIEW]
