"""The history suite on `LibraryChatMessageHistory`, whole and bounded, and what only it promises."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_libctx.chat_message_histories import LibraryChatMessageHistory
from langchain_libctx.testing import HistorySuite
from langchain_libctx.testing.memory import EchoModel

from libctx_core import LibraryOfContext
from libctx_core.errors import BlankContentError, InvalidInputError, StoreFullError


@pytest.fixture
def library(tmp_path: Path):
    with LibraryOfContext(tmp_path / "chat.sqlite") as opened:
        yield opened


class TestWholeHistory(HistorySuite):
    @pytest.fixture(autouse=True)
    def _library(self, library: LibraryOfContext) -> None:
        self.library = library

    def new_history(self, session: str) -> LibraryChatMessageHistory:
        return LibraryChatMessageHistory(self.library, session)


class TestBoundedHistory(TestWholeHistory):
    """A view with room for everything behaves as the log does."""

    def new_history(self, session: str) -> LibraryChatMessageHistory:
        return LibraryChatMessageHistory(self.library, session, token_budget=100_000)


CALL: Any = {"configurable": {"session_id": "s"}}


def wrapped(runnable: Any, factory: Any) -> RunnableWithMessageHistory:
    with pytest.warns(DeprecationWarning):
        return RunnableWithMessageHistory(runnable, factory)


def test_a_view_that_moves_between_enter_and_exit_stores_nothing_twice(library: LibraryOfContext) -> None:
    """A bounded view is shorter than the log and shifts with every message."""
    factory = LibraryChatMessageHistory.factory(library, token_budget=120)
    runnable = wrapped(EchoModel(), factory)
    for number in range(12):
        runnable.invoke([HumanMessage(f"question number {number} about the harbour master")], CALL)
    stored = [message.content for message in LibraryChatMessageHistory(library, "s").messages]
    assert stored == [
        text
        for number in range(12)
        for text in (
            f"question number {number} about the harbour master",
            f"answer to question number {number} about the harbour master",
        )
    ]
    assert len(factory("s").messages) < 24


def test_one_object_used_by_many_threads_loses_nothing(library: LibraryOfContext) -> None:
    shared = LibraryChatMessageHistory(library, "s")
    runnable = wrapped(EchoModel(), lambda session_id: shared)
    runnable.batch([[HumanMessage(f"q{number}")] for number in range(12)], [CALL] * 12)
    assert sorted(message.content for message in shared.messages if message.type == "human") == sorted(
        f"q{number}" for number in range(12)
    )


async def test_one_object_used_by_many_tasks_loses_nothing(library: LibraryOfContext) -> None:
    shared = LibraryChatMessageHistory(library, "s")
    runnable = wrapped(EchoModel(), lambda session_id: shared)
    await asyncio.gather(*(runnable.ainvoke([HumanMessage(f"q{number}")], CALL) for number in range(8)))
    assert sorted(message.content for message in shared.messages if message.type == "human") == sorted(
        f"q{number}" for number in range(8)
    )


def test_a_failed_write_is_not_forgotten(library: LibraryOfContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain's listeners swallow the error; the messages are stored before the next call, or it raises."""
    history = LibraryChatMessageHistory(library, "s")
    governor = history.governor
    real, broken = type(governor).record_many, {"on": True}

    def record_many(self: Any, events: Any) -> Any:
        if broken["on"]:
            raise StoreFullError("chat.sqlite", "the disk is full")
        return real(self, events)

    monkeypatch.setattr(type(governor), "record_many", record_many)
    runnable = wrapped(EchoModel(), lambda session_id: history)
    runnable.invoke([HumanMessage("one")], CALL)
    with pytest.raises(StoreFullError):
        runnable.invoke([HumanMessage("two")], CALL)
    broken["on"] = False
    runnable.invoke([HumanMessage("three")], CALL)
    texts = [message.content for message in LibraryChatMessageHistory(library, "s").messages]
    assert texts == ["one", "answer to one", "three", "answer to three"]


def test_a_failed_write_raises_to_whoever_writes_directly(
    library: LibraryOfContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = LibraryChatMessageHistory(library, "s")

    def record_many(self: Any, events: Any) -> Any:
        raise StoreFullError("chat.sqlite", "the disk is full")

    monkeypatch.setattr(type(history.governor), "record_many", record_many)
    with pytest.raises(StoreFullError):
        history.add_messages([HumanMessage("one")])


def test_bad_messages_are_refused_whole(library: LibraryOfContext) -> None:
    from langchain_core.messages import RemoveMessage

    history = LibraryChatMessageHistory(library, "s")
    with pytest.raises(InvalidInputError):
        history.add_messages([HumanMessage("fine"), RemoveMessage(id="x")])
    with pytest.raises(BlankContentError):
        history.add_messages([HumanMessage("fine"), HumanMessage("")])
    assert history.messages == []


def test_objects_that_json_cannot_hold_leave_the_rest_intact(library: LibraryOfContext) -> None:
    from langchain_core.messages import ToolMessage

    history = LibraryChatMessageHistory(library, "s")
    history.add_messages(
        [
            HumanMessage("go"),
            AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c"}]),
            ToolMessage("result", tool_call_id="c", artifact=object()),
        ]
    )
    returned = history.messages[-1]
    assert (returned.content, returned.artifact) == ("result", None)


def test_text_that_cannot_be_encoded_is_repaired_when_a_model_wrote_it(library: LibraryOfContext) -> None:
    history = LibraryChatMessageHistory(library, "s")
    history.add_messages([AIMessage("half \ud83d", response_metadata={"raw": "\ud83d"}, id="a")])
    (returned,) = history.messages
    assert returned.content == "half \ufffd"


def test_tokens_reserved_for_the_rest_of_the_prompt(library: LibraryOfContext) -> None:
    LibraryChatMessageHistory(library, "s").add_messages(
        [m for n in range(30) for m in (HumanMessage(f"question {n}"), AIMessage(f"answer {n}"))]
    )
    roomy = LibraryChatMessageHistory(library, "s", token_budget=300)
    tight = LibraryChatMessageHistory(library, "s", token_budget=300, reserve_tokens=200)
    assert len(tight.messages) < len(roomy.messages)
    assert tight.governor.counter.count("".join(str(m.content) for m in tight.messages)) <= 100
