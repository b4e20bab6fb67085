"""The middleware suite on `ContextGovernorMiddleware`, and what only it promises."""

import itertools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_libctx.messages import canonical_content, role_of
from langchain_libctx.middleware import ContextGovernorMiddleware
from langchain_libctx.sessions import MissingSessionError
from langchain_libctx.testing.agents import AgentRun, Reply, ScriptedModel, work
from langchain_libctx.testing.envelopes import violations
from langchain_libctx.testing.middleware import STEPS, MiddlewareSuite, play

from libctx_core import LibraryOfContext
from libctx_core.errors import TurnTooLargeError
from libctx_core.tokens import TokenCounter

COUNTER = TokenCounter.for_encoding("o200k_base")


def tokens(messages: Sequence[BaseMessage]) -> int:
    return COUNTER.count_messages({"role": role_of(m), "content": canonical_content(m)} for m in messages)


@pytest.fixture
def library(tmp_path: Path):
    with LibraryOfContext(tmp_path / "agent.sqlite") as opened:
        yield opened


class TestContextGovernor(MiddlewareSuite):
    @pytest.fixture(autouse=True)
    def _library(self):
        self.number = itertools.count()
        with LibraryOfContext(":memory:") as self.library:
            yield

    def new_middleware(self, **options: Any) -> ContextGovernorMiddleware:
        return ContextGovernorMiddleware(self.library, collection=f"life {next(self.number)}", **options)

    def count(self, messages: Sequence[BaseMessage]) -> int:
        return tokens(messages)


@pytest.mark.exhaustive
@settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_two_thousand_lives(steps: list[tuple[Any, ...]]) -> None:
    with LibraryOfContext(":memory:") as library:
        run = AgentRun(ContextGovernorMiddleware(library), window=2_000)
        play(run, steps)
        for request, window in zip(run.requests, run.windows, strict=True):
            assert violations(request) == []
            assert tokens(request) <= window


def log_of(library: LibraryOfContext, thread: str = "thread") -> list[tuple[str, str]]:
    return [(event.role, event.text) for event in library.open_context_governor(thread).history()]


def test_the_log_holds_the_state_message_by_message(library: LibraryOfContext) -> None:
    run = AgentRun(ContextGovernorMiddleware(library))
    for number in range(5):
        run.ask(f"q{number}", Reply(calls=("ok", "ok")), Reply(text=f"a{number}"))
    events = list(library.open_context_governor("thread").history())
    assert [event.event_id for event in events] == [message.id for message in run.state]
    assert {event.branch for event in events} == {0}


def test_old_facts_come_back(library: LibraryOfContext) -> None:
    run = AgentRun(ContextGovernorMiddleware(library), window=1_200)
    run.ask("The spare key is under the blue flowerpot.", Reply(text="Noted."))
    for number in range(40):
        run.ask(f"Remark {number}: trains run on time and the weather is mild.", Reply(text="I see."))
    library.flush()
    run.ask("Where is the spare key, under which flowerpot?", Reply())
    assert "blue flowerpot" in str([message.content for message in run.body(run.requests[-1])])


def test_no_thread_fails_closed(library: LibraryOfContext) -> None:
    from langchain.agents import create_agent

    agent = create_agent(
        AgentRun(ContextGovernorMiddleware(library)).model, [work], middleware=[ContextGovernorMiddleware(library)]
    )
    with pytest.raises(MissingSessionError):
        agent.invoke({"messages": [HumanMessage("hi")]})
    assert library.threads() == []


def test_a_named_session_needs_no_checkpointer(library: LibraryOfContext) -> None:
    from langchain.agents import create_agent

    run = AgentRun(ContextGovernorMiddleware(library))
    agent = create_agent(run.model, middleware=[ContextGovernorMiddleware(library, "mine")])
    agent.invoke({"messages": [HumanMessage("hi")]})
    assert log_of(library, "mine") == [("user", "hi"), ("assistant", "done")]


def test_eviction_keeps_the_state_small_and_the_log_whole(library: LibraryOfContext) -> None:
    run = AgentRun(ContextGovernorMiddleware(library, evict_state=True), window=1_000)
    for number in range(40):
        run.ask(f"question {number} about cranes", Reply(calls=("ok",)), Reply(text="answer " * 10))
    assert len(run.state) < 60
    assert len(log_of(library)) == 160
    assert all(violations(request) == [] for request in run.requests)
    assert run.state[-1].content.startswith("answer")


def test_eviction_then_restart_continues(tmp_path: Path) -> None:
    """Another process meets a state whose first messages are gone and goes on without doubling any."""
    path = tmp_path / "agent.sqlite"
    with LibraryOfContext(path) as library:
        run = AgentRun(ContextGovernorMiddleware(library, evict_state=True), window=1_000)
        for number in range(20):
            run.ask(f"question {number} about cranes", Reply(text="answer " * 10))
        kept = run.state
    with LibraryOfContext(path) as library:
        again = AgentRun(ContextGovernorMiddleware(library, evict_state=True), window=1_000)
        again.graph.update_state(again.config, {"messages": kept})
        again.ask("and now?", Reply())
        assert len(log_of(library)) == 42


