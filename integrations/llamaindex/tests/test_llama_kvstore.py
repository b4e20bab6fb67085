"""The key-value store: LlamaIndex's interface, durable, atomic, off the event loop."""

import asyncio
import datetime as dt
import threading

import pytest
from llama_index_libctx import LibraryKVStore

from libctx_core.errors import InvalidInputError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "library.sqlite"


def test_values_survive_reopening_in_insertion_order(path):
    store = LibraryKVStore(path)
    store.put("b", {"n": 1})
    store.put("a", {"n": 2}, collection="other")
    store.put("c", {"n": [1, {"x": None}]})
    del store
    again = LibraryKVStore(path)
    assert again.get_all() == {"b": {"n": 1}, "c": {"n": [1, {"x": None}]}}
    assert again.get("a", collection="other") == {"n": 2}
    assert again.get("a") is None


def test_put_replaces_and_delete_tells(path):
    store = LibraryKVStore(path)
    store.put("k", {"v": 1})
    store.put("k", {"v": 2})
    assert store.get("k") == {"v": 2}
    assert store.delete("k") is True
    assert store.delete("k") is False


def test_what_is_returned_is_a_copy(path):
    store = LibraryKVStore(path)
    value = {"list": [1]}
    store.put("k", value)
    value["list"].append(2)
    store.get("k")["list"].append(3)
    assert store.get("k") == {"list": [1]}


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_put_all_takes_any_batch_size(path, batch_size):
    store = LibraryKVStore(path)
    store.put_all([(str(i), {"i": i}) for i in range(5)], batch_size=batch_size)
    assert list(store.get_all()) == ["0", "1", "2", "3", "4"]


def test_a_failing_batch_stores_nothing(path):
    store = LibraryKVStore(path)
    with pytest.raises(InvalidInputError):
        store.put_all([("good", {"i": 1}), ("bad", {"i": object()})])
    assert store.get_all() == {}


def test_a_failing_transaction_stores_nothing(path):
    store = LibraryKVStore(path)

    def work(view):
        view.put("k", {})
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        store.write(work)
    assert store.get_all() == {}


def test_hostile_text_is_kept(path):
    store = LibraryKVStore(path)
    key, value = (
        "it's; DROP TABLE llama_index_kv --",
        {"t": "nul \x00 lone \ud800 鍵", "day": dt.date(2024, 1, 2)},
    )
    store.put(key, value)
    assert store.get(key) == {"t": value["t"], "day": "2024-01-02"}


async def test_async_methods_do_not_use_the_loops_thread(path):
    store = LibraryKVStore(path)
    await store.aput("a", {"n": 1})
    await store.aput_all([("b", {"n": 2})], batch_size=10)
    assert await store.aget("a") == {"n": 1}
    assert await store.aget_all() == {"a": {"n": 1}, "b": {"n": 2}}
    assert await store.adelete("a") is True
    threads = set()
    write = store.write
    store.write = lambda work: (threads.add(threading.get_ident()), write(work))[1]
    await asyncio.gather(*(store.aput(str(i), {"i": i}) for i in range(20)))
    assert threading.get_ident() not in threads
    assert len(await store.aget_all()) == 21


def test_stores_on_one_path_share_the_open_file(path):
    first, second = LibraryKVStore(path), LibraryKVStore(str(path))
    first.put("k", {"v": 1})
    assert second.get("k") == {"v": 1}


def test_a_file_that_was_replaced_is_opened_anew(path):
    old = LibraryKVStore(path)
    old.put("k", {"v": 1})
    for file in path.parent.glob("library.sqlite*"):
        file.unlink()
    assert LibraryKVStore(path).get("k") is None


def test_private_libraries_in_memory_are_apart():
    first, second = LibraryKVStore(), LibraryKVStore()
    first.put("k", {"v": 1})
    assert second.get("k") is None
