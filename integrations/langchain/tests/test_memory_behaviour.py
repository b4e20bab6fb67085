"""The memory suite on `LibraryMemory`, and what only it promises."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_libctx.memory import LibraryMemory
from langchain_libctx.sessions import MissingSessionError, configurable_session
from langchain_libctx.testing import MemorySuite
from langchain_libctx.testing.memory import EchoModel

from libctx_core import LibraryOfContext
from libctx_core.errors import BlankContentError, TurnTooLargeError


@pytest.fixture
def library(tmp_path: Path):
    with LibraryOfContext(tmp_path / "chat.sqlite") as opened:
        yield opened


class TestLibraryMemory(MemorySuite):
    @pytest.fixture(autouse=True)
    def _library(self, library: LibraryOfContext) -> None:
        self.library = library

    def new_memory(self, session: str, **fields: Any) -> LibraryMemory:
        return LibraryMemory(self.library, session, **fields)

    def stored(self, session: str) -> Sequence[BaseMessage]:
        return LibraryMemory(self.library, session).chat_memory.messages


def conversation(memory: LibraryMemory, **kinds: Any) -> Any:
    from langchain_classic.chains import ConversationChain

    return ConversationChain(llm=EchoModel(**kinds), memory=memory)


def test_opens_and_owns_a_path(tmp_path: Path) -> None:
    with LibraryMemory(tmp_path / "own.sqlite", session_id="s1") as memory:
        memory.save_context({"input": "hi"}, {"output": "hello"})
    with LibraryMemory(str(tmp_path / "own.sqlite"), session_id="s1") as memory:
        assert [message.content for message in memory.chat_memory.messages] == ["hi", "hello"]


def test_the_view_is_bounded_and_the_log_is_whole(library: LibraryOfContext) -> None:
    """The limit holds for a durable history, where peers only shorten a copy."""
    memory = LibraryMemory(library, "bounded", token_budget=120)
    chain = conversation(memory)
    for number in range(40):
        seen = chain.invoke({"input": f"question {number} about the harbour"})["history"]
        assert memory.governor.counter.count(seen) <= 120
    assert len(memory.chat_memory.messages) == 80
    assert len(memory.buffer_as_messages) < 20
    assert memory.governor.counter.count(memory.buffer_as_str) <= 120


def test_old_facts_come_back_when_asked_for(library: LibraryOfContext) -> None:
    memory = LibraryMemory(library, "recall", token_budget=300)
    chain = conversation(memory)
    chain.invoke({"input": "The spare key is under the blue flowerpot."})
    for number in range(60):
        chain.invoke({"input": f"Remark number {number}: the weather stays mild and the trains run on time."})
    memory.governor.flush()
    seen = memory.load_memory_variables({"input": "Where is the spare key, under which flowerpot?"})["history"]
    assert "blue flowerpot" in seen


def test_replies_point_at_their_questions(library: LibraryOfContext) -> None:
    memory = LibraryMemory(library, "replies")
    conversation(memory).batch([{"input": f"q{number}"} for number in range(8)])
    events = list(memory.governor.history())
    texts = {event.event_id: event.text for event in events}
    answers = [event for event in events if event.role == "assistant"]
    assert len(answers) == 8
    for answer in answers:
        assert answer.text == f"answer to {texts[answer.reply_to]}"


async def test_replies_point_at_their_questions_on_the_loop(library: LibraryOfContext) -> None:
    import asyncio

    memory = LibraryMemory(library, "replies")
    chain = conversation(memory)
    await asyncio.gather(*(chain.ainvoke({"input": f"q{number}"}) for number in range(8)))
    events = list(memory.governor.history())
    texts = {event.event_id: event.text for event in events}
    for answer in (event for event in events if event.role == "assistant"):
        assert answer.text == f"answer to {texts[answer.reply_to]}"


def test_loaded_and_saved_by_hand_belong_together(library: LibraryOfContext) -> None:
    """Code that passes fresh inputs to save_context still answers the loaded turn."""
    memory = LibraryMemory(library, "hand")
    memory.load_memory_variables({"input": "hi"})
    memory.save_context({"input": "hi"}, {"output": "hello"})
    question, answer = memory.governor.history()
    assert answer.reply_to == question.event_id


def test_a_restart_does_not_double_the_unanswered_turn(tmp_path: Path) -> None:
    path = tmp_path / "restart.sqlite"
    with LibraryMemory(path, "s") as memory, pytest.raises(ConnectionError):
        conversation(memory, failures=1).invoke({"input": "still there?"})
    with LibraryMemory(path, "s") as memory:
        conversation(memory).invoke({"input": "still there?"})
        assert [message.type for message in memory.chat_memory.messages] == ["human", "ai"]


def test_session_from_the_running_configuration(library: LibraryOfContext) -> None:
    chain = conversation(LibraryMemory(library, configurable_session()))
    step = RunnableLambda(lambda text, config: chain.invoke({"input": text}, config))
    for user in ("ann", "ben"):
        config: RunnableConfig = {"configurable": {"session_id": user}}
        step.invoke(f"I am {user}", config)
    for user in ("ann", "ben"):
        stored = LibraryMemory(library, user).chat_memory.messages
        assert [message.content for message in stored] == [f"I am {user}", f"answer to I am {user}"]


def test_a_promised_session_that_is_missing_fails_closed(library: LibraryOfContext) -> None:
    """At top level a memory sees no configuration: better an error than two users in one thread."""
    chain = conversation(LibraryMemory(library))
    with pytest.raises(MissingSessionError) as caught:
        chain.invoke({"input": "hi"}, {"configurable": {"session_id": "x"}})
    assert caught.value.key == "session_id"
    assert library.threads() == []


def test_session_by_callable(library: LibraryOfContext) -> None:
    current = {"user": "ann"}
    chain = conversation(LibraryMemory(library, lambda: current["user"]))
    chain.invoke({"input": "one"})
    current["user"] = "ben"
    assert chain.invoke({"input": "two"})["history"] == ""


def test_bad_input_stores_nothing(library: LibraryOfContext) -> None:
    memory = LibraryMemory(library, "bad", token_budget=64)
    with pytest.raises(BlankContentError):
        memory.load_memory_variables({"input": "   "})
    assert memory.chat_memory.messages == []
    with pytest.raises(TurnTooLargeError):
        memory.load_memory_variables({"input": "word " * 500})


def test_unknown_fields_are_refused(library: LibraryOfContext) -> None:
    with pytest.raises(ValueError, match="token_budgets"):
        LibraryMemory(library, "typo", token_budgets=3)


def test_agent_executor_steps(library: LibraryOfContext) -> None:
    """A tool-calling agent's calls and observations are kept as tool events."""
    from langchain_classic.agents import AgentExecutor, create_tool_calling_agent
    from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
    from langchain_core.tools import tool

    @tool
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"rain in {city}"

    class CallingModel(EchoModel):
        replies: list[Any]

        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return self

        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            from langchain_core.outputs import ChatGeneration, ChatResult

            return ChatResult(generations=[ChatGeneration(message=self.replies.pop(0))])

    model = CallingModel(
        replies=[
            AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Bergen"}, "id": "c1"}]),
            AIMessage("Take an umbrella."),
        ]
    )
    prompt = ChatPromptTemplate(
        [MessagesPlaceholder("history"), ("human", "{input}"), MessagesPlaceholder("agent_scratchpad")]
    )
    agent = create_tool_calling_agent(model, [weather], prompt)
    memory = LibraryMemory(library, "agent", return_messages=True)
    executor = AgentExecutor(agent=agent, tools=[weather], memory=memory, return_intermediate_steps=True)
    executor.invoke({"input": "Bergen today?"})
    stored = memory.chat_memory.messages
    assert [message.type for message in stored] == ["human", "ai", "tool", "ai"]
    assert stored[1].tool_calls[0]["id"] == stored[2].tool_call_id == "c1"
    assert stored[2].content == "rain in Bergen"


def test_conversational_retrieval_chain(library: LibraryOfContext) -> None:
    from langchain_classic.chains import ConversationalRetrievalChain
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class One(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document("the harbour opens at six")]

    memory = LibraryMemory(library, "crc", memory_key="chat_history", return_messages=True)
    chain = ConversationalRetrievalChain.from_llm(EchoModel(), One(), memory=memory)
    chain.invoke({"question": "when?"})
    chain.invoke({"question": "and then?"})
    assert [message.type for message in memory.chat_memory.messages] == ["human", "ai", "human", "ai"]


def test_the_extra_is_named_where_it_is_missing() -> None:
    code = (
        "import sys; sys.modules['langchain_classic'] = None\n"
        "import langchain_libctx\n"
        "try:\n    langchain_libctx.LibraryMemory\n"
        "except ImportError as error:\n    print(error)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "langchain-libctx[classic]" in shown.stdout
