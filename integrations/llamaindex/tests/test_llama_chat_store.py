"""LibraryChatStore: both interfaces, and the memories that use them."""

import asyncio
import pickle
import threading

import pytest
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.storage.chat_store.base import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
from llama_index_libctx import LibraryChatStore, LibraryMemory

ACTIVE, ARCHIVED = MessageStatus.ACTIVE, MessageStatus.ARCHIVED


def user(text):
    return ChatMessage(role="user", content=text)


def texts(messages):
    return [message.content for message in messages]


@pytest.fixture
def store(path):
    return LibraryChatStore(path)


def test_it_is_both():
    assert issubclass(LibraryChatStore, BaseChatStore)
    assert issubclass(LibraryChatStore, AsyncDBChatStore)
    assert LibraryChatStore.class_name() == "LibraryChatStore"


def test_the_synchronous_interface(path, store):
    store.add_message("k", user("a"))
    store.add_message("k", user("b"))
    store.add_message("other", user("x"))
    assert texts(store.get_messages("k")) == ["a", "b"]
    assert store.get_keys() == ["k", "other"]
    assert store.delete_message("k", 5) is None
    assert store.delete_message("k", 0).content == "a"
    assert store.delete_last_message("k").content == "b"
    assert store.delete_last_message("k") is None
    assert store.get_messages("k") == store.get_messages("unknown") == []
    store.set_messages("k", [user("c"), user("d")])
    assert texts(LibraryChatStore(path).get_messages("k")) == ["c", "d"]
    assert texts(store.delete_messages("k")) == ["c", "d"]
    assert store.get_keys() == ["other"]


async def test_its_async_twins(store):
    await store.async_add_message("k", user("a"))
    await store.aset_messages("k", [user("a"), user("b"), user("c")])
    assert texts(await store.aget_messages("k")) == ["a", "b", "c"]
    assert (await store.adelete_message("k", 1)).content == "b"
    assert (await store.adelete_last_message("k")).content == "c"
    assert await store.aget_keys() == ["k"]
    assert texts(await store.adelete_messages("k")) == ["a"]
    assert await store.aget_keys() == []


async def test_the_asynchronous_interface(store):
    await store.add_messages("k", [user(str(i)) for i in range(6)])
    await store.add_messages("k", [])
    await store.add_message("k", user("6"))
    assert texts(await store.archive_oldest_messages("k", 2)) == ["0", "1"]
    assert texts(await store.get_messages("k")) == ["2", "3", "4", "5", "6"]
    assert texts(await store.get_messages("k", status=ARCHIVED)) == ["0", "1"]
    assert len(await store.get_messages("k", status=None)) == 7
    assert texts(await store.get_messages("k", limit=2, offset=1)) == ["3", "4"]
    assert (await store.count_messages("k"), await store.count_messages("k", ARCHIVED)) == (5, 2)
    assert await store.count_messages("k", None) == 7
    assert texts(await store.delete_oldest_messages("k", 2)) == ["2", "3"]
    assert (await store.delete_message("k", 0)).content == "4"
    await store.delete_messages("k", ARCHIVED)
    assert texts(await store.get_messages("k", status=None)) == ["5", "6"]
    await store.delete_messages("k")
    await store.add_message("k", user("new"))
    assert texts(await store.get_messages("k")) == ["new"]
    await store.set_messages("k", [user("old")], status=ARCHIVED)
    assert (await store.get_messages("k"), texts(await store.get_messages("k", ARCHIVED))) == ([], ["old"])
    await store.add_message("k", user("older"), status=ARCHIVED)
    await store.set_messages("k", [user("now")])
    assert texts(await store.get_messages("k", status=None)) == ["now"]
    assert await store.get_keys() == ["k"]


def test_a_plain_function_may_hand_the_answer_to_a_loop(store):
    store.set_messages("k", [user("a")])
    assert asyncio.run(store.add_message("k", user("b"))) is not None
    assert texts(asyncio.run(store.get_messages("k"))) == ["a", "b"]


