"""Public reports about peers, one test each: the same small input on ours, with the right outcome."""

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_libctx.chat_message_histories import LibraryChatMessageHistory
from langchain_libctx.checkpoint import LibrarySaver, UnrevivedValue
from langchain_libctx.memory import LibraryMemory
from langchain_libctx.messages import to_langchain
from langchain_libctx.middleware import ContextGovernorMiddleware
from langchain_libctx.store import LibraryStore
from langchain_libctx.testing.agents import AgentRun, Reply
from langchain_libctx.testing.envelopes import violations
from langchain_libctx.vectorstores import LibraryVectorStore

from libctx_core import LibraryOfContext
from libctx_core.tokens import TokenCounter

LONG = "row of a table; " * 600


@pytest.fixture
def library(tmp_path: Path):
    with LibraryOfContext(tmp_path / "library.sqlite") as opened:
        yield opened


def call(name: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "work", "args": {}, "id": name}], id=f"ai-{name}")


def result(name: str, text: str = "result") -> ToolMessage:
    return ToolMessage(text, tool_call_id=name, id=f"tool-{name}")


def view(library: LibraryOfContext, messages: Sequence[BaseMessage], budget: int, **options: Any) -> list[BaseMessage]:
    """Return what a governor would send of a conversation."""
    LibraryChatMessageHistory(library, "s").add_messages(messages)
    governor = library.open_context_governor("s", token_budget=budget, **options)
    return to_langchain(governor.build_prompt())


def turns(count: int) -> list[BaseMessage]:
    return [
        message
        for number in range(count)
        for message in (HumanMessage(f"q{number}"), call(f"c{number}"), result(f"c{number}"), AIMessage(f"a{number}"))
    ]


@pytest.mark.parametrize("budget", [40, 60, 80, 120, 200])
def test_trimming_never_leaves_an_orphan_result(library: LibraryOfContext, budget: int) -> None:
    """langchain-ai/langchain#33245, langchain-ai/langchain#29637, n8n-io/n8n#34385."""
    assert violations(view(library, [*turns(6), HumanMessage("now")], budget)) == []


def test_thirty_tool_rounds_stay_valid(library: LibraryOfContext) -> None:
    """BerriAI/litellm#10696, KryptSec/oasis#70: a crash after some twenty rounds."""
    run = AgentRun(ContextGovernorMiddleware(library), window=3_000)
    run.model.script[:] = [Reply(calls=("ok",))] * 30 + [Reply()]
    run.graph.invoke({"messages": [HumanMessage("go")]}, {**run.config, "recursion_limit": 100})
    assert len(run.requests) == 31
    assert all(violations(request) == [] for request in run.requests)


def test_results_without_their_call_are_left_out(library: LibraryOfContext) -> None:
    """langchain-ai/langchain#38352: ids that match in part kept an orphan."""
    messages = [call("old"), HumanMessage("q"), call("b"), result("b"), result("old"), HumanMessage("now")]
    shown = view(library, messages, 500)
    assert violations(shown) == []


def test_thinking_of_the_running_turn_is_kept(library: LibraryOfContext) -> None:
    """langchain-ai/langchain#34794."""
    run = AgentRun(ContextGovernorMiddleware(library), window=1_200)
    run.ask("go", Reply(calls=("huge",), thinking=True), Reply(calls=("huge",), thinking=True), Reply())
    kept = [m for m in run.requests[-1] if isinstance(m, AIMessage)]
    assert [m.content for m in kept] == [m.content for m in run.state if isinstance(m, AIMessage)][:2]


def test_a_conversation_of_results_alone_stays_recoverable(library: LibraryOfContext) -> None:
    """langchain-ai/langchain#39261: no user message within the window, and the content was gone."""
    messages: list[BaseMessage] = [HumanMessage("find the needle")]
    for number in range(8):
        messages += [call(f"c{number}"), result(f"c{number}", f"{LONG} needle-{number} {LONG}")]
    shown = view(library, messages, 4_000)
    assert violations(shown) == []
    assert shown[0].content == "find the needle"
    governor = library.open_context_governor("s")
    for message in shown:
        if isinstance(message, ToolMessage) and "Recall it by" in str(message.content):
            page = str(message.content).split("Recall it by ")[1].split(".")[0]
            assert "needle-" in governor.open_event(page).text


