"""`GovernedRunnable`: every row that a history inside LangChain's own wrapper cannot get right."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langchain_libctx.runnables import GovernedRunnable
from langchain_libctx.sessions import MissingSessionError
from langchain_libctx.testing.envelopes import violations
from langchain_libctx.testing.memory import EchoModel

from libctx_core import LibraryOfContext
from libctx_core.errors import InvalidInputError, StoreFullError, TurnTooLargeError

CALL: Any = {"configurable": {"session_id": "s"}}


class StreamingModel(EchoModel):
    """Streams word by word, and can break off."""

    break_after: int = 99

    def _stream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for number, word in enumerate(f"answer to {messages[-1].content}".split()):
            if number == self.break_after:
                raise ConnectionError("the stream broke")
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))


@pytest.fixture
def library(tmp_path: Path):
    with LibraryOfContext(tmp_path / "chat.sqlite") as opened:
        yield opened


def log_of(library: LibraryOfContext, session: str = "s") -> list[tuple[str, str]]:
    return [(event.role, event.text) for event in library.open_context_governor(session).history()]


def test_turns(library: LibraryOfContext) -> None:
    seen: list[list[BaseMessage]] = []

    def model(messages: list[BaseMessage]) -> AIMessage:
        seen.append(messages)
        return AIMessage(f"answer to {messages[-1].content}")

    runnable = GovernedRunnable(RunnableLambda(model), library, system_prompt="Be kind.")
    assert runnable.invoke("one", CALL).content == "answer to one"
    runnable.invoke(HumanMessage("two"), CALL)
    assert [(m.type, m.content) for m in seen[-1]] == [
        ("system", "Be kind."),
        ("human", "one"),
        ("ai", "answer to one"),
        ("human", "two"),
    ]
    assert log_of(library) == [
        ("user", "one"),
        ("assistant", "answer to one"),
        ("user", "two"),
        ("assistant", "answer to two"),
    ]


def test_with_a_prompt_that_has_a_placeholder(library: LibraryOfContext) -> None:
    prompt = ChatPromptTemplate([("system", "s"), MessagesPlaceholder("history"), ("human", "{question}")])
    chain = prompt | EchoModel() | StrOutputParser()
    runnable = GovernedRunnable(chain, library, input_messages_key="question", history_messages_key="history")
    runnable.invoke({"question": "one", "other": 1}, CALL)
    assert runnable.invoke({"question": "two", "other": 1}, CALL) == "answer to two"
    assert [text for _, text in log_of(library)] == ["one", "answer to one", "two", "answer to two"]


def test_the_session_comes_from_the_configuration_or_not_at_all(library: LibraryOfContext) -> None:
    runnable = GovernedRunnable(EchoModel(), library)
    with pytest.raises(MissingSessionError):
        runnable.invoke("hi")
    for user in ("ann", "ben"):
        runnable.invoke(f"I am {user}", {"configurable": {"session_id": user}})
    assert log_of(library, "ann")[0] == ("user", "I am ann")
    assert "session_id" in [spec.id for spec in runnable.config_specs]
    GovernedRunnable(EchoModel(), library, "fixed").invoke("hi")
    assert len(log_of(library, "fixed")) == 2


def test_requests_stay_bounded_and_valid(library: LibraryOfContext) -> None:
    requests: list[list[BaseMessage]] = []

    def model(messages: list[BaseMessage]) -> AIMessage:
        requests.append(messages)
        return AIMessage("well " * 20)

    runnable = GovernedRunnable(RunnableLambda(model), library, token_budget=300)
    for number in range(30):
        runnable.invoke(f"question {number} about the harbour", CALL)
    counter = library.counter
    for request in requests:
        assert violations(request) == []
        assert sum(counter.count(str(m.content)) for m in request) <= 300


def test_a_failed_model_keeps_the_turn_and_does_not_double_it(library: LibraryOfContext) -> None:
    runnable = GovernedRunnable(EchoModel(failures=1), library)
    with pytest.raises(ConnectionError):
        runnable.invoke("one", CALL)
    assert log_of(library) == [("user", "one")]
    runnable.invoke("one", CALL)
    assert log_of(library) == [("user", "one"), ("assistant", "answer to one")]


def test_retrying_inside_a_chain_does_not_double_the_turn(library: LibraryOfContext) -> None:
    runnable = GovernedRunnable(EchoModel(failures=2), library).with_retry(stop_after_attempt=3)
    runnable.invoke("one", CALL)
    assert log_of(library) == [("user", "one"), ("assistant", "answer to one")]


def test_streams_are_stored_as_one_message(library: LibraryOfContext) -> None:
    pieces = list(GovernedRunnable(StreamingModel(), library).stream("one", CALL))
    assert len(pieces) > 2
    assert log_of(library)[1] == ("assistant", "answer to one ")


def test_an_abandoned_stream_keeps_what_was_said(library: LibraryOfContext) -> None:
    stream = GovernedRunnable(StreamingModel(), library).stream("one", CALL)
    next(stream)
    next(stream)
    stream.close()
    assert log_of(library) == [("user", "one"), ("assistant", "answer to ")]
    (reply,) = [e for e in library.open_context_governor("s").history() if e.role == "assistant"]
    assert reply.metadata == {"partial": True}


def test_an_abandoned_stream_may_be_dropped(library: LibraryOfContext) -> None:
    stream = GovernedRunnable(StreamingModel(), library, keep_partial=False).stream("one", CALL)
    next(stream)
    stream.close()
    assert log_of(library) == [("user", "one")]


async def test_a_stream_that_breaks_keeps_what_was_said(library: LibraryOfContext) -> None:
    pieces: list[Any] = []

    async def consume(stream: AsyncIterator[Any]) -> None:
        async for piece in stream:
            pieces.append(piece)

    with pytest.raises(ConnectionError):
        await consume(GovernedRunnable(StreamingModel(break_after=2), library).astream("one", CALL))
    assert len(pieces) == 2
    assert log_of(library) == [("user", "one"), ("assistant", "answer to ")]


async def test_concurrent_calls_keep_their_answers(library: LibraryOfContext) -> None:
    runnable = GovernedRunnable(EchoModel(), library)
    await asyncio.gather(*(runnable.ainvoke(f"q{number}", CALL) for number in range(6)))
    runnable.batch([f"b{number}" for number in range(6)], [CALL] * 6)
    events = list(library.open_context_governor("s").history())
    questions = {event.event_id: event.text for event in events}
    answers = [event for event in events if event.role == "assistant"]
    assert len(answers) == 12
    assert all(event.text == f"answer to {questions[event.reply_to]}" for event in answers)


def test_a_failed_write_reaches_the_caller(library: LibraryOfContext, monkeypatch: pytest.MonkeyPatch) -> None:
    runnable = GovernedRunnable(EchoModel(), library, "s")
    governor = runnable._governors.current()
    real = type(governor).record_many

    def record_many(self: Any, events: Any) -> Any:
        listed = list(events)
        if listed[0]["role"] == "assistant":
            raise StoreFullError("chat.sqlite", "the disk is full")
        return real(self, listed)

    monkeypatch.setattr(type(governor), "record_many", record_many)
    with pytest.raises(StoreFullError):
        runnable.invoke("one", CALL)


def test_tool_results_continue_the_turn(library: LibraryOfContext) -> None:
    seen: list[list[BaseMessage]] = []

    def model(messages: list[BaseMessage]) -> AIMessage:
        seen.append(messages)
        if isinstance(messages[-1], ToolMessage):
            return AIMessage("It rains.")
        return AIMessage("", tool_calls=[{"name": "weather", "args": {}, "id": "c1"}])

    runnable = GovernedRunnable(RunnableLambda(model), library)
    runnable.invoke("weather?", CALL)
    runnable.invoke([ToolMessage("rain", tool_call_id="c1")], CALL)
    assert [message.type for message in seen[-1]] == ["human", "ai", "tool"]
    assert [role for role, _ in log_of(library)] == ["user", "assistant", "tool", "assistant"]


def test_mapping_outputs(library: LibraryOfContext) -> None:
    chain = RunnableLambda(lambda messages: {"answer": "yes", "sources": [1]})
    GovernedRunnable(chain, library, output_messages_key="answer").invoke("q", CALL)
    assert log_of(library)[-1] == ("assistant", "yes")


def test_misuse(library: LibraryOfContext) -> None:
    with pytest.raises(InvalidInputError):
        GovernedRunnable(EchoModel(), library).invoke({"question": "q"}, CALL)
    with pytest.raises(InvalidInputError):
        GovernedRunnable(EchoModel(), library, history_messages_key="h", system_prompt="x")
    with pytest.raises(TurnTooLargeError):
        GovernedRunnable(EchoModel(), library, token_budget=50).invoke("word " * 200, CALL)
