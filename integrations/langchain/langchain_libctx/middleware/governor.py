"""`ContextGovernorMiddleware`: bounded, valid, cache-friendly requests for `create_agent`."""

import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core import exceptions
from langchain_core.messages import BaseMessage, RemoveMessage

from langchain_libctx.extras import extra
from langchain_libctx.messages import canonical_content, role_of
from langchain_libctx.middleware.budget import TokenBudget, ToolTokens, budget_of, name_of
from langchain_libctx.middleware.envelope import Envelope, StateMessages, envelope_of, system_message
from langchain_libctx.middleware.reconcile import Recorder, SeenSessions, from_agent, names_of, with_ids
from langchain_libctx.middleware.requests import added, conversation
from langchain_libctx.middleware.sessions import claims_of, governor_of
from langchain_libctx.middleware.tools import RECALL_NOTE, paging_tools
from langchain_libctx.opening import LibrarySource, open_library
from langchain_libctx.sessions import Governors, SessionId
from libctx_core.access.metadata import ResourceMetadata
from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.errors import EventNotFoundError, TurnTooLargeError
from libctx_core.governor import ContextGovernor, GovernedPrompt

with extra("agents", "ContextGovernorMiddleware"):
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain.agents.middleware.types import ExtendedModelResponse
    from langgraph.config import get_config
    from langgraph.types import Command

_OVERFLOW: tuple[type[Exception], ...] = tuple(
    kind for kind in (getattr(exceptions, "ContextOverflowError", None),) if kind is not None
)
_POOLS = 16
_REBUILDS = 3


@dataclass(frozen=True, slots=True)
class _Call:
    """One model call on its way.

    Attributes:
        asked: The request as it came.
        sent: The request that goes to the model.
        recorder: Records what the model answers.
        state: The agent's messages.
        last: Event id of the state's last message.
        envelope: What the request was built from.
        budget: Tokens it may hold.
    """

    asked: Any
    sent: Any
    recorder: Recorder
    state: Sequence[BaseMessage]
    last: str | None
    envelope: Envelope
    budget: int