def test_the_first_message_is_a_users(library: LibraryOfContext) -> None:
    """langchain-ai/langchainjs#9272: Gemini refuses anything else."""
    shown = view(library, [AIMessage("welcome"), *turns(20), HumanMessage("now")], 150)
    assert isinstance(next(m for m in shown if not isinstance(m, SystemMessage)), HumanMessage)


async def test_a_cancelled_tool_does_not_stick(library: LibraryOfContext) -> None:
    """langchain-ai/langgraph#4289, langchain-ai/langgraph#6726."""
    run = AgentRun(ContextGovernorMiddleware(library))
    run.ask("one", Reply(calls=("ok", "cancel")))
    await run.aask("two", Reply(text="fine"))
    assert violations(run.requests[-1]) == []
    assert run.state[-1].content == "fine"


def test_results_of_one_tool_can_be_pinned(library: LibraryOfContext) -> None:
    """langchain-ai/langchain#34145: choose whose results are cleared."""
    run = AgentRun(ContextGovernorMiddleware(library, protect_tools=["work"]), window=1_500)
    run.ask("first", Reply(calls=("ok",)), Reply())
    pinned = next(str(m.content) for m in run.state if isinstance(m, ToolMessage))
    for number in range(30):
        run.ask(f"remark {number}", Reply(text="well " * 30))
    assert pinned in str([m.content for m in run.requests[-1]])


def test_several_outputs(library: LibraryOfContext) -> None:
    """langchain-ai/langchain#16242, #2256, #16791."""
    memory = LibraryMemory(library, "s")
    with pytest.warns(UserWarning, match="stores 'answer'"):
        memory.save_context({"question": "q"}, {"answer": "a", "sources": ["s"]})
    assert [m.content for m in memory.chat_memory.messages] == ["q", "a"]


def test_the_token_limit_holds_for_a_durable_history(library: LibraryOfContext) -> None:
    """langchain-ai/langchain#10078, #3072, #5053, #18303: the limit shortened a copy."""
    memory = LibraryMemory(library, "s", token_budget=60)
    for number in range(10):
        memory.load_memory_variables({"input": f"question {number}"})
        memory.save_context({"input": f"question {number}"}, {"output": f"answer {number}"})
    assert memory.governor.counter.count(memory.load_memory_variables({})["history"]) <= 60
    assert len(memory.chat_memory.messages) == 20


def test_clear_clears_the_index_too(library: LibraryOfContext) -> None:
    """langchain-ai/langchain#5817: a vector memory kept everything."""
    memory = LibraryMemory(library, "s")
    memory.save_context({"input": "the code is 4711"}, {"output": "noted"})
    library.flush()
    memory.clear()
    assert memory.governor.recall("code 4711") == []
    assert library.consult("code 4711", everything=True) == []


def test_tool_steps_are_remembered(library: LibraryOfContext) -> None:
    """langchain-ai/langchain#22357."""
    from langchain_core.agents import AgentAction

    memory = LibraryMemory(library, "s")
    steps = [(AgentAction("search", {"q": "x"}, ""), "found 4711")]
    memory.save_context({"input": "find x"}, {"output": "done", "intermediate_steps": steps})
    assert [m.type for m in memory.chat_memory.messages] == ["human", "ai", "tool", "ai"]


async def test_async_histories_never_block_the_loop(library: LibraryOfContext) -> None:
    """langchain-ai/langchain#22021, langchain-ai/langchain-postgres#122."""
    import threading

    loop_thread, used = threading.get_ident(), set()
    real = type(library.database).write

    def write(self: Any, work: Any, **kwargs: Any) -> Any:
        used.add(threading.get_ident())
        return real(self, work, **kwargs)

    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(type(library.database), "write", write)
    try:
        history = LibraryChatMessageHistory(library, "s")
        await history.aadd_messages([HumanMessage("hi")])
        assert [m.content for m in await history.aget_messages()] == ["hi"]
        memory = LibraryMemory(library, "t")
        await memory.aload_memory_variables({"input": "hi"})
        await memory.asave_context({"input": "hi"}, {"output": "ho"})
    finally:
        monkeypatch.undo()
    assert used
    assert loop_thread not in used