def test_reposting_the_whole_conversation_stores_nothing_twice(library: LibraryOfContext) -> None:
    """A caller without a checkpointer sends everything each time."""
    from langchain.agents import create_agent

    run = AgentRun(ContextGovernorMiddleware(library))
    agent = create_agent(run.model, middleware=[ContextGovernorMiddleware(library, "s")])
    messages: list[BaseMessage] = []
    for number in range(6):
        messages.append(HumanMessage(f"q{number}", id=f"h{number}"))
        messages = agent.invoke({"messages": messages})["messages"]
    assert len(log_of(library, "s")) == 12


def test_sub_agents_have_threads_of_their_own(library: LibraryOfContext) -> None:
    from langchain.agents import create_agent
    from langchain_core.tools import tool

    child_run = AgentRun(ContextGovernorMiddleware(library))
    child = create_agent(child_run.model, middleware=[ContextGovernorMiddleware(library)])

    @tool
    def ask_child(question: str) -> str:
        """Ask the child."""
        return str(child.invoke({"messages": [HumanMessage(question)]})["messages"][-1].content)

    run = AgentRun(ContextGovernorMiddleware(library), tools=[ask_child])
    for number in range(2):
        call = AIMessage(
            "", tool_calls=[{"name": "ask_child", "args": {"question": f"sub {number}"}, "id": f"s{number}"}]
        )
        run.ask(f"main {number}", call, Reply(text="ok"))
    assert not any("sub" in text and role == "user" for role, text in log_of(library))
    others = [info for info in library.threads() if info.key.session_id != "thread"]
    assert len(others) == 2
    for info in others:
        texts = [text for _, text in log_of(library, info.key.session_id)]
        assert len(texts) == 2
        assert texts[0].startswith("sub")


def test_helpers_with_middleware_of_their_own_do_not_meet(library: LibraryOfContext) -> None:
    """Four sub-agents begin at once, each built by its call, middleware included."""
    from langchain.agents import create_agent
    from langchain_core.tools import tool

    barrier = threading.Barrier(4)

    @tool
    def ask_child(question: str) -> str:
        """Ask a child."""
        child = create_agent(ScriptedModel(), middleware=[ContextGovernorMiddleware(library)])
        barrier.wait(30)
        return str(child.invoke({"messages": [HumanMessage(question)]})["messages"][-1].content)

    run = AgentRun(ContextGovernorMiddleware(library), tools=[ask_child])
    calls = [{"name": "ask_child", "args": {"question": f"sub {number}"}, "id": f"s{number}"} for number in range(4)]
    run.ask("main", AIMessage("", tool_calls=calls), Reply(text="ok"))
    threads = [info.key.session_id for info in library.threads() if info.key.session_id != "thread"]
    said = [[text for _, text in log_of(library, thread)] for thread in threads]
    assert sorted(said) == [[f"sub {number}", "done"] for number in range(4)]


def test_an_agent_as_a_node_keeps_one_thread(library: LibraryOfContext) -> None:
    """Every run of the outer graph gives the node another task id; the conversation is the same."""
    from langchain.agents import create_agent
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, MessagesState, StateGraph

    run = AgentRun(ContextGovernorMiddleware(library))
    agent = create_agent(run.model, middleware=[ContextGovernorMiddleware(library)])
    builder = StateGraph(MessagesState)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    graph = builder.compile(checkpointer=InMemorySaver())
    for number in range(3):
        graph.invoke({"messages": [HumanMessage(f"q{number}")]}, run.config)
    (info,) = library.threads()
    assert info.key.session_id == "thread|agent"
    assert len(log_of(library, "thread|agent")) == 6


def test_results_of_chosen_tools_are_pinned(library: LibraryOfContext) -> None:
    run = AgentRun(ContextGovernorMiddleware(library, protect_tools=["work"]), window=1_500)
    run.ask("first", Reply(calls=("ok",)), Reply())
    pinned = next(text for role, text in log_of(library) if role == "tool")
    for number in range(40):
        run.ask(f"remark {number} about nothing in particular", Reply(text="well " * 20))
    assert pinned in str([message.content for message in run.requests[-1]])


def test_protected_system_text_joins_the_system_message(library: LibraryOfContext) -> None:
    run = AgentRun(ContextGovernorMiddleware(library))
    run.ask("one", Reply())
    library.open_context_governor("thread").protect("Never delete production data.")
    run.ask("two", Reply())
    head = run.requests[-1][0]
    assert isinstance(head, SystemMessage)
    assert "Never delete production data." in str(head.content)
    assert [message.content for message in run.body(run.requests[-1])] == ["one", "done", "two"]