def test_plain_functions_inside_a_running_loop_are_done_when_they_return(store):
    async def cell():
        def plain():
            store.add_message("k", user("a"))
            return store.get_messages("k")

        return plain()

    assert texts(asyncio.run(cell())) == ["a"]


async def test_coroutines_do_not_use_the_loops_thread(store, monkeypatch):
    used = set()
    original = LibraryChatStore._session

    def spy(self, key):
        used.add(threading.get_ident())
        return original(self, key)

    monkeypatch.setattr(LibraryChatStore, "_session", spy)
    await store.add_message("k", user("a"))
    await store.get_messages("k")
    await store.archive_oldest_messages("k", 1)
    await store.delete_messages("k")
    assert threading.get_ident() not in used


async def test_concurrent_adds_keep_order_and_lose_nothing(store):
    await asyncio.gather(*(store.add_message("k", user(str(i))) for i in range(50)))
    assert texts(await store.get_messages("k")) == [str(i) for i in range(50)]


def test_what_is_returned_is_a_copy_of_the_message_as_it_was(store):
    original = ChatMessage(
        role="assistant",
        blocks=[ToolCallBlock(tool_call_id="c", tool_name="t", tool_kwargs={"a": [1]})],
        additional_kwargs={"x": [1]},
    )
    store.add_message("k", original)
    (first,) = store.get_messages("k")
    assert first == original
    first.additional_kwargs["x"].append(2)
    assert store.get_messages("k") == [original]


def test_deleted_text_is_gone_from_the_file(path, store):
    store.add_message("k", user("the password is swordfish"))
    store.set_messages("k", [user("nothing here")])
    store.add_message("k", user("marlin too"))
    store.delete_last_message("k")
    del store
    for file in path.parent.iterdir():
        assert b"swordfish" not in file.read_bytes()
        assert b"marlin" not in file.read_bytes()


def test_a_buffer_on_the_store_survives_restarts(path):
    buffer = ChatMemoryBuffer.from_defaults(chat_store=LibraryChatStore(path), chat_store_key="k", token_limit=1000)
    buffer.put(user("a"))
    buffer.set([user("a"), user("b")])
    again = ChatMemoryBuffer.from_defaults(chat_store=LibraryChatStore(path), chat_store_key="k", token_limit=1000)
    assert texts(again.get()) == ["a", "b"]
    assert buffer.model_dump()["chat_store"]["path"] == str(path)
    buffer.reset()
    assert again.get() == []


async def test_memory_on_the_store_loses_nothing_and_survives_restarts(path):
    def memory(**options):
        return Memory.from_defaults(session_id="k", chat_store=LibraryChatStore(path), **options)

    first = memory(chat_history=[user("first")], token_limit=400, token_flush_size=50)
    await asyncio.gather(*(first.aput(user(f"message {i}")) for i in range(50)))
    await first.aput_messages([])
    everything = await first.aget_all(status=None)
    assert texts(everything) == ["first", *(f"message {i}" for i in range(50))]
    await first.aput(user("word " * 300))
    assert len(await first.aget()) < 51
    assert texts(await memory().aget_all(status=None))[:2] == ["first", "message 0"]
    await first.areset()
    assert await memory().aget_all(status=None) == []


def test_the_library_goes_on_with_what_a_buffer_stored(path):
    buffer = ChatMemoryBuffer.from_defaults(chat_store=LibraryChatStore(path), chat_store_key="k")
    buffer.put_messages([user("my cat is called Minka"), ChatMessage(role="assistant", content="nice")])
    memory = LibraryMemory(path, "k")
    assert texts(memory.get("what is my cat called?")) == ["my cat is called Minka", "nice"]


def test_pickle_reopens_the_file(path, store):
    store.add_message("k", user("a"))
    assert texts(pickle.loads(pickle.dumps(store)).get_messages("k")) == ["a"]
    with pytest.raises(TypeError, match="in memory"):
        pickle.dumps(LibraryChatStore())