def test_posting_everything_again_does_not_grow_the_history(library: LibraryOfContext) -> None:
    """microsoft/agent-framework#7242."""
    history = LibraryChatMessageHistory(library, "s")
    history.add_messages([HumanMessage("q"), AIMessage("a")])
    for _ in range(10):
        history.add_messages(history.messages)
    assert len(history.messages) == 2


def test_sibling_namespaces_do_not_leak() -> None:
    """langchain-ai/langgraph#8300, langchain-ai/langgraph#8478 (CVE-2026-71433)."""
    with LibraryStore.from_conn_string(":memory:") as store:
        for label in ("acme", "acme-corp", "acme_x", "acmeX"):
            store.put(("t", label), "k", {"v": 1})
        assert len(store.search(("t", "acme"))) == 1
        assert len(store.search(("t", "acme_x"))) == 1


def test_nested_objects_in_filters() -> None:
    """langchain-ai/langgraph#8786."""
    with LibraryStore.from_conn_string(":memory:") as store:
        store.put(("t",), "k", {"meta": {"lang": "en", "page": 1}})
        assert len(store.search(("t",), filter={"meta": {"lang": "en"}})) == 1


def test_dotted_keys_have_one_answer() -> None:
    """langchain-ai/langgraph#7795: a field of that name first, else a path."""
    with LibraryStore.from_conn_string(":memory:") as store:
        store.put(("t",), "field", {"user.id": 1})
        store.put(("t",), "path", {"user": {"id": 1}})
        assert {item.key for item in store.search(("t",), filter={"user.id": 1})} == {"field", "path"}


def test_expired_items_stay_hidden_and_dead(tmp_path: Path) -> None:
    """langchain-ai/langgraph#8902."""
    now = [1_000.0]
    ttl: Any = {"default_ttl": 1, "omit_expired": True, "refresh_on_read": True}
    store = LibraryStore(tmp_path / "s.sqlite", ttl=ttl, clock=lambda: now[0])
    store.put(("t",), "k", {"v": 1})
    now[0] += 120
    assert store.get(("t",), "k") is None
    assert store.get(("t",), "k", refresh_ttl=True) is None
    assert store.sweep_ttl() == 1
    store.close()


async def test_sync_writes_in_the_loop_thread_do_not_deadlock(tmp_path: Path) -> None:
    """langchain-ai/langgraph#7857: sixty seconds of silence."""
    from langgraph.checkpoint.base import empty_checkpoint

    started = time.monotonic()
    async with LibrarySaver.from_conn_string(str(tmp_path / "s.sqlite")) as saver:
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        config = saver.put(config, empty_checkpoint(), {}, {})
        saver.put_writes(config, [("c", 1)], "task")
        assert saver.get_tuple(config).pending_writes == [("task", "c", 1)]
    assert time.monotonic() - started < 5


def test_a_store_works_before_setup(tmp_path: Path) -> None:
    """langchain-ai/langgraph#5150."""
    store = LibraryStore(tmp_path / "s.sqlite")
    assert store.search(("t",)) == []
    store.close()


def test_checkpoints_of_a_long_conversation_are_small(tmp_path: Path) -> None:
    """langchain-ai/langgraph#7843, bytedance/deer-flow#3011, pizza-bot-app/pizza-bot#58, langchain-ai/openwiki#257."""
    with LibraryOfContext(tmp_path / "state.sqlite") as library:
        from langgraph.graph import END, START, MessagesState, StateGraph

        builder = StateGraph(MessagesState)
        builder.add_node("m", lambda state: {"messages": [AIMessage("answer " * 50)]})
        builder.add_edge(START, "m")
        builder.add_edge("m", END)
        graph = builder.compile(checkpointer=LibrarySaver(library))
        config: Any = {"configurable": {"thread_id": "t"}}
        graph.update_state(config, {"messages": [HumanMessage("word " * 55, id=str(n)) for n in range(1_000)]})
        graph.invoke({"messages": [HumanMessage("warm up")]}, config)
        before = library.database.size()
        for number in range(10):
            graph.invoke({"messages": [HumanMessage(f"q{number}")]}, config)
        assert (library.database.size() - before) / 10 < 20_000


