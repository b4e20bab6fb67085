"""What `RunnableWithMessageHistory` and its like do to a history, and what must come of it."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from langchain_libctx.testing.memory import EchoModel

_CALL: RunnableConfig = {"configurable": {"session_id": "s"}}


class HistorySuite(ABC):
    """Behaviours of a `BaseChatMessageHistory`; subclass it and say how one is made."""

    @abstractmethod
    def new_history(self, session: str) -> BaseChatMessageHistory:
        """Return a new history object on a session; objects of one session share what is stored."""

    def _texts(self, session: str = "s") -> list[str]:
        return [str(message.content) for message in self.new_history(session).messages]

    def _wrapped(self, runnable: Runnable[Any, Any], **keys: Any) -> RunnableWithMessageHistory:
        with pytest.warns(DeprecationWarning):
            return RunnableWithMessageHistory(runnable, self.new_history, **keys)

    # -- the object -----------------------------------------------------------

    def test_messages_are_a_real_list(self) -> None:
        """Core copies it, so a tuple or a generator will not do; changing it changes nothing stored."""
        history = self.new_history("s")
        history.add_messages([HumanMessage("hi")])
        history.messages.clear()
        assert type(history.messages) is list
        assert self._texts() == ["hi"]

    def test_order_and_bulk(self) -> None:
        """Messages come back in the order they were added."""
        history = self.new_history("s")
        history.add_messages([HumanMessage(f"m{number}") for number in range(20)])
        history.add_user_message("u")
        history.add_ai_message("a")
        assert self._texts() == [*(f"m{number}" for number in range(20)), "u", "a"]

    def test_round_trip_of_rich_messages(self) -> None:
        """Calls, usage, provider blocks, names, ids and statuses survive."""
        rich: list[BaseMessage] = [
            HumanMessage([{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "http://x/y"}}]),
            AIMessage(
                [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "text", "text": "calling"},
                    {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
                ],
                tool_calls=[{"name": "look", "args": {"at": 1}, "id": "c1"}],
                usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
                response_metadata={"model_provider": "anthropic"},
                id="lc_run--1",
            ),
            ToolMessage("seen", tool_call_id="c1", name="look", status="error", artifact={"raw": [1]}),
            AIMessage("done", name="helper", additional_kwargs={"refusal": None}),
        ]
        self.new_history("s").add_messages(rich)
        returned = self.new_history("s").messages
        assert [message.model_dump(exclude={"id"}) for message in returned] == [
            message.model_dump(exclude={"id"}) for message in rich
        ]
        assert returned[1].id == "lc_run--1"

    def test_chunks_are_stored_as_messages(self) -> None:
        """A streamed reply comes back as a message."""
        self.new_history("s").add_messages([HumanMessage("go"), AIMessageChunk(content="part")])
        assert [type(message) for message in self.new_history("s").messages] == [HumanMessage, AIMessage]

    def test_known_ids_do_not_grow_the_log(self) -> None:
        """Posting the whole conversation again stores nothing."""
        history = self.new_history("s")
        history.add_messages([HumanMessage("q1"), AIMessage("a1")])
        for _ in range(3):
            history.add_messages(history.messages)
        assert self._texts() == ["q1", "a1"]

    def test_same_id_other_content_replaces(self) -> None:
        """An edited message is edited, not doubled."""
        history = self.new_history("s")
        history.add_messages([HumanMessage("my mail is ada@example.org", id="m1"), AIMessage("ok", id="m2")])
        history.add_messages([HumanMessage("my mail is [removed]", id="m1"), AIMessage("fine", id="m3")])
        assert self._texts() == ["my mail is [removed]", "ok", "fine"]

    def test_clear(self) -> None:
        """Nothing is left, twice in a row is no error, and the session can go on."""
        history = self.new_history("s")
        history.add_messages([HumanMessage("hi")])
        history.clear()
        history.clear()
        assert self._texts() == []
        history.add_messages([HumanMessage("again")])
        assert self._texts() == ["again"]

    async def test_async(self) -> None:
        """The asynchronous methods do the same."""
        history = self.new_history("s")
        await history.aadd_messages([HumanMessage("hi"), AIMessage("ho")])
        assert [message.content for message in await history.aget_messages()] == ["hi", "ho"]
        await history.aclear()
        assert await history.aget_messages() == []

    # -- inside a runnable ----------------------------------------------------

    def test_turns_in_a_plain_runnable(self) -> None:
        """Messages in, message out."""
        runnable = self._wrapped(EchoModel())
        runnable.invoke([HumanMessage("one")], _CALL)
        runnable.invoke([HumanMessage("two")], _CALL)
        assert self._texts() == ["one", "answer to one", "two", "answer to two"]

    def test_turns_with_a_history_key(self) -> None:
        """The recommended mode."""
        prompt = ChatPromptTemplate([MessagesPlaceholder("history"), ("human", "{input}")])
        runnable = self._wrapped(prompt | EchoModel(), input_messages_key="input", history_messages_key="history")
        runnable.invoke({"input": "one"}, _CALL)
        runnable.invoke({"input": "two"}, _CALL)
        assert self._texts() == ["one", "answer to one", "two", "answer to two"]

    def test_another_writer_during_the_call(self) -> None:
        """Nobody's turn is lost when somebody else appends meanwhile."""

        def answer(messages: Sequence[BaseMessage]) -> AIMessage:
            self.new_history("s").add_messages([HumanMessage("from elsewhere"), AIMessage("noted")])
            return AIMessage(f"answer to {messages[-1].content}")

        self.new_history("s").add_messages([HumanMessage("before"), AIMessage("ok")])
        self._wrapped(RunnableLambda(answer)).invoke([HumanMessage("mine")], _CALL)
        assert sorted(self._texts()) == sorted(["before", "ok", "from elsewhere", "noted", "mine", "answer to mine"])

    async def test_another_writer_during_an_async_call(self) -> None:
        """The same on the event loop."""

        async def answer(messages: Sequence[BaseMessage]) -> AIMessage:
            await self.new_history("s").aadd_messages([HumanMessage("from elsewhere")])
            return AIMessage(f"answer to {messages[-1].content}")

        await self._wrapped(RunnableLambda(answer)).ainvoke([HumanMessage("mine")], _CALL)
        assert sorted(self._texts()) == sorted(["from elsewhere", "mine", "answer to mine"])

    def test_many_calls_at_the_same_time(self) -> None:
        """A batch on one session keeps every turn."""
        gate = threading.Barrier(4)
        turns = [[HumanMessage(f"q{number}")] for number in range(4)]
        self._wrapped(EchoModel(gate=gate)).batch(turns, [_CALL] * 4)
        assert sorted(self._texts()) == sorted(
            text for number in range(4) for text in (f"q{number}", f"answer to q{number}")
        )

    def test_streamed_replies(self) -> None:
        """A stream stores one message, not its chunks."""
        list(self._wrapped(EchoModel()).stream([HumanMessage("one")], _CALL))
        assert [type(message) for message in self.new_history("s").messages] == [HumanMessage, AIMessage]

    def test_a_failing_model_leaves_the_history_whole(self) -> None:
        """What was stored before stays, and the next call works."""
        runnable = self._wrapped(EchoModel(failures=1))
        with pytest.raises(ConnectionError):
            runnable.invoke([HumanMessage("one")], _CALL)
        runnable.invoke([HumanMessage("one")], _CALL)
        assert self._texts().count("answer to one") == 1
