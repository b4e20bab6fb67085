"""What a turn takes in the file: at most 4 kB, however long the conversation is."""

import random

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_libctx import ContextGovernorMiddleware, LibraryChatMessageHistory, LibraryMemory
from langchain_libctx.chat_message_histories import store_messages
from langchain_libctx.messages import event_fields
from langchain_libctx.testing.agents import Reply, ScriptedModel

from libctx_core import LibraryOfContext

LIMIT = 4_096
TURNS = 60
WORDS = ["garden", "river", "budget", "ticket", "harbour", "recipe", "violin", "contract", "bicycle", "lantern"]
THREAD = {"configurable": {"thread_id": "s"}}


def said(seed: int) -> str:
    """Return about 50 tokens."""
    source = random.Random(seed)
    words = [source.choice(WORDS) + (str(source.randrange(400)) if source.random() < 0.15 else "") for _ in range(45)]
    return " ".join(words).capitalize() + "."


def a_history(library):
    def turn(number):
        history = LibraryChatMessageHistory(library, "s", token_budget=2_000)
        assert history.messages
        history.add_messages([HumanMessage(said(number)), AIMessage(said(-number))])

    return turn


def a_memory(library):
    memory = LibraryMemory(library, "s", token_budget=2_000)

    def turn(number):
        inputs = {"input": said(number)}
        loaded = memory.load_memory_variables(inputs)
        memory.save_context({**inputs, **loaded}, {"response": said(-number)})

    return turn


def an_agent(library):
    script = [Reply(text=said(-number)) for number in range(200)]
    model = ScriptedModel(script=script, profile={"max_input_tokens": 4_000})
    agent = create_agent(model, middleware=[ContextGovernorMiddleware(library)])
    return lambda number: agent.invoke({"messages": [HumanMessage(said(number))]}, THREAD)


def used(library):
    """Return the bytes of pages that hold anything; pages freed by the outbox are room, not content."""
    with library.database.read() as connection:
        pages = connection.pragma("page_count") - connection.pragma("freelist_count")
        return pages * connection.pragma("page_size")


@pytest.mark.parametrize("kind", [a_history, a_memory, an_agent])
def test_a_turn_takes_at_most_four_kilobytes(tmp_path, kind):
    with LibraryOfContext(tmp_path / "library.sqlite") as library:
        before = [HumanMessage(said(number)) for number in range(1_000, 1_300)]
        store_messages(library.open_context_governor("s"), [event_fields(message) for message in before])
        turn = kind(library)
        turn(1)
        assert library.flush(60)
        empty = used(library)
        for number in range(2, TURNS + 2):
            turn(number)
        assert library.flush(60)
        assert (used(library) - empty) / TURNS <= LIMIT
