"""Every class holds the scope it was given, whatever the context variables say."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_libctx.chat_message_histories import LibraryChatMessageHistory
from langchain_libctx.checkpoint import LibrarySaver
from langchain_libctx.memory import LibraryMemory
from langchain_libctx.middleware import ContextGovernorMiddleware
from langchain_libctx.retrievers import LibraryRetriever
from langchain_libctx.store import LibraryStore
from langchain_libctx.testing.agents import AgentRun, Reply
from langchain_libctx.vectorstores import LibraryVectorStore
from langgraph.checkpoint.base import empty_checkpoint

from libctx_core import LibraryOfContext
from libctx_core.access import Boundary, ContextAccess, ContextAccessDenied, EnforcementMode, Principal, Rights


@pytest.fixture
def access() -> ContextAccess:
    return ContextAccess()


@pytest.fixture
def library(tmp_path: Path, access: ContextAccess):
    with LibraryOfContext(tmp_path / "shared.sqlite", context_access=access) as opened:
        yield opened


@pytest.fixture
def ann(access: ContextAccess) -> Any:
    return access.issue_root_scope(Principal("ann"), Rights.all_on(Boundary("ann")), EnforcementMode.REQUIRE_ENROLLMENT)


@pytest.fixture
def ben(access: ContextAccess) -> Any:
    return access.issue_root_scope(Principal("ben"), Rights.all_on(Boundary("ben")), EnforcementMode.REQUIRE_ENROLLMENT)


def test_memory(library: LibraryOfContext, access: ContextAccess, ann: Any, ben: Any) -> None:
    mine = LibraryMemory(library, "s", collection="ann", scope=ann)
    mine.save_context({"input": "my secret"}, {"output": "kept"})
    theirs = LibraryMemory(library, "s", collection="ann", scope=ben)
    with pytest.raises(ContextAccessDenied):
        theirs.load_memory_variables({"input": "what was it?"})
    with pytest.raises(ContextAccessDenied):
        theirs.chat_memory.messages  # noqa: B018 - reading is the attempt
    with access.scope(ann), pytest.raises(ContextAccessDenied):
        theirs.buffer  # noqa: B018 - the handle counts, not the scope around it
    assert "my secret" in mine.buffer


def test_history(library: LibraryOfContext, ann: Any, ben: Any) -> None:
    LibraryChatMessageHistory(library, "s", collection="ann", scope=ann).add_messages(
        [HumanMessage("mine"), AIMessage("ok")]
    )
    stranger = LibraryChatMessageHistory(library, "s", collection="ann", scope=ben)
    for attempt in (lambda: stranger.messages, stranger.clear, lambda: stranger.add_messages([HumanMessage("x")])):
        with pytest.raises(ContextAccessDenied):
            attempt()


def test_middleware(library: LibraryOfContext, ann: Any, ben: Any) -> None:
    AgentRun(ContextGovernorMiddleware(library, collection="ann", scope=ann)).ask("mine", Reply())
    run = AgentRun(ContextGovernorMiddleware(library, collection="ann", scope=ben))
    with pytest.raises(ContextAccessDenied):
        run.graph.invoke({"messages": [HumanMessage("hello")]}, run.config)


def test_retriever_ranks_only_what_may_be_read(library: LibraryOfContext, ann: Any, ben: Any) -> None:
    LibraryMemory(library, "s", collection="ann", scope=ann).save_context(
        {"input": "the vault code is 4711"}, {"output": "noted"}
    )
    library.flush()
    mine = LibraryRetriever(library, "s", collection="ann", scope=ann)
    theirs = LibraryRetriever(library, "s", collection="ann", scope=ben, reach="collection")
    assert any("4711" in document.page_content for document in mine.invoke("vault code"))
    assert theirs.invoke("vault code") == []


def test_vector_store(library: LibraryOfContext, ann: Any, ben: Any) -> None:
    store = LibraryVectorStore(library, collection="ann", scope=ann)
    store.add_texts(["mine"], ids=["m"])
    stranger = LibraryVectorStore(library, collection="ann", scope=ben)
    for attempt in (
        lambda: stranger.similarity_search("mine"),
        lambda: stranger.get_by_ids(["m"]),
        lambda: stranger.add_texts(["x"], ids=["m"]),
        stranger.delete,
    ):
        with pytest.raises(ContextAccessDenied):
            attempt()
    assert store.get_by_ids(["m"])[0].page_content == "mine"


def test_store(library: LibraryOfContext, ann: Any, ben: Any) -> None:
    view = LibraryOfContext.scoped(library, ann)
    view.namespace = "ann"
    LibraryStore(view).put(("memories",), "k", {"v": 1})
    stranger = library.scoped(ben)
    stranger.namespace = "ann"
    store = LibraryStore(stranger)
    for attempt in (
        lambda: store.get(("memories",), "k"),
        lambda: store.search(("memories",)),
        lambda: store.put(("memories",), "k", {"v": 2}),
        lambda: store.delete(("memories",), "k"),
        store.list_namespaces,
    ):
        with pytest.raises(ContextAccessDenied):
            attempt()
    assert LibraryStore(view).get(("memories",), "k").value == {"v": 1}


def test_saver_judges_checkpoints_as_their_thread(library: LibraryOfContext, ann: Any, ben: Any) -> None:
    view = library.scoped(ann)
    view.namespace = "ann"
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    LibrarySaver(view).put(config, empty_checkpoint(), {}, {})
    stranger = library.scoped(ben)
    stranger.namespace = "ann"
    saver = LibrarySaver(stranger)
    for attempt in (
        lambda: saver.get_tuple(config),
        lambda: list(saver.list(config)),
        lambda: saver.put(config, empty_checkpoint(), {}, {}),
        lambda: saver.delete_thread("t"),
        lambda: saver.copy_thread("t", "u"),
        lambda: saver.prune(["t"]),
    ):
        with pytest.raises(ContextAccessDenied):
            attempt()
    assert list(saver.list(None)) == []
    assert len(list(LibrarySaver(view).list(None))) == 1


def test_required_access_refuses_unscoped_use(tmp_path: Path, access: ContextAccess) -> None:
    with LibraryOfContext(tmp_path / "strict.sqlite", access="required", context_access=access) as library:
        for attempt in (
            lambda: LibraryMemory(library, "s").save_context({"input": "a"}, {"output": "b"}),
            lambda: LibraryStore(library).get(("a",), "b"),
            lambda: LibrarySaver(library).get_tuple({"configurable": {"thread_id": "t"}}),
            lambda: LibraryVectorStore(library).similarity_search("a"),
        ):
            with pytest.raises(ContextAccessDenied):
                attempt()
