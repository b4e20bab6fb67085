"""An agent on a scripted model, driven through everything that happens to agents."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import Field

from langchain_libctx.extras import extra

with extra("agents", "the middleware suite"):
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
    from langgraph.checkpoint.memory import InMemorySaver


class Cancelled(BaseException):
    """What a cancelled run looks like from inside a tool."""


@dataclass(slots=True)
class Reply:
    """One scripted answer of the model.

    Attributes:
        calls: Tools called in parallel; each a mode of the tool: ``ok``, ``huge``,
            ``fail`` or ``cancel``, or ``delegate``, which hands a task to a sub-agent.
        text: What it says beside them.
        thinking: Whether it carries a signed thinking block.
        broken: Whether it also makes a call whose arguments cannot be parsed.
    """

    calls: tuple[str, ...] = ()
    text: str = "done"
    thinking: bool = False
    broken: bool = False


class ScriptedModel(BaseChatModel):
    """A chat model that answers from a script and keeps every request it gets."""

    script: list[Any] = Field(default_factory=list)
    requests: list[Any] = Field(default_factory=list)
    windows: list[Any] = Field(default_factory=list)
    bound_tools: list[Any] = Field(default_factory=list)
    counter: ClassVar[Any] = itertools.count()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Remember the tools and go on."""
        self.bound_tools[:] = list(tools)
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self.requests.append([message.model_copy(deep=True) for message in messages])
        self.windows.append((self.profile or {}).get("max_input_tokens"))
        step = self.script.pop(0) if self.script else Reply()
        if isinstance(step, BaseException):
            raise step
        if isinstance(step, AIMessage):
            return ChatResult(generations=[ChatGeneration(message=step)])
        return ChatResult(generations=[ChatGeneration(message=self._message(step))])

    def _message(self, reply: Reply) -> AIMessage:
        calls = [
            {"name": "delegate", "args": {"number": number}, "id": f"call_{number}"}
            if mode == "delegate"
            else {"name": "work", "args": {"mode": mode, "number": number}, "id": f"call_{number}"}
            for mode, number in ((mode, next(self.counter)) for mode in reply.calls)
        ]
        content: Any = reply.text
        if reply.thinking:
            content = [
                {"type": "thinking", "thinking": f"thoughts on {reply.text}", "signature": f"sig{next(self.counter)}"},
                {"type": "text", "text": reply.text},
            ]
        broken = (
            [{"name": "work", "args": "{not json", "id": f"call_{next(self.counter)}", "error": "bad"}]
            if reply.broken
            else []
        )
        return AIMessage(content, tool_calls=calls, invalid_tool_calls=broken)


TASK = "task for a helper"
"""How everything begins that a sub-agent is asked."""

HUGE = "row of a long table, number {}; "


@tool
def work(mode: str, number: int) -> str:
    """Do something.

    Args:
        mode: What happens.
        number: Which call it is.
    """
    if mode == "cancel":
        raise Cancelled
    if mode == "fail":
        raise ValueError(f"work {number} failed")
    if mode == "huge":
        return "".join(HUGE.format(line) for line in range(400))
    return f"result of work {number}"


class _Switch(AgentMiddleware[Any, Any, Any]):
    """Stands for a fallback or a router: another model answers this call."""

    def __init__(self) -> None:
        super().__init__()
        self.model: Any = None

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request if self.model is None else request.override(model=self.model))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return await handler(request if self.model is None else request.override(model=self.model))


