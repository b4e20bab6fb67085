"""LibraryMemory: each known defect of chat memories, and each order in which engines and agents call one."""

import asyncio
import json
import pickle
import threading
import time

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ThinkingBlock, ToolCallBlock
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import VectorMemoryBlock
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import Context
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_libctx import LibraryMemory, LibraryVectorStore
from llama_index_libctx.events import LibraryPromptEvent

from libctx_core import LibraryOfContext
from libctx_core.errors import BlankContentError, TurnTooLargeError


def user(text):
    return ChatMessage(role="user", content=text)


def assistant(text):
    return ChatMessage(role="assistant", content=text)


def call(call_id, **kwargs):
    return ChatMessage(
        role="assistant", blocks=[ToolCallBlock(tool_call_id=call_id, tool_name="weather", tool_kwargs=kwargs)]
    )


def result(call_id, text):
    return ChatMessage(role="tool", content=text, additional_kwargs={"tool_call_id": call_id})


def talk(memory, turns, size=6):
    for i in range(turns):
        memory.put_messages([user(f"question {i} " + "word " * size), assistant(f"answer {i} " + "word " * size)])


def texts(messages):
    return [message.content for message in messages]


@pytest.fixture
def memory(path):
    return LibraryMemory(path, "s1")


class Scripted:
    """A model that answers from a script and keeps what it was sent."""

    def __init__(self, *answers, system=False):
        self.answers = list(answers)
        self.seen = []
        self.llm = MockFunctionCallingLLM(response_generator=self._answer, is_chat_model=True)

    def _answer(self, messages, **_):
        self.seen.append([ChatMessage.model_validate(message.model_dump()) for message in messages])
        answer = self.answers.pop(0) if self.answers else assistant("done")
        if isinstance(answer, Exception):
            raise answer
        return answer


# -- m1 to m13: what today's memories get wrong ---------------------------------


async def test_m1_fifty_concurrent_puts_keep_51_messages_in_order(memory):
    await memory.aput(user("first"))
    await asyncio.gather(*(memory.aput(user(f"message {i}")) for i in range(50)))
    assert texts(await memory.aget_all()) == ["first", *(f"message {i}" for i in range(50))]


async def test_m1_in_memory_too():
    memory = LibraryMemory()
    await asyncio.gather(*(memory.aput(user(f"message {i}")) for i in range(50)))
    assert texts(await memory.aget_all()) == [f"message {i}" for i in range(50)]


async def test_m2_concurrent_first_operations(path):
    memories = [LibraryMemory(path, f"s{i}") for i in range(8)]
    await asyncio.gather(*(m.aput(user("hi")) for m in memories), *(m.aget() for m in memories))
    assert [len(await m.aget_all()) for m in memories] == [1] * 8


async def test_m3_no_messages_are_nothing_to_do(memory):
    await memory.aput_messages([])
    memory.put_messages([])
    assert memory.get_all() == []


def test_m4_it_is_serialised_with_messages_in_it(memory):
    memory.put(user("hi"))
    again = LibraryMemory.from_json(memory.to_json())
    assert texts(again.get_all()) == ["hi"]
    assert json.loads(memory.model_dump_json())["session_id"] == "s1"


async def test_m5_it_survives_the_context_of_an_agent(memory):
    script = Scripted(assistant("hello Ann"), assistant("you are Ann"))
    agent = FunctionAgent(llm=script.llm, tools=[], streaming=False)
    context = Context(agent)
    await agent.run("I am Ann", ctx=context, memory=memory)
    stored = json.loads(json.dumps(context.to_dict()))
    again = Context.from_dict(agent, stored)
    await agent.run("who am I?", ctx=again)
    assert texts(script.seen[-1]) == ["I am Ann", "hello Ann", "who am I?"]
    assert texts(memory.get_all())[-1] == "you are Ann"


async def test_m5_a_memory_without_a_file_takes_its_messages_along():
    script = Scripted(assistant("hello"), assistant("again"))
    agent = FunctionAgent(llm=script.llm, tools=[], streaming=False)
    context = Context(agent)
    await agent.run("I am Ann", ctx=context, memory=LibraryMemory())
    again = Context.from_dict(agent, context.to_dict())
    await agent.run("who am I?", ctx=again)
    assert texts(script.seen[-1]) == ["I am Ann", "hello", "who am I?"]