def test_the_state_can_be_kept_small(library: LibraryOfContext) -> None:
    """langchain-ai/deepagents#2876."""
    run = AgentRun(ContextGovernorMiddleware(library, evict_state=True), window=1_000)
    for number in range(40):
        run.ask(f"question {number}", Reply(text="answer " * 20))
    assert len(run.state) < 50


def test_every_stub_names_a_page_that_opens(library: LibraryOfContext) -> None:
    """langchain-ai/deepagentsjs#621: the summary pointed at a file that was not there."""
    run = AgentRun(ContextGovernorMiddleware(library), window=2_000)
    run.ask("go", *[Reply(calls=("huge", "huge"))] * 3, Reply())
    governor = library.open_context_governor("thread")
    stubs = [m for r in run.requests for m in r if isinstance(m, ToolMessage) and "Recall it by" in str(m.content)]
    assert stubs
    for stub in stubs:
        opened = governor.open_event(str(stub.content).split("Recall it by ")[1].split(".")[0])
        assert len(opened.text) > 1_000


def test_unknown_types_are_told(tmp_path: Path) -> None:
    """langchain-ai/langgraph#7066, #6970, #9021, #8184: None, a dict, or another type came back."""
    import collections
    import types
    from dataclasses import dataclass

    from langgraph.checkpoint.base import empty_checkpoint

    @dataclass
    class Plan:
        step: int

    module = types.ModuleType("gone_module")
    Plan.__module__, module.Plan = "gone_module", Plan  # type: ignore[attr-defined]
    sys.modules["gone_module"] = module
    with LibrarySaver.from_conn_string(str(tmp_path / "s.sqlite")) as saver:
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"plan": Plan(3), "seen": collections.Counter("aab")}
        checkpoint["channel_versions"] = {"plan": 1, "seen": 1}
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        config = saver.put(config, checkpoint, {}, {"plan": 1, "seen": 1})
        del sys.modules["gone_module"]
        values = saver.get_tuple(config).checkpoint["channel_values"]
    assert isinstance(values["plan"], UnrevivedValue)
    assert values["plan"].payload == {"step": 3}
    assert type(values["seen"]) is collections.Counter


def test_relevance_scores_stay_between_zero_and_one(library: LibraryOfContext) -> None:
    """langchain-ai/langchain#10864, #32045, langchain-ai/langchain-community#427."""
    from langchain_core.embeddings import Embeddings

    class Axis(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return {"up": [0.0, 1.0], "right": [1.0, 0.0], "down": [0.0, -1.0]}[text]

    store = LibraryVectorStore(library, Axis())
    store.add_texts(["up", "right", "down"])
    scores = [score for _, score in store.similarity_search_with_relevance_scores("up", k=3)]
    assert scores == pytest.approx([1.0, 0.5, 0.0])
    retriever = store.as_retriever(search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.8})
    assert [document.page_content for document in retriever.invoke("up")] == ["up"]


def test_results_carry_their_ids(library: LibraryOfContext) -> None:
    """RyanCodrai/turbovec#81."""
    store = LibraryVectorStore(library)
    names = store.add_texts(["one", "two"])
    assert {document.id for document in store.similarity_search("one")} == set(names)


def test_chinese_is_not_undercounted(library: LibraryOfContext) -> None:
    """langchain-ai/langchainjs#11303: characters through four."""
    text = "港口在早上六点开放，起重机可以吊起九吨货物。" * 20
    exact = TokenCounter.for_encoding("o200k_base").count(text)
    prompt = library.open_context_governor("s", token_budget=4_000).prepare(text)
    assert exact <= prompt.token_count <= exact * 1.2 + 20


@pytest.mark.parametrize("words", [10, 300, 3_000])
def test_the_last_user_message_is_always_there(library: LibraryOfContext, words: int) -> None:
    """langchain-ai/langmem#69, #77, #93, #118."""
    messages: list[BaseMessage] = [HumanMessage("q"), AIMessage("word " * words), HumanMessage("the last question")]
    shown = view(library, messages, 400)
    assert shown[-1].content == "the last question"
    assert violations(shown) == []