@dataclass
class AgentRun:
    """One agent with a thread, and what can happen to it.

    Attributes:
        middleware: The middleware under test.
        window: Input window that the model's profile tells.
        system_prompt: The agent's system prompt.
        thread: LangGraph thread of the runs.
        tools: Further tools of the agent.
        outer: Middleware around the one under test.
        requests: Every request the models got.
        windows: Input window of the model that got it.
        delegated: Every request the models of sub-agents got.
    """

    middleware: AgentMiddleware[Any, Any, Any]
    window: int = 4_000
    system_prompt: str = "You are an agent."
    thread: str = "thread"
    tools: Sequence[Any] = ()
    outer: Sequence[AgentMiddleware[Any, Any, Any]] = ()
    model: ScriptedModel = field(init=False)
    graph: Any = field(init=False)
    requests: list[list[BaseMessage]] = field(default_factory=list)
    windows: list[int] = field(default_factory=list)
    delegated: list[list[BaseMessage]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model = self.model_with(self.window)
        self._switch = _Switch()
        self.graph = create_agent(
            self.model,
            [work, self._delegation(), *self.tools],
            system_prompt=self.system_prompt,
            middleware=[*self.outer, self._switch, self.middleware],
            checkpointer=InMemorySaver(),
        )

    def _delegation(self) -> Any:
        """Return a tool behind which a sub-agent works under the same middleware."""

        @tool
        def delegate(number: int) -> str:
            """Hand a task to a helper.

            Args:
                number: Which call it is.
            """
            model = ScriptedModel(
                script=[Reply(calls=("ok", "ok")), Reply(text=f"answer of helper {number}")],
                profile={"max_input_tokens": self.window},
            )
            model.requests = self.delegated
            helper = create_agent(model, [work], system_prompt="You help.", middleware=[self.middleware])
            return str(helper.invoke({"messages": [HumanMessage(f"{TASK} {number}")]})["messages"][-1].content)

        return delegate

    def model_with(self, window: int) -> ScriptedModel:
        """Return a model of the run that tells another window."""
        model = ScriptedModel(profile={"max_input_tokens": window})
        if hasattr(self, "model"):
            model.script = self.model.script
        model.requests, model.windows = self.requests, self.windows
        return model

    @property
    def config(self) -> Any:
        """Configuration of the run's thread."""
        return {"configurable": {"thread_id": self.thread}}

    @property
    def state(self) -> list[BaseMessage]:
        """Messages of the agent's state."""
        found: list[BaseMessage] = self.graph.get_state(self.config).values.get("messages", [])
        return found

    def ask(self, text: Any, *replies: Any, config: Any = None) -> list[BaseMessage]:
        """Give the agent a user message and let the model answer from the script; a cancelled run just ends."""
        self.model.script[:] = list(replies)
        try:
            self.graph.invoke({"messages": [HumanMessage(text)]}, config or self.config)
        except (Cancelled, ConnectionError, ValueError):
            return self.state
        return self.state

    async def aask(self, text: Any, *replies: Any) -> list[BaseMessage]:
        """Do the same on the event loop."""
        self.model.script[:] = list(replies)
        await self.graph.ainvoke({"messages": [HumanMessage(text)]}, self.config)
        return self.state

    def fork(self, back: int, text: str, *replies: Any) -> None:
        """Go back some checkpoints and say something else."""
        history = [item for item in self.graph.get_state_history(self.config) if not item.next]
        if history:
            self.ask(text, *replies, config=history[min(back, len(history) - 1)].config)

    def edit(self, place: int, text: str) -> None:
        """Rewrite a message of the state under its own id, as PII middleware does."""
        if self.state:
            message = self.state[place % len(self.state)]
            if isinstance(message, HumanMessage):
                self.graph.update_state(self.config, {"messages": [HumanMessage(text, id=message.id)]})

    def remove(self, place: int) -> None:
        """Remove one exchange from the state: a user message and all up to the next one."""
        state = self.state
        starts = [at for at, message in enumerate(state) if isinstance(message, HumanMessage)]
        if len(starts) < 2:
            return
        at = starts[place % (len(starts) - 1)]
        end = next(start for start in starts if start > at)
        self.graph.update_state(
            self.config, {"messages": [RemoveMessage(id=str(message.id)) for message in state[at:end]]}
        )

    def switch(self, window: int | None) -> None:
        """Let a model with another window answer from now on, or the first one again."""
        self._switch.model = None if window is None else self.model_with(window)

    def body(self, request: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return a request without its system message."""
        return [message for message in request if not isinstance(message, SystemMessage)]