def test_m6_sessions_do_not_see_each_other(path):
    one, two = LibraryMemory(path, "s1"), LibraryMemory(path, "s2")
    one.put_messages([user("the secret password is swordfish"), assistant("noted")])
    one.governor.flush()
    for _ in range(2):
        two.put(user("what is the secret password?"))
        assert "swordfish" not in str(two.get())
    assert "swordfish" in str(one.get("what is the secret password?"))


async def test_m7_a_vector_memory_block_finds_its_messages_in_this_store(path, embedder):
    block = VectorMemoryBlock(vector_store=LibraryVectorStore(path), embed_model=embedder, similarity_top_k=1)
    await block.aput([user("my cat is called Minka")], session_id="s1")
    found = await block.aget([user("cat called")], session_id="s1")
    assert "Minka" in found


@pytest.mark.parametrize("question", ["where do I live?", user("where do I live?")])
def test_m8_the_question_may_be_text_or_a_message(memory, question):
    memory.put_messages([user("I live in Rome"), assistant("nice")])
    assert texts(memory.get(question)) == ["I live in Rome", "nice"]


def test_m9_what_was_put_is_durable_whatever_fails_later(path, memory, monkeypatch):
    from libctx_core.governor.builder import Builder

    memory.put(user("hi"))
    monkeypatch.setattr(Builder, "build", lambda *_: (_ for _ in ()).throw(RuntimeError("broken")))
    with pytest.raises(RuntimeError):
        memory.get()
    assert texts(LibraryMemory(path, "s1").get_all()) == ["hi"]


@pytest.mark.parametrize("limit", [120, 300, 1000])
def test_m10_the_view_never_exceeds_the_limit(path, limit):
    memory = LibraryMemory(path, "s1", token_limit=limit)
    memory.put(ChatMessage(role="system", content="Be brief."))
    talk(memory, 40)
    memory.put(user("and now?"))
    prompt = memory.prompt()
    assert prompt.token_count <= limit
    assert memory.governor.counter.count_messages(prompt.messages) <= limit
    assert texts(memory.get())[0] == "Be brief."
    assert texts(memory.get())[-1] == "and now?"