def test_the_model_can_page_in_what_was_paged_out(library: LibraryOfContext) -> None:
    """Every stub names a page that opens, whole."""
    run = AgentRun(ContextGovernorMiddleware(library), window=1_500)
    run.ask("go", Reply(calls=("huge",)), Reply(calls=("huge",)), Reply())
    stub = next(str(m.content) for m in run.requests[-1] if isinstance(m, ToolMessage) and "paged out" in m.content)
    page = stub.split("Recall it by ")[1].split(".")[0]
    opened = library.open_context_governor("thread").open_event(page)
    assert "row of a long table, number 399" in opened.text
    call = AIMessage("", tool_calls=[{"name": "open_page", "args": {"event_id": page}, "id": "open1"}])
    run.ask("read it", call, Reply())
    result = next(m for m in run.state if isinstance(m, ToolMessage) and m.tool_call_id == "open1")
    assert "row of a long table, number 399" in str(result.content)


def test_recall_tool_searches_the_thread(library: LibraryOfContext) -> None:
    run = AgentRun(ContextGovernorMiddleware(library))
    run.ask("The vault code is 4711.", Reply())
    library.flush()
    call = AIMessage("", tool_calls=[{"name": "recall_paged", "args": {"query": "vault code"}, "id": "r1"}])
    run.ask("what was it?", call, Reply())
    result = next(m for m in run.state if isinstance(m, ToolMessage) and m.tool_call_id == "r1")
    assert "4711" in str(result.content)


def test_without_recall_tools_nothing_is_added(library: LibraryOfContext) -> None:
    run = AgentRun(ContextGovernorMiddleware(library, recall_tools=False), system_prompt="Only this.")
    run.ask("hi", Reply())
    assert run.requests[-1][0].content == "Only this."
    assert [getattr(tool, "name", None) for tool in run.model.bound_tools] == ["work", "delegate"]


def test_paging_statistics_reach_the_custom_stream(library: LibraryOfContext) -> None:
    run = AgentRun(ContextGovernorMiddleware(library))
    chunks = list(run.graph.stream({"messages": [HumanMessage("hi")]}, run.config, stream_mode="custom"))
    assert [set(chunk) for chunk in chunks] == [{"libctx"}]
    assert chunks[0]["libctx"]["budget"] == 3_600
    assert 0 < chunks[0]["libctx"]["tokens"] <= 3_600


def test_summaries_of_other_middleware_are_not_the_users_words(library: LibraryOfContext) -> None:
    run = AgentRun(ContextGovernorMiddleware(library))
    summary = HumanMessage("Here is a summary: ...", additional_kwargs={"lc_source": "summarization"})
    run.graph.update_state(run.config, {"messages": [summary]})
    run.ask("hello", Reply())
    assert log_of(library) == [("user", "hello"), ("assistant", "done")]


def test_a_discarded_reply_becomes_a_branch(library: LibraryOfContext) -> None:
    """An outer middleware threw the first answer away: the next request does not show it."""
    from langchain.agents.middleware import AgentMiddleware

    class Regenerate(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            handler(request)
            return handler(request)

    run = AgentRun(ContextGovernorMiddleware(library), outer=[Regenerate()])
    run.ask("one", Reply(text="draft"), Reply(text="final"))
    run.ask("two", Reply(text="draft two"), Reply(text="final two"))
    assert [message.content for message in run.body(run.requests[-1])] == ["one", "final", "two"]
    assert ("assistant", "draft") in log_of(library)


def test_messages_added_for_one_request_are_sent_and_not_recorded(library: LibraryOfContext) -> None:
    from langchain.agents.middleware import AgentMiddleware

    class Hint(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(messages=[*request.messages, HumanMessage("Be brief.")]))

    run = AgentRun(ContextGovernorMiddleware(library), outer=[Hint()])
    run.ask("hello", Reply())
    assert [message.content for message in run.body(run.requests[-1])] == ["hello", "Be brief."]
    assert log_of(library) == [("user", "hello"), ("assistant", "done")]


def test_pii_middleware_outside_keeps_raw_text_out_of_the_log(library: LibraryOfContext) -> None:
    from langchain.agents.middleware import PIIMiddleware

    run = AgentRun(ContextGovernorMiddleware(library), outer=[PIIMiddleware("email", strategy="redact")])
    run.ask("write to ada@example.org please", Reply())
    assert "ada@example.org" not in str(log_of(library))
    assert "ada@example.org" not in str(run.requests)


def test_a_turn_that_cannot_fit_is_refused_with_both_sizes(library: LibraryOfContext) -> None:
    run = AgentRun(ContextGovernorMiddleware(library), window=600)
    run.model.script[:] = [Reply()]
    with pytest.raises(TurnTooLargeError) as caught:
        run.graph.invoke({"messages": [HumanMessage("word " * 2_000)]}, run.config)
    assert caught.value.budget < caught.value.required


def test_resuming_after_a_failed_model_doubles_nothing(library: LibraryOfContext) -> None:
    run = AgentRun(ContextGovernorMiddleware(library))
    run.ask("hello", ConnectionError("away"))
    run.model.script[:] = [Reply(text="back")]
    run.graph.invoke(None, run.config)
    assert log_of(library) == [("user", "hello"), ("assistant", "back")]


def test_two_governors_of_different_collections_have_different_names(library: LibraryOfContext) -> None:
    one = ContextGovernorMiddleware(library, collection="a")
    two = ContextGovernorMiddleware(library, collection="b")
    assert one.name != two.name
