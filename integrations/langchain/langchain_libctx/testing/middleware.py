"""What agents do to a context middleware, and what every request must look like."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core import exceptions
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_libctx.extras import extra
from langchain_libctx.testing.agents import TASK, AgentRun, Reply
from langchain_libctx.testing.envelopes import call_ids, violations

with extra("agents", "the middleware suite"):
    from langchain.agents.middleware import PIIMiddleware

MAIL = "ada@example.org"
"""What a middleware around the one under test takes out of every message of the user."""

_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
_MEDIA = st.sampled_from(
    [
        {"type": "image", "base64": _PIXEL, "mime_type": "image/png"},
        {"type": "audio", "base64": "UklGR" * 8_000, "mime_type": "audio/wav"},
    ]
).map(lambda block: [{"type": "text", "text": "look at this"}, dict(block)])

_TEXTS = st.one_of(
    st.text("abcdefghij klm", min_size=1, max_size=60).filter(str.strip),
    st.sampled_from(
        [
            "Where is the harbour?",
            "港口在哪里？" * 20,
            "def f(x):\n    return x ** 2\n" * 12,
            "🧭 " * 30,
            "word " * 120,
        ]
    ),
)
# a sub-agent beside a cancelled call would go on in a thread that nobody waits for
_CALLS = st.one_of(
    st.lists(st.sampled_from(["ok", "ok", "huge", "cancel"]), min_size=1, max_size=3),
    st.lists(st.sampled_from(["ok", "huge", "delegate"]), min_size=1, max_size=3),
)
_REPLIES = st.lists(
    st.builds(
        Reply,
        calls=_CALLS.map(tuple),
        text=st.sampled_from(["", "let me see"]),
        thinking=st.booleans(),
        broken=st.booleans(),
    ),
    max_size=3,
).map(lambda steps: (*steps, Reply()))

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), _TEXTS, _REPLIES),
        st.tuples(st.just("ask"), _TEXTS, _REPLIES),
        st.tuples(st.just("ask"), st.one_of(_TEXTS, _MEDIA), _REPLIES),
        st.tuples(st.just("fork"), st.integers(0, 3), _TEXTS, _REPLIES),
        st.tuples(st.just("edit"), st.integers(0, 30), _TEXTS),
        st.tuples(st.just("remove"), st.integers(0, 5)),
        st.tuples(st.just("switch"), st.sampled_from([None, 900, 3_000])),
    ),
    min_size=1,
    max_size=8,
)
"""Random lives of an agent: turns with parallel tools, huge results, sub-agents, thinking, calls
that cannot be parsed, pictures and sound, cancelled runs, forks, edits, removals and model switches."""


def play(run: AgentRun, steps: Sequence[tuple[Any, ...]]) -> None:
    """Let all that happen to an agent."""
    for kind, *rest in steps:
        if kind == "ask":
            run.ask(rest[0], *rest[1])
        elif kind == "fork":
            run.fork(rest[0], rest[1], *rest[2])
        elif kind == "edit":
            run.edit(rest[0], rest[1])
        elif kind == "remove":
            run.remove(rest[0])
        else:
            run.switch(rest[0])


class MiddlewareSuite(ABC):
    """Behaviours of a context middleware under `create_agent`; subclass it and say how one is made."""

    @abstractmethod
    def new_middleware(self, **options: Any) -> Any:
        """Return a fresh middleware with an empty log whose budget follows the model's profile."""

    @abstractmethod
    def count(self, messages: Sequence[BaseMessage]) -> int:
        """Return the tokens of a request, its system message included, as the model would count."""

    # -- V1 to V12 as properties -----------------------------------------------

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=STEPS)
    def test_every_request_is_valid_and_bounded(self, steps: list[tuple[Any, ...]]) -> None:
        """V1 to V5, V8 to V12: whatever happened, a provider takes the request and it fits."""
        run = AgentRun(self.new_middleware(), window=2_000)
        play(run, steps)
        for request, window in zip(run.requests, run.windows, strict=True):
            assert violations(request) == []
            assert self.count(request) <= window

    @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=STEPS)
    def test_agents_and_their_helpers_do_not_mix(self, steps: list[tuple[Any, ...]]) -> None:
        """A sub-agent is asked its own task only, and its parent sees nothing of its conversation."""
        run = AgentRun(self.new_middleware(), window=2_000)
        run.ask("who can help?", Reply(calls=("delegate", "ok", "delegate")), Reply())
        play(run, steps)
        assert len(run.delegated) >= 4
        for request in run.delegated:
            assert violations(request) == []
            assert self.count(request) <= run.window
            (asked,) = [message for message in request if isinstance(message, HumanMessage)]
            assert str(asked.content).startswith(TASK)
        for request in run.requests:
            assert not any(isinstance(message, HumanMessage) and TASK in str(message.content) for message in request)

    @settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), _TEXTS, _REPLIES), min_size=1, max_size=5))
    def test_rewritten_messages_are_sent_as_rewritten(self, steps: list[tuple[Any, ...]]) -> None:
        """Inside a middleware that takes personal data out, no request ever holds them, forks included."""
        run = AgentRun(self.new_middleware(), window=2_000, outer=[PIIMiddleware("email")])
        for back, text, replies in steps:
            if back is None:
                run.ask(f"I am {MAIL}. {text}", *replies)
            else:
                run.fork(back, f"I am {MAIL}. {text}", *replies)
        for request, window in zip(run.requests, run.windows, strict=True):
            assert violations(request) == []
            assert self.count(request) <= window
            assert MAIL not in str(request)

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=STEPS)
    def test_the_models_own_messages_stay_untouched(self, steps: list[tuple[Any, ...]]) -> None:
        """V7: what the model said is sent byte for byte, or not at all."""
        run = AgentRun(self.new_middleware(), window=2_000)
        play(run, steps)
        said = {message.id: message.model_dump() for message in self._all_states(run) if isinstance(message, AIMessage)}
        for request in run.requests:
            for message in request:
                if isinstance(message, AIMessage) and message.id in said:
                    assert message.model_dump() == said[message.id]

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(text=_TEXTS, replies=_REPLIES)
    def test_the_running_turn_is_whole(self, text: str, replies: tuple[Reply, ...]) -> None:
        """V6: while tools run, every message since the last user message is there, in order."""
        run = AgentRun(self.new_middleware(), window=2_000)
        for number in range(6):
            run.ask(f"earlier question {number}", Reply(calls=("ok",)), Reply())
        before = len(run.requests)
        run.ask(text, *replies)
        turn = run.state[max(at for at, m in enumerate(run.state) if isinstance(m, HumanMessage)) :]
        for request in run.requests[before:]:
            body = run.body(request)
            start = max(at for at, message in enumerate(body) if isinstance(message, HumanMessage))
            assert body[start].content == text
            sent = [message for message in body[start:] if not isinstance(message, ToolMessage)]
            assert [message.id for message in sent] == [
                message.id for message in turn if not isinstance(message, ToolMessage)
            ][: len(sent)]

    def _all_states(self, run: AgentRun) -> list[BaseMessage]:
        return [
            message for item in run.graph.get_state_history(run.config) for message in item.values.get("messages", [])
        ]

    # -- single cases ------------------------------------------------------------

    def test_parallel_results_stay_with_their_calls(self) -> None:
        """A group of calls and results is one unit at any budget."""
        run = AgentRun(self.new_middleware(), window=700)
        for number in range(12):
            run.ask(f"question {number}", Reply(calls=("ok", "ok", "ok")), Reply())
        for request in run.requests:
            assert violations(request) == []
            answered = {message.tool_call_id for message in request if isinstance(message, ToolMessage)}
            assert answered == {name for message in request for name in call_ids(message)}

    def test_thirty_rounds_of_tools_in_one_turn(self) -> None:
        """The running turn alone outgrows the budget: results shrink, nothing breaks."""
        run = AgentRun(self.new_middleware(), window=3_000)
        run.ask("a long job", *(Reply(calls=("huge",)) for _ in range(8)), Reply())
        assert len(run.requests) == 9
        for request in run.requests:
            assert violations(request) == []
            assert self.count(request) <= 3_000
        assert any("paged out" in str(message.content) for message in run.requests[-1])

    def test_thinking_blocks_survive_a_tiny_budget(self) -> None:
        """Providers refuse a running turn whose signed thinking was touched."""
        run = AgentRun(self.new_middleware(), window=1_500)
        run.ask("think", *(Reply(calls=("huge",), thinking=True) for _ in range(3)), Reply())
        thoughts = [block for m in run.requests[-1] if isinstance(m, AIMessage) for block in m.content]
        assert sum(1 for block in thoughts if isinstance(block, dict) and block.get("type") == "thinking") == 3

    def test_a_cancelled_tool_does_not_wedge_the_thread(self) -> None:
        """V9: unanswered calls of a cancelled run get an error result in the request."""
        run = AgentRun(self.new_middleware())
        run.ask("first", Reply(calls=("ok", "cancel")))
        run.ask("second", Reply(text="fine"))
        request = run.requests[-1]
        assert violations(request) == []
        assert any(isinstance(m, ToolMessage) and m.status == "error" for m in request)
        assert run.state[-1].content == "fine"

    def test_a_fork_sees_its_own_past_only(self) -> None:
        """Going back in time drops what came after, also from the request."""
        run = AgentRun(self.new_middleware())
        run.ask("one", Reply(text="reply one"))
        run.ask("two", Reply(text="reply two"))
        run.fork(1, "fork", Reply(text="reply fork"))
        texts = [message.content for message in run.body(run.requests[-1])]
        assert texts == ["one", "reply one", "fork"]

    def test_an_edited_message_is_sent_as_edited(self) -> None:
        """The same id with other content replaces, in the request and in the log."""
        run = AgentRun(self.new_middleware())
        run.ask("my mail is ada@example.org", Reply())
        run.edit(0, "my mail is [removed]")
        run.ask("and now?", Reply())
        sent = str([message.content for message in run.requests[-1]])
        assert "[removed]" in sent
        assert "ada@example.org" not in sent

    def test_a_removed_exchange_is_not_sent(self) -> None:
        """What was taken out of the state is out of the request."""
        run = AgentRun(self.new_middleware())
        for text in ("one", "two", "three"):
            run.ask(text, Reply(text=f"reply {text}"))
        run.remove(1)
        run.ask("four", Reply())
        assert [message.content for message in run.body(run.requests[-1])] == [
            "one",
            "reply one",
            "three",
            "reply three",
            "four",
        ]

    def test_another_model_gets_another_budget(self) -> None:
        """V11: the budget follows the model that answers this call."""
        run = AgentRun(self.new_middleware(), window=8_000)
        for number in range(20):
            run.ask(f"question {number} " + "word " * 60, Reply(text="answer " * 30))
        wide = self.count(run.requests[-1])
        run.switch(900)
        run.ask("short", Reply())
        assert self.count(run.requests[-1]) <= 900 < wide

    def test_the_system_prompt_stays_at_the_head(self) -> None:
        """V2: one system message, first, with the agent's own text."""
        run = AgentRun(self.new_middleware(), system_prompt="Answer in rhyme.")
        run.ask("go", Reply())
        systems = [m for m in run.requests[-1] if isinstance(m, SystemMessage)]
        assert run.requests[-1][0] is not None
        assert len(systems) == 1
        assert str(systems[0].content).startswith("Answer in rhyme.")
        assert isinstance(run.requests[-1][0], SystemMessage)

    @settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
    @given(lengths=st.lists(st.integers(3, 30), min_size=4, max_size=12), tools=st.booleans())
    def test_requests_share_their_prefix(self, lengths: list[int], tools: bool) -> None:
        """V13: most of each request repeats the one before it byte for byte."""
        run = AgentRun(self.new_middleware(), window=2_500)
        for number in range(40):
            asked = " ".join(["harbour", "crane", "ladder"][at % 3] for at in range(lengths[number % len(lengths)]))
            replies = [Reply(calls=("ok", "ok"))] if tools and number % 3 == 0 else []
            run.ask(f"question {number} about {asked}", *replies, Reply(text="answer " * 12))
        shared = total = 0
        for before, after in zip(run.requests[10:], run.requests[11:], strict=False):
            equal = 0
            for one, other in zip(before, after, strict=False):
                if one.content != other.content or one.type != other.type:
                    break
                equal += 1
            shared += self.count(after[:equal])
            total += self.count(after)
        assert shared / total >= 0.6

    def test_an_overflow_is_answered_with_a_smaller_request(self) -> None:
        """The provider's word counts more than the profile."""
        overflow = getattr(exceptions, "ContextOverflowError", None)
        if overflow is None:
            pytest.skip("this langchain-core has no ContextOverflowError")
        run = AgentRun(self.new_middleware(), window=4_000)
        for number in range(20):
            run.ask(f"question {number} " + "word " * 40, Reply(text="answer " * 40))
        run.ask("now", overflow("too long"), Reply(text="made it"))
        assert run.state[-1].content == "made it"
        assert self.count(run.requests[-1]) <= self.count(run.requests[-2]) * 0.6

    def test_helpers_that_run_side_by_side_do_not_mix(self) -> None:
        """Each of the sub-agents that one message calls has a conversation of its own, from the first call on."""
        for number in range(10):
            run = AgentRun(self.new_middleware(), thread=f"thread {number}")
            run.ask("help", Reply(calls=("delegate",) * 4), Reply())
            asked = [[m.content for m in request if isinstance(m, HumanMessage)] for request in run.delegated]
            assert len(asked) == 8
            assert all(len(humans) == 1 for humans in asked)
            assert len({humans[0] for humans in asked}) == 4

    def test_two_threads_do_not_mix(self) -> None:
        """Each LangGraph thread is a conversation of its own."""
        middleware = self.new_middleware()
        one, two = AgentRun(middleware, thread="one"), AgentRun(middleware, thread="two")
        one.ask("only in one", Reply())
        two.ask("only in two", Reply())
        assert "only in one" not in str(two.requests[-1])

    async def test_async_agents(self) -> None:
        """The asynchronous hooks do the same."""
        run = AgentRun(self.new_middleware(), window=900)
        for number in range(6):
            await run.aask(f"question {number}", Reply(calls=("ok", "ok")), Reply())
        for request in run.requests:
            assert violations(request) == []
            assert self.count(request) <= 900