class ContextGovernorMiddleware(AgentMiddleware[Any, Any, Any]):
    """Lets a governor decide what the model of an agent sees.

    Every message of the state becomes a durable event; each request holds the running
    turn, the recent messages, what is protected and what matters from before, within the
    model's window. Requests are valid for every provider, tool calls and their results
    are never split, messages of the model stay byte for byte, and two consecutive
    requests share their prefix. It uses wrap hooks only, so it adds no checkpoint.

    Place it after (inside) middleware that rewrites messages, such as `PIIMiddleware`.

    Args:
        library: An open library or view, or a path that this object then owns.
        session_id: The thread, or a callable that names it; by default the LangGraph
            ``thread_id``. Sub-agents get threads of their own beside it.
        collection: Namespace of the threads; the library's by default.
        owner: The user they belong to.
        scope: Held for every call.
        resource: Access metadata for threads created under a scope.
        token_budget: Tokens of a request, system message and tools included: a number, a
            share of the model's window (a float), a function of the request, or None for
            nine tenths of the window that the model's profile tells.
        evict_state: Remove messages from the agent's state once they are paged out, so that
            checkpoints stay small; they remain in the library.
        recall_tools: Offer the model the tools ``recall_paged`` and ``open_page``.
        protect_tools: Names of tools whose results are protected.
        **options: Further arguments of `open_context_governor`.

    Raises:
        OptionalDependencyError: langchain is not installed.
    """

    def __init__(
        self,
        library: LibrarySource,
        session_id: SessionId | None = None,
        *,
        collection: str | None = None,
        owner: str | None = None,
        scope: Scope | None = None,
        resource: ResourceMetadata | Callable[[str], ResourceMetadata] | None = None,
        token_budget: TokenBudget = None,
        evict_state: bool = False,
        recall_tools: bool = True,
        protect_tools: Iterable[str] = (),
        **options: Any,
    ) -> None:
        super().__init__()
        self._library, self._owned = open_library(library, scope)
        self._session_id = session_id
        self._token_budget = token_budget
        self._evict_state = evict_state
        self._protect_tools = frozenset(protect_tools)
        self._options = {"collection": collection, "owner": owner, "resource": resource, **options}
        self._pools: OrderedDict[tuple[int | None, str | None], Governors] = OrderedDict()
        self._seen = SeenSessions()
        self._claims = claims_of(self._library.database)
        self._tool_tokens = ToolTokens()
        self._note = RECALL_NOTE if recall_tools else ""
        self.collection = collection or self._library.namespace
        self.tools = paging_tools(self._tool_governor) if recall_tools else []

    @property
    def name(self) -> str:
        """Name of the instance; two governors of different collections may be combined."""
        return f"{type(self).__name__}[{self.collection}]"

    def close(self) -> None:
        """Close the library if this object opened it."""
        if self._owned is not None:
            self._owned.close()

    # -- hooks ----------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Record the state, send the governed request, record the reply.

        Raises:
            MissingSessionError: The configuration names no thread.
            TurnTooLargeError: The running turn does not fit the budget.
            StoreError: A message could not be stored durably.
        """
        call = self._begin(request, get_config())
        self._tell(call)
        try:
            response = handler(call.sent)
        except _OVERFLOW as error:
            call = self._smaller(call, error)
            self._tell(call)
            response = handler(call.sent)
        return self._finish(call, response)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """See `wrap_model_call`; one thread hop before the model and one after it."""
        call = await run_sync(self._begin, request, get_config())
        self._tell(call)
        try:
            response = await handler(call.sent)
        except _OVERFLOW as error:
            call = await run_sync(self._smaller, call, error)
            self._tell(call)
            response = await handler(call.sent)
        return await run_sync(self._finish, call, response)

    # -- before the model -----------------------------------------------------

    def _begin(self, request: Any, config: Any) -> _Call:
        state = conversation(request.messages, (request.state or {}).get("messages") or request.messages)
        budget = budget_of(request, self._token_budget)
        governor = governor_of(
            self._pool(budget, name_of(request.model)), config, state, self._session_id, self._claims
        )
        recorder = Recorder(governor, self._seen.of(governor), self._protect_tools)
        last = recorder.reconcile(state)
        return self._build(request, recorder, state, last, budget)

    def _pool(self, budget: int | None, model: str | None) -> Governors:
        key = (budget, model)
        pool = self._pools.get(key)
        if pool is None:
            options = {**self._options, "token_budget": budget}
            if model is not None and "tokenizer" not in options:
                options["model"] = model
            pool = self._pools[key] = Governors(self._library, _unresolved, **options)
            while len(self._pools) > _POOLS:
                self._pools.popitem(last=False)
        return pool

    def _build(
        self, request: Any, recorder: Recorder, state: Sequence[BaseMessage], last: str | None, budget: int
    ) -> _Call:
        governor = recorder.governor
        sent = StateMessages(request.messages)
        extra_messages = added(request.messages, state)
        reserved = self._tool_tokens.count(request.tools, request.response_format, governor.counter) + sum(
            governor.counter.count_message({"role": role_of(message), "content": canonical_content(message)})
            for message in extra_messages
        )
        base = request.system_message
        prompt = self._prompt(governor, state, last, base.text if base is not None else "", reserved)
        envelope = envelope_of(prompt, sent, extra_messages, reserved)
        system = system_message(base, self._note, envelope.system)
        return _Call(
            asked=request,
            sent=request.override(messages=list(envelope.messages), system_message=system),
            recorder=recorder,
            state=state,
            last=last,
            envelope=envelope,
            budget=budget,
        )

    def _prompt(
        self, governor: ContextGovernor, state: Sequence[BaseMessage], last: str | None, system: str, reserved: int
    ) -> GovernedPrompt:
        """Build the prompt; messages that were removed from the middle of the state are left out."""
        head = "\n\n".join(filter(None, (system, self._note)))
        hidden: set[str] = set()
        index = StateMessages(state)
        for _ in range(_REBUILDS):
            prompt = governor.build_prompt(
                system_prompt=head, at=last, reserve_tokens=reserved, hide=hidden, upcoming=last is None
            )
            removed = self._removed(governor, prompt, state, index)
            if not removed:
                break
            hidden |= removed
        return prompt

    def _removed(
        self, governor: ContextGovernor, prompt: GovernedPrompt, state: Sequence[BaseMessage], index: StateMessages
    ) -> set[str]:
        """Return shown events that stand between messages of the state and are no longer in it."""
        absent = [
            part.event
            for part in prompt.parts
            if part.event is not None
            and part.origin in ("recent", "turn")
            and from_agent(part.event)
            and index.get(part.event.event_id) is None
        ]
        if not absent or not state:
            return set()
        for name in names_of(state[0], 0):
            try:
                first = governor.open_event(name).sequence
            except EventNotFoundError:
                continue
            return {event.event_id for event in absent if event.sequence > first}
        return set()

    def _smaller(self, call: _Call, error: Exception) -> _Call:
        """Build the request again at half its size, after the provider found it too long."""
        budget = max(1, min(call.budget, call.envelope.tokens) // 2)
        governor = self._pool(budget, name_of(call.asked.model)).of(call.recorder.governor.key.session_id)
        recorder = Recorder(governor, call.recorder.seen, self._protect_tools)
        try:
            return self._build(call.asked, recorder, call.state, call.last, budget)
        except TurnTooLargeError:
            raise error from None

    def _tell(self, call: _Call) -> None:
        """Emit paging statistics on the custom stream."""
        runtime = call.asked.runtime
        writer = getattr(runtime, "stream_writer", None)
        if writer is not None:
            writer({"libctx": call.envelope.statistics()})

    # -- after the model ------------------------------------------------------

    def _finish(self, call: _Call, response: ModelResponse[Any]) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        with_ids(response.result, lambda: str(uuid.uuid4()))
        call.recorder.record_reply(response.result, call.last)
        evicted = self._evictable(call) if self._evict_state else []
        if not evicted:
            return response
        return ExtendedModelResponse(model_response=response, command=Command(update={"messages": evicted}))

    def _evictable(self, call: _Call) -> list[RemoveMessage]:
        """Return removals of everything before the oldest message that was shown."""
        wanted = set(call.envelope.shown)
        place = len(call.state)
        while place and wanted:
            place -= 1
            wanted.difference_update(names_of(call.state[place], place))
        return [RemoveMessage(id=message.id) for message in call.state[:place] if message.id is not None]

    def _tool_governor(self, config: Any, messages: Sequence[BaseMessage]) -> ContextGovernor:
        return governor_of(self._pool(None, None), config, messages, self._session_id, self._claims)


def _unresolved() -> str:
    raise AssertionError("the middleware names every session itself")
