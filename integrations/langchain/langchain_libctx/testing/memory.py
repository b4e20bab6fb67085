"""What a classic chain does to its memory, and what must come of it."""

import asyncio
import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.load.dump import dumps
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda


class EchoModel(BaseChatModel):
    """A chat model that answers ``answer to <the last message>`` and can be told to fail or to wait.

    Attributes:
        failures: How many calls raise before one succeeds.
        gate: Barrier at which concurrent calls meet, so that their turns overlap.
    """

    failures: int = 0
    gate: Any = None

    @property
    def _llm_type(self) -> str:
        return "echo"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if self.gate is not None:
            self.gate.wait(timeout=10)
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the model is not reachable")
        text = str(messages[-1].content).split("Human: ")[-1].removesuffix("\nAI:")
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=f"answer to {text}"))])


class MemorySuite(ABC):
    """Behaviours of a `BaseMemory` inside chains; subclass it and say how one is made."""

    memory_key = "history"

    @abstractmethod
    def new_memory(self, session: str, **fields: Any) -> Any:
        """Return a memory on a session; `fields` are fields of `BaseChatMemory`."""

    @abstractmethod
    def stored(self, session: str) -> Sequence[BaseMessage]:
        """Return every message stored for a session, in order."""

    @pytest.fixture(autouse=True)
    def _without_notices_of_langchain(self, recwarn: pytest.WarningsRecorder) -> Iterator[None]:
        yield
        ours = [str(w.message) for w in recwarn if type(self).__module__.split(".")[0] in str(w.filename)]
        assert not [text for text in ours if "deprecated" in text.lower()], "the memory itself must not warn"

    def _chain(self, memory: Any, model: BaseChatModel | None = None) -> Any:
        from langchain_classic.chains import ConversationChain

        return ConversationChain(llm=model or EchoModel(), memory=memory)

    def _said(self, session: str) -> list[tuple[str, str]]:
        return [(message.type, str(message.content)) for message in self.stored(session)]

    # -- the contract ---------------------------------------------------------

    def test_is_a_real_memory(self) -> None:
        """Chains validate by isinstance, so nothing but a subclass can be passed."""
        from langchain_classic.base_memory import BaseMemory

        memory = self.new_memory("real")
        assert isinstance(memory, BaseMemory)
        assert memory.memory_variables == [self.memory_key]

    def test_a_turn_is_stored_and_shown(self) -> None:
        """The next turn sees the one before."""
        chain = self._chain(self.new_memory("turn"))
        assert chain.invoke({"input": "my name is Ada"})["response"] == "answer to my name is Ada"
        second = chain.invoke({"input": "what is my name?"})
        assert "my name is Ada" in second[self.memory_key]
        assert self._said("turn") == [
            ("human", "my name is Ada"),
            ("ai", "answer to my name is Ada"),
            ("human", "what is my name?"),
            ("ai", "answer to what is my name?"),
        ]

    def test_the_current_input_is_not_shown_twice(self) -> None:
        """The chain adds its own input; memory must not repeat it."""
        result = self._chain(self.new_memory("once")).invoke({"input": "only once"})
        assert "only once" not in str(result[self.memory_key])

    def test_messages_for_a_placeholder(self) -> None:
        """``return_messages=True`` gives messages in order."""
        from langchain_classic.chains import LLMChain

        prompt = ChatPromptTemplate([("system", "s"), MessagesPlaceholder(self.memory_key), ("human", "{input}")])
        memory = self.new_memory("messages", return_messages=True)
        chain = LLMChain(llm=EchoModel(), prompt=prompt, memory=memory)
        chain.invoke({"input": "one"})
        result = chain.invoke({"input": "two"})
        assert [message.content for message in result[self.memory_key]] == ["one", "answer to one"]

    def test_saved_without_being_loaded(self) -> None:
        """Hand-made turns are stored as a pair."""
        memory = self.new_memory("manual")
        memory.save_context({"input": "hi"}, {"output": "hello"})
        assert self._said("manual") == [("human", "hi"), ("ai", "hello")]
        assert "hello" in str(memory.load_memory_variables({})[self.memory_key])

    def test_loading_without_input_stores_nothing(self) -> None:
        """Looking is not a turn."""
        memory = self.new_memory("look")
        memory.load_memory_variables({})
        assert self._said("look") == []

    def test_clear_removes_everything(self) -> None:
        """Nothing is shown or stored afterwards, and the session can go on."""
        memory = self.new_memory("clear")
        memory.save_context({"input": "the code is 4711"}, {"output": "noted"})
        memory.clear()
        assert self._said("clear") == []
        assert "4711" not in str(memory.load_memory_variables({})[self.memory_key])
        memory.save_context({"input": "again"}, {"output": "yes"})
        assert self._said("clear") == [("human", "again"), ("ai", "yes")]

    def test_sessions_do_not_mix(self) -> None:
        """Each session sees its own conversation."""
        one, two = self.new_memory("left"), self.new_memory("right")
        one.save_context({"input": "left only"}, {"output": "ok"})
        assert "left only" not in str(two.load_memory_variables({})[self.memory_key])

    # -- keys -----------------------------------------------------------------

    def test_several_outputs_have_a_sensible_default(self) -> None:
        """An answer beside its sources is the answer, with a warning."""
        memory = self.new_memory("outputs")
        with pytest.warns(UserWarning, match="output_key"):
            memory.save_context({"input": "q"}, {"answer": "a", "sources": ["s1"]})
        assert self._said("outputs") == [("human", "q"), ("ai", "a")]

    def test_an_output_key_is_obeyed(self) -> None:
        """A named output is the one stored."""
        memory = self.new_memory("output_key", output_key="second")
        memory.save_context({"input": "q"}, {"first": "1", "second": "2"})
        assert self._said("output_key")[-1] == ("ai", "2")

    def test_ambiguous_inputs_are_refused(self) -> None:
        """Two inputs of unknown meaning need an input key."""
        memory = self.new_memory("inputs")
        with pytest.raises(ValueError, match="One input key expected"):
            memory.save_context({"left": "1", "right": "2"}, {"output": "x"})
        assert self._said("inputs") == []

    # -- failure and concurrency ----------------------------------------------

    def test_a_failed_turn_is_not_lost_and_not_doubled(self) -> None:
        """The question is durable; asking it again stores it once."""
        chain = self._chain(self.new_memory("retry"), EchoModel(failures=1))
        with pytest.raises(ConnectionError):
            chain.invoke({"input": "are you there?"})
        assert self._said("retry") == [("human", "are you there?")]
        chain.invoke({"input": "are you there?"})
        assert self._said("retry") == [("human", "are you there?"), ("ai", "answer to are you there?")]

    def test_concurrent_turns_keep_their_answers(self) -> None:
        """A batch overlaps turns; each reply belongs to its own question."""
        gate = threading.Barrier(3)
        chain = self._chain(self.new_memory("batch"), EchoModel(gate=gate))
        results = chain.batch([{"input": f"q{number}"} for number in range(3)])
        assert [result["response"] for result in results] == [f"answer to q{number}" for number in range(3)]
        assert sorted(self._said("batch")) == sorted(
            pair for number in range(3) for pair in (("human", f"q{number}"), ("ai", f"answer to q{number}"))
        )

    def test_equal_questions_at_the_same_time_are_two_turns(self) -> None:
        """Only a repetition after a failure is one turn."""
        gate = threading.Barrier(2)
        chain = self._chain(self.new_memory("equal"), EchoModel(gate=gate))
        chain.batch([{"input": "same"}, {"input": "same"}])
        assert [role for role, _ in self._said("equal")].count("human") == 2

    async def test_async_chains(self) -> None:
        """The asynchronous path stores the same."""
        chain = self._chain(self.new_memory("async"))
        await chain.ainvoke({"input": "one"})
        result = await chain.ainvoke({"input": "two"})
        assert "answer to one" in str(result[self.memory_key])
        assert [text for _, text in self._said("async")] == ["one", "answer to one", "two", "answer to two"]

    async def test_concurrent_async_turns(self) -> None:
        """Tasks overlap; nothing is lost."""
        chain = self._chain(self.new_memory("gather"))
        await asyncio.gather(*(chain.ainvoke({"input": f"q{number}"}) for number in range(5)))
        assert len(self._said("gather")) == 10

    # -- other chains ---------------------------------------------------------

    def test_inside_combined_memory(self) -> None:
        """Beside another memory whose variable is an input too."""
        from langchain_classic.chains import LLMChain
        from langchain_classic.memory import CombinedMemory, SimpleMemory
        from langchain_core.prompts import PromptTemplate

        memory = CombinedMemory(memories=[self.new_memory("combined"), SimpleMemory(memories={"place": "Rome"})])
        prompt = PromptTemplate.from_template("{place} {history}\nHuman: {input}\nAI:")
        LLMChain(llm=EchoModel(), prompt=prompt, memory=memory).invoke({"input": "where?"})
        assert self._said("combined")[0] == ("human", "where?")

    def test_read_only_memory_does_not_write(self) -> None:
        """A tool that shares the memory read-only leaves no turn behind."""
        from langchain_classic.memory import ReadOnlySharedMemory

        memory = self.new_memory("shared")
        memory.save_context({"input": "hi"}, {"output": "hello"})
        shared = ReadOnlySharedMemory(memory=memory)
        assert "hello" in str(shared.load_memory_variables({"input": "a tool's own question"})[self.memory_key])
        shared.save_context({"input": "a tool's own question"}, {"output": "x"})
        assert self._said("shared") == [("human", "hi"), ("ai", "hello")]

    def test_agent_steps_are_stored(self) -> None:
        """Calls and observations of an agent become part of the conversation."""
        from langchain_core.agents import AgentAction

        memory = self.new_memory("agent")
        step = (AgentAction(tool="lookup", tool_input={"q": "x"}, log=""), "the observation 4711")
        memory.save_context({"input": "find x"}, {"output": "found", "intermediate_steps": [step]})
        assert [role for role, _ in self._said("agent")] == ["human", "ai", "tool", "ai"]
        assert self._said("agent")[2] == ("tool", "the observation 4711")

    # -- objects --------------------------------------------------------------

    def test_copies_share_the_conversation(self) -> None:
        """Chains are copied freely; their memory stays the same conversation."""
        memory = self.new_memory("copies")
        for twin in (copy.deepcopy(memory), memory.model_copy()):
            twin.save_context({"input": "hi"}, {"output": "hello"})
        assert len(self._said("copies")) == 4

    def test_is_never_serialised(self) -> None:
        """Dumping a chain must not dump a conversation."""
        memory = self.new_memory("dump")
        memory.save_context({"input": "secret 4711"}, {"output": "ok"})
        assert "4711" not in dumps(memory)
        assert memory.is_lc_serializable() is False

    def test_works_where_a_chain_is_a_step(self) -> None:
        """Inside an expression, streamed and with a bound configuration."""
        chain = self._chain(self.new_memory("step")).with_config(tags=["t"])
        composed = RunnableLambda(lambda text: {"input": text}) | chain
        assert composed.invoke("hello")["response"] == "answer to hello"
        assert [chunk["response"] for chunk in chain.stream({"input": "again"})] == ["answer to again"]
        assert len(self._said("step")) == 4