def test_the_budget_is_a_setting_of_the_call(library: LibraryOfContext) -> None:
    """langchain-ai/deepagents#585, langchain-ai/deepagentsjs#846."""
    seen: list[int] = []

    def budget(request: Any) -> int:
        seen.append(request.model.profile["max_input_tokens"])
        return 700

    run = AgentRun(ContextGovernorMiddleware(library, token_budget=budget), window=5_000)
    for number in range(20):
        run.ask(f"question {number} " + "word " * 40, Reply(text="answer " * 20))
    counter = TokenCounter.for_encoding("o200k_base")
    assert seen[0] == 5_000
    assert sum(counter.count(str(m.content)) for m in run.requests[-1]) <= 700


def test_most_of_a_request_repeats_the_one_before(library: LibraryOfContext) -> None:
    """langchain-ai/deepagents#5319, langchain-ai/deepagents#1356: text in front broke the prompt cache."""
    run = AgentRun(ContextGovernorMiddleware(library), window=8_000)
    for number in range(12):
        run.ask(f"question {number} about cranes", Reply(calls=("ok",)), Reply(text="answer " * 20))
    before, after = run.requests[-3], run.requests[-2]
    shared = 0
    for one, other in zip(before, after, strict=False):
        if one.content != other.content:
            break
        shared += len(str(one.content))
    assert shared / sum(len(str(m.content)) for m in after) >= 0.8


def test_a_wrapped_history_loses_no_turn(library: LibraryOfContext) -> None:
    """Found in a peer: turns were lost when somebody else appended during a call."""
    from langchain_core.runnables import RunnableLambda

    def answer(messages: Any) -> AIMessage:
        LibraryChatMessageHistory(library, "s").add_messages([HumanMessage("elsewhere")])
        return AIMessage("ok")

    with pytest.warns(DeprecationWarning):
        runnable = RunnableWithMessageHistory(RunnableLambda(answer), LibraryChatMessageHistory.factory(library))
    runnable.invoke([HumanMessage("mine")], {"configurable": {"session_id": "s"}})
    stored = [m.content for m in LibraryChatMessageHistory(library, "s").messages]
    assert sorted(stored) == ["elsewhere", "mine", "ok"]


def test_the_package_imports_with_its_base_dependencies() -> None:
    """Found in a peer: a fresh installation could not import its own history."""
    code = (
        "import sys\n"
        "for name in ('langchain', 'langchain_classic', 'langgraph', 'langchain_community', 'sqlalchemy'):\n"
        "    sys.modules[name] = None\n"
        "import langchain_libctx as package\n"
        "package.LibraryChatMessageHistory, package.LibraryRetriever, package.LibraryVectorStore\n"
        "package.GovernedRunnable, package.LibraryEmbeddings\n"
        "for name in ('LibraryMemory', 'ContextGovernorMiddleware', 'LibraryStore', 'LibrarySaver'):\n"
        "    try: getattr(package, name)\n"
        "    except ImportError as error: print(error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert [line.split("'")[1] for line in shown.stdout.splitlines()] == [
        "langchain-libctx[classic]",
        "langchain-libctx[agents]",
        "langchain-libctx[langgraph]",
        "langchain-libctx[langgraph]",
    ]


def test_a_running_turn_over_the_budget_is_never_empty(library: LibraryOfContext) -> None:
    """Found in a peer: trimming from the front returned nothing at all."""
    shown = view(library, [HumanMessage("q"), call("c"), result("c", LONG)], 200)
    assert [m.type for m in shown] == ["human", "ai", "tool"]
    assert "paged out" in str(shown[-1].content)


def test_comparing_a_missing_field_skips_the_item() -> None:
    """Found in a peer: a TypeError."""
    with LibraryStore.from_conn_string(":memory:") as store:
        store.put(("t",), "with", {"score": 5})
        store.put(("t",), "without", {"other": 1})
        assert [item.key for item in store.search(("t",), filter={"score": {"$gt": 3}})] == ["with"]