def test_m11_the_cost_of_a_turn_does_not_grow_with_the_conversation(path):
    memory = LibraryMemory(path, "s1", token_limit=2000)

    def turn_cost():
        costs = []
        for _ in range(15):
            start = time.thread_time()
            memory.put(user("how are you?"))
            memory.get()
            memory.put(assistant("fine"))
            costs.append(time.thread_time() - start)
        return sorted(costs)[len(costs) // 2]

    talk(memory, 60)
    memory.governor.flush()
    turn_cost()
    few = turn_cost()
    for _ in range(30):
        memory.put_messages(
            [message for i in range(50) for message in (user(f"question {i}"), assistant(f"answer {i}"))]
        )
    memory.governor.flush(60)
    many = turn_cost()
    # ten times the messages: a memory that reads them all would cost ten times as much
    assert many < 5 * few + 0.003


def test_m12_setting_is_all_or_nothing(memory):
    memory.put_messages([user("old"), assistant("older")])
    with pytest.raises(BlankContentError):
        memory.set([user("new"), user("")])
    assert texts(memory.get_all()) == ["old", "older"]


def test_m13_what_left_the_view_is_still_there(path):
    memory = LibraryMemory(path, "s1", token_limit=200)
    memory.put_messages([user("my cat is called Minka"), assistant("a fine name")])
    talk(memory, 30)
    before = memory.get_all()
    memory.governor.flush()
    question = "what is my cat called?"
    view = memory.get(question)
    assert "Minka" in str(view)
    assert memory.get_all() == before
    assert (
        memory.governor.open_event(memory.governor.recall("cat Minka", 1)[0].event_id).content
        == "my cat is called Minka"
    )


# -- the view ------------------------------------------------------------------


def test_asking_twice_changes_nothing(memory):
    talk(memory, 5)
    memory.put(user("again?"))
    assert memory.get() == memory.get() == memory.get("again?")
    assert len(memory.get_all()) == 11


def test_what_is_returned_is_a_copy(memory):
    memory.put(user("hi"))
    (message,) = memory.get()
    message.blocks[0].text = "changed"
    message.additional_kwargs["x"] = 1
    assert texts(memory.get()) == texts(memory.get_all()) == ["hi"]


def test_system_messages_stay_and_the_view_begins_with_the_user(path):
    memory = LibraryMemory(path, "s1", token_limit=250)
    memory.put(ChatMessage(role="system", content="You are a pirate."))
    talk(memory, 10)
    memory.put(user("and now?"))
    view = memory.get()
    assert (view[0].role, view[0].content) == ("system", "You are a pirate.")
    assert view[1].role == "user"


def test_tool_calls_and_results_stay_together(path):
    memory = LibraryMemory(path, "s1", token_limit=300)
    for i in range(12):
        memory.put_messages(
            [user(f"weather {i}?"), call(f"c{i}", city="Rome"), result(f"c{i}", "sun " * 10), assistant("sunny")]
        )
    memory.put(user("and tomorrow?"))
    view = memory.get()
    open_calls = set()
    for message in view:
        open_calls |= {block.tool_call_id for block in message.blocks if isinstance(block, ToolCallBlock)}
        if message.role == "tool":
            assert message.additional_kwargs["tool_call_id"] in open_calls
    answered = {message.additional_kwargs["tool_call_id"] for message in view if message.role == "tool"}
    assert open_calls == answered


def test_tool_calls_and_thinking_count(memory):
    empty = memory.prompt("x").token_count
    memory.put_messages([user("hi"), call("c", text="word " * 200), result("c", "ok"), assistant("done")])
    assert memory.prompt("x").token_count - empty > 200
    before = memory.prompt("x").token_count
    memory.put_messages(
        [
            user("hi"),
            ChatMessage(role="assistant", blocks=[ThinkingBlock(content="thought " * 300), TextBlock(text="ok")]),
        ]
    )
    assert memory.prompt("x").token_count - before > 300


def test_a_turn_over_the_limit_is_reported_or_cut(path):
    strict = LibraryMemory(path, "s1", token_limit=100)
    strict.put(user("word " * 500))
    with pytest.raises(TurnTooLargeError):
        strict.get()
    cut = LibraryMemory(path, "s1", token_limit=100, overflow="truncate_middle")
    prompt = cut.prompt()
    assert prompt.token_count <= 100
    assert prompt.parts[-1].cut
    assert cut.get()[-1].role == "user"


def test_room_is_kept_for_what_the_engine_adds(path):
    memory = LibraryMemory(path, "s1", token_limit=400)
    talk(memory, 20)
    memory.put(user("and now?"))
    for kept_free in (0, 150, 250):
        assert sum(part.tokens for part in memory.prompt(initial_token_count=kept_free).parts) <= 400 - kept_free
    assert len(memory.tokenizer_fn("two words")) == memory.governor.counter.count("two words")
    upcoming = memory.governor.counter.count_message({"role": "user", "content": "word " * 100})
    memory.put(assistant("fine"))
    kept = sum(part.tokens for part in memory.prompt("word " * 100).parts)
    assert kept + upcoming <= 400


def test_a_question_that_is_not_stored_is_not_in_the_view(memory):
    memory.put_messages([user("hi"), assistant("hello")])
    assert texts(memory.get("how are you?")) == ["hi", "hello"]
    memory.put(user("how are you?"))
    assert texts(memory.get("how are you?")) == ["hi", "hello", "how are you?"]


def test_an_unanswered_turn_before_a_new_question_is_history(memory):
    memory.put(user("the model failed on this"))
    assert texts(memory.get("next question")) == ["the model failed on this"]


def test_messages_of_every_kind_come_back_as_they_were(memory):
    picture = ImageBlock(url="http://host/x.png", detail="low")
    original = [
        ChatMessage(role="user", blocks=[TextBlock(text="see"), picture], additional_kwargs={"name": "Ann"}),
        call("c", city="Rome"),
        result("c", "sunny"),
        ChatMessage(role="assistant", content="ok", additional_kwargs={"anything": [1]}),
    ]
    memory.put_messages(original)
    assert memory.get_all() == original
    assert memory.get("next") == original


# -- replacing and starting over -------------------------------------------------


def test_set_stores_only_what_is_new(memory):
    memory.set([user("a"), assistant("b")])
    first = list(memory.governor.history())
    memory.set([user("a"), assistant("b"), user("c")])
    assert [event.uid for event in memory.governor.history()][:2] == [event.uid for event in first]
    assert texts(memory.get_all()) == ["a", "b", "c"]


def test_set_with_a_change_keeps_the_old_conversation_in_the_library(path, memory):
    memory.set([user("a"), assistant("b")])
    memory.set([user("a"), assistant("other")])
    assert texts(memory.get_all()) == ["a", "other"]
    assert texts(LibraryMemory(path, "s1").get_all()) == ["a", "other"]
    library = memory._lease.library
    assert sorted(thread.events for thread in library.threads()) == [2, 2]


def test_reset_starts_over(path, memory):
    memory.put_messages([user("a secret called swordfish"), assistant("b")])
    memory.governor.flush()
    memory.reset()
    assert memory.get_all() == memory.get("what is the secret?") == []
    memory.put(user("c"))
    assert texts(LibraryMemory(path, "s1").get_all()) == ["c"]
    assert memory._lease.library.consult("swordfish", everything=True)


async def test_async_twins(memory):
    await memory.aset([user("a"), assistant("b")])
    await memory.aput_messages([user("c"), assistant("d")])
    assert texts(await memory.aget("x")) == ["a", "b", "c", "d"]
    await memory.areset()
    assert await memory.aget_all() == []


async def test_async_twins_do_not_use_the_loops_thread(memory, monkeypatch):
    used = set()
    for name in ("get", "get_all", "put", "put_messages", "set", "reset"):
        original = getattr(LibraryMemory, name)

        def spy(self, *args, original=original, **kwargs):
            used.add(threading.get_ident())
            return original(self, *args, **kwargs)

        monkeypatch.setattr(LibraryMemory, name, spy)
    await memory.aput(user("a"))
    await memory.aput_messages([assistant("b")])
    await memory.aget()
    await memory.aget_all()
    await memory.aset([user("a")])
    await memory.areset()
    assert used
    assert threading.get_ident() not in used


# -- engines and agents ----------------------------------------------------------


def test_simple_chat_engine(memory):
    script = Scripted(assistant("hello"), assistant("fine"), assistant("new"))
    engine = SimpleChatEngine.from_defaults(llm=script.llm, memory=memory, system_prompt="Be brief.")
    engine.chat("hi")
    engine.chat("how are you?")
    assert texts(script.seen[-1]) == ["Be brief.", "hi", "hello", "how are you?"]
    assert texts(memory.get_all()) == ["hi", "hello", "how are you?", "fine"]
    engine.chat("and now?", chat_history=[user("other"), assistant("talk")])
    assert texts(script.seen[-1]) == ["Be brief.", "other", "talk", "and now?"]
    engine.reset()
    assert memory.get_all() == []


def test_simple_chat_engine_by_class():
    script = Scripted(assistant("hello"))
    engine = SimpleChatEngine.from_defaults(
        llm=script.llm, memory_cls=LibraryMemory, chat_history=[user("a"), assistant("b")]
    )
    engine.chat("c")
    assert texts(script.seen[-1]) == ["a", "b", "c"]


def test_a_streamed_reply_is_stored_from_another_thread(memory):
    script = Scripted(assistant("streamed"))
    engine = SimpleChatEngine.from_defaults(llm=script.llm, memory=memory)
    response = engine.stream_chat("hi")
    assert "".join(response.response_gen)
    assert texts(memory.get_all()) == ["hi", "streamed"]


async def test_an_async_engine(memory):
    script = Scripted(assistant("hello"), assistant("fine"))
    engine = SimpleChatEngine.from_defaults(llm=script.llm, memory=memory)
    await engine.achat("hi")
    await engine.achat("how are you?")
    assert texts(script.seen[-1]) == ["hi", "hello", "how are you?"]


class OneNode(BaseRetriever):
    def _retrieve(self, query_bundle):
        return [NodeWithScore(node=TextNode(text="Rome is in Italy."), score=1.0)]


@pytest.mark.parametrize("kind", [ContextChatEngine, CondensePlusContextChatEngine])
def test_engines_that_put_the_question_after_asking(memory, kind):
    options = {"skip_condense": True} if kind is CondensePlusContextChatEngine else {}
    script = Scripted(assistant("in Italy"), assistant("yes"))
    engine = kind.from_defaults(retriever=OneNode(), llm=script.llm, memory=memory, **options)
    engine.chat("where is Rome?")
    engine.chat("are you sure?")
    sent = [text for text in texts(script.seen[-1]) if "Italy." not in text]
    assert sent == ["where is Rome?", "in Italy", "are you sure?"]
    assert texts(memory.get_all()) == ["where is Rome?", "in Italy", "are you sure?", "yes"]


def test_an_engine_that_rewrites_the_question(memory):
    script = Scripted(assistant("in Italy"), assistant("is Rome really in Italy?"), assistant("yes"))
    engine = CondenseQuestionChatEngine.from_defaults(
        query_engine=RetrieverQueryEngine.from_args(OneNode(), llm=script.llm), llm=script.llm, memory=memory
    )
    engine.chat("where is Rome?")
    engine.chat("are you sure?")
    stored = [(message.role.value, message.content) for message in memory.get_all()]
    assert [role for role, _ in stored] == ["user", "assistant", "user", "assistant"]
    assert stored[2] == ("user", "are you sure?")


def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"sunny in {city}"


async def test_an_agent_with_tools(memory):
    script = Scripted(call("c1", city="Rome"), assistant("It is sunny."), assistant("You asked for Rome."))
    agent = FunctionAgent(llm=script.llm, tools=[weather], system_prompt="Be brief.", streaming=False)
    await agent.run("weather in Rome?", memory=memory)
    await agent.run("what did I ask?", memory=memory)
    stored = memory.get_all()
    assert [message.role.value for message in stored] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    last = script.seen[-1]
    assert [message.role.value for message in last] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert sum(message.role == "system" for message in last) == 1
    assert last[2].blocks[0].tool_kwargs == {"city": "Rome"}


async def test_an_agent_that_fails_leaves_the_question_and_goes_on(memory):
    script = Scripted(ConnectionError("gone"), assistant("fine"))
    agent = FunctionAgent(llm=script.llm, tools=[], streaming=False)
    with pytest.raises(Exception, match="gone"):
        await agent.run("first try", memory=memory)
    await agent.run("second try", memory=memory)
    assert texts(memory.get_all()) == ["first try", "second try", "fine"]


async def test_an_agents_state_is_not_written_into_the_conversation(memory):
    script = Scripted(assistant("one"), assistant("two"))
    workflow = AgentWorkflow(
        agents=[FunctionAgent(name="a", description="a", llm=script.llm, tools=[], streaming=False)],
        root_agent="a",
        initial_state={"mood": "good"},
    )
    await workflow.run("hi", memory=memory)
    assert "Current state" in str(script.seen[0][-1].content)
    assert texts(memory.get_all()) == ["hi", "one"]


# -- what it is -------------------------------------------------------------------


def test_defaults(path):
    assert LibraryMemory().token_limit == 30_000
    assert LibraryMemory().session_id != LibraryMemory().session_id
    model = MockFunctionCallingLLM()
    memory = LibraryMemory.from_defaults([user("a")], llm=model, path=path, session_id="s1")
    assert memory.token_limit == int(model.metadata.context_window * 0.75)
    assert texts(memory.get_all()) == ["a"]
    with pytest.raises(TypeError, match="token_limt"):
        LibraryMemory(path, token_limt=5)
    assert bool(memory)


def test_pickle_and_copies_go_on_with_the_conversation(path, memory):
    memory.put(user("hi"))
    for other in (pickle.loads(pickle.dumps(memory)), memory.model_copy(), memory.model_copy(deep=True)):
        assert texts(other.get_all()) == ["hi"]
    assert texts(pickle.loads(pickle.dumps(LibraryMemory(messages=[user("a")]))).get_all()) == ["a"]


def test_an_open_library_is_shared(path):
    with LibraryOfContext(path) as library:
        memory = LibraryMemory(library, "s1")
        memory.put(user("hi"))
        governor = library.open_context_governor("s1")
        assert [event.content for event in governor.history()] == ["hi"]


def test_observers_hear_what_was_left_out(path):
    heard = []

    class Ear(BaseEventHandler):
        def handle(self, event, **_):
            if isinstance(event, LibraryPromptEvent):
                heard.append(event)

    dispatcher = get_dispatcher()
    ear = Ear()
    dispatcher.add_event_handler(ear)
    try:
        memory = LibraryMemory(path, "s1", token_limit=200)
        talk(memory, 20)
        memory.put(user("and now?"))
        memory.get()
    finally:
        dispatcher.event_handlers.remove(ear)
    (event,) = heard
    assert event.session_id == "s1"
    assert event.token_count <= event.token_budget == 200
    assert event.paged_out_events > 0
