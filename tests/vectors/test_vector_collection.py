"""A vector collection's life: storing, finding, replacing, deleting, across threads, processes and restarts."""

import asyncio
import json
import multiprocessing
import threading

import numpy as np
import pytest

from libctx_core.errors import (
    EmbeddingDimensionError,
    EmbeddingProfileError,
    InvalidIdentifierError,
    InvalidInputError,
    InvalidTextError,
)
from libctx_core.search.collection import VectorCollection
from libctx_core.search.collection_items import CollectionItem
from libctx_core.search.filters import And, Compare
from libctx_core.search.vectors import VectorIndex
from libctx_core.store.database import Database


@pytest.fixture
def database(tmp_path):
    opened = Database(tmp_path / "library.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def collection(database):
    return VectorCollection(database, "nodes")


def item(key, vector=(1.0, 0.0), **fields):
    return CollectionItem(key=key, **{"text": f"text of {key}", "vector": vector, **fields})


def keys(found):
    return [getattr(one, "item", one).key for one in found]


def test_what_goes_in_comes_out(collection):
    stored = item("a", [0.1, 0.2], metadata={"k": [1, {"x": None}]}, ref="doc", payload='{"own": 1}')
    assert collection.upsert([stored]) == ["a"]
    (found,) = collection.get(["a"], with_vectors=True)
    assert (found.key, found.text, found.metadata, found.ref, found.payload) == (
        "a",
        "text of a",
        {"k": [1, {"x": None}]},
        "doc",
        '{"own": 1}',
    )
    assert found.vector.tolist() == np.array([0.1, 0.2], np.float32).tolist()


def test_inputs_are_not_changed_and_outputs_are_copies(collection):
    metadata = {"tags": ["a"], "pair": (1, 2)}
    vector = np.array([1.0, 2.0])
    collection.upsert([item("a", vector, metadata=metadata)])
    metadata["tags"].append("b")
    vector[0] = 9
    for _ in range(2):
        (found,) = collection.get(["a"], with_vectors=True)
        assert found.metadata == {"tags": ["a"], "pair": [1, 2]}
        assert found.vector.tolist() == [1, 2]
        found.metadata["tags"].append("c")
        found.vector[:] = 0
    hit = collection.query([1, 2], k=1)[0]
    hit.item.metadata.clear()
    assert collection.get(["a"])[0].metadata == {"tags": ["a"], "pair": [1, 2]}


def test_upsert_replaces_text_vector_and_metadata(collection):
    collection.upsert([item("a", [1, 0], text="old", metadata={"v": 1}, ref="one"), item("b", [0, 1])])
    collection.query([1, 0], k=2)
    collection.upsert([item("a", [0, 1], text="new", metadata={"w": 2}, ref="two")])
    assert collection.count() == 2
    assert collection.get(["a"])[0].text == "new"
    assert [hit.score for hit in collection.query([0, 1], k=5)] == pytest.approx([1, 1])
    assert collection.count(Compare("v", "==", 1)) == 0
    assert keys(collection.get(refs=["one"])) == []
    assert keys(collection.get(refs=["two"])) == ["a"]


def test_of_one_key_twice_in_a_batch_the_last_is_kept(collection):
    assert collection.upsert([item("a", text="first"), item("b"), item("a", text="second")]) == ["a", "b", "a"]
    assert collection.count() == 2
    assert collection.get(["a"])[0].text == "second"


def test_nothing_is_nothing(collection):
    assert collection.upsert([]) == []
    assert collection.query([1, 0], k=3) == []
    assert collection.query(text="word", mode="text") == []
    assert collection.get() == []
    assert collection.count() == 0
    assert collection.delete(["a"]) == 0
    collection.clear()


def test_a_failed_batch_leaves_nothing(collection):
    collection.upsert([item("a")])
    with pytest.raises(EmbeddingDimensionError):
        collection.upsert([item("b"), item("c", [1, 2, 3])])
    with pytest.raises(InvalidInputError):
        collection.upsert([item("d"), item("e", metadata={"k": {1, 2}})])
    assert keys(collection.get()) == ["a"]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"key": ""}, InvalidIdentifierError),
        ({"key": "x" * 513}, InvalidIdentifierError),
        ({"key": "a\x00"}, InvalidIdentifierError),
        ({"key": "a", "ref": " "}, InvalidIdentifierError),
        ({"key": "a", "text": "\ud800"}, InvalidTextError),
        ({"key": "a", "text": None}, InvalidTextError),
        ({"key": "a", "metadata": {1: 2}}, InvalidInputError),
        ({"key": "a", "metadata": {"k": object()}}, InvalidInputError),
        ({"key": "a", "metadata": ["k"]}, InvalidInputError),
        ({"key": "a", "vector": []}, InvalidInputError),
        ({"key": "a", "vector": ["x"]}, InvalidInputError),
        ({"key": "a", "vector": [float("nan")]}, InvalidInputError),
        ({"key": "a", "vector": [1e39]}, InvalidInputError),
        ({"key": "a", "vector": [[1.0]]}, InvalidInputError),
        ({"key": "a", "vector": np.ones((2, 2))}, InvalidInputError),
    ],
)
def test_what_cannot_be_stored_is_refused(collection, fields, error):
    with pytest.raises(error):
        collection.upsert([CollectionItem(**{"text": "", "vector": [1, 0], **fields})])
    assert collection.count() == 0


def test_the_first_vector_fixes_the_dimension_and_both_are_named(collection):
    collection.upsert([item("a", [1, 0, 0])])
    for action in (
        lambda: collection.upsert([item("b", [1, 0])]),
        lambda: collection.query([1, 0], k=1),
    ):
        with pytest.raises(ValueError, match=r"3 dimensions, this one has 2"):
            action()


def test_a_given_dimension_holds_for_the_first_vector(database):
    with pytest.raises(EmbeddingDimensionError):
        VectorCollection(database, "c", dimension=3).upsert([item("a", [1, 0])])


def test_profiles_are_not_mixed(database):
    VectorCollection(database, "c", profile="model-a").upsert([item("a")])
    other = VectorCollection(database, "c", profile="model-b")
    for action in (lambda: other.upsert([item("b")]), lambda: other.query([1, 0], k=1)):
        with pytest.raises(EmbeddingProfileError, match=r"model-a.*model-b"):
            action()
    assert keys(other.query(text="text", mode="text")) == ["a"]
    assert keys(VectorCollection(database, "c").query([1, 0], k=1)) == ["a"]


def test_the_first_name_given_to_unnamed_vectors_stays(database):
    VectorCollection(database, "c").upsert([item("a")])
    VectorCollection(database, "c", profile="model-a").upsert([item("b")])
    with pytest.raises(EmbeddingProfileError):
        VectorCollection(database, "c", profile="model-b").upsert([item("c")])


def test_clear_allows_another_embedder(database):
    collection = VectorCollection(database, "c", profile="model-a")
    collection.upsert([item("a")])
    collection.query([1, 0], k=1)
    collection.clear()
    again = VectorCollection(database, "c", profile="model-b")
    again.upsert([item("a", [1, 2, 3])])
    assert keys(again.query([1, 2, 3], k=1)) == ["a"]
    assert keys(again.query(text="text", mode="text")) == ["a"]


def test_items_without_vector_are_found_otherwise(collection):
    collection.upsert([item("a"), item("b", None, metadata={"k": 1})])
    assert keys(collection.query([1, 0], k=5)) == ["a"]
    assert keys(collection.get(where=Compare("k", "==", 1))) == ["b"]
    assert keys(collection.query(text="text of b", mode="text", k=1)) == ["b"]
    assert set(keys(collection.query([1, 0], "text of b", k=5, mode="hybrid"))) == {"a", "b"}


def test_conditions_intersect(collection):
    collection.upsert([item(f"{ref}{n}", metadata={"n": n}, ref=ref) for ref in "xyz" for n in range(3)])
    low = Compare("n", "<=", 1)
    assert keys(collection.get(refs=["x"], where=low)) == ["x0", "x1"]
    assert keys(collection.get(["x1", "x2", "y1"], where=low, refs=["x"])) == ["x1"]
    assert keys(collection.query([1, 0], k=9, keys=["x1", "y2"], where=low)) == ["x1"]
    assert collection.delete(["x0", "x2"], where=low) == 1
    assert collection.count() == 8


def test_an_empty_list_meets_nothing(collection):
    collection.upsert([item("a", ref="d")])
    for condition in ({"refs": []}, {"keys": []}):
        assert collection.get(**condition) == []
        assert collection.query([1, 0], k=5, **condition) == []
        assert collection.delete(**condition) == 0
    assert collection.count() == 1


def test_delete_without_condition_is_refused(collection):
    collection.upsert([item("a")])
    for arguments in ({}, {"where": And(())}):
        with pytest.raises(ValueError, match="clear"):
            collection.delete(**arguments)
    assert collection.count() == 1


def test_get_pages_in_order_of_writing(collection):
    collection.upsert([item(str(at)) for at in range(5)])
    collection.upsert([item("1")])
    assert keys(collection.get()) == ["0", "2", "3", "4", "1"]
    assert keys(collection.get(limit=2, offset=1)) == ["2", "3"]
    assert collection.get(limit=0) == []


def test_hostile_keys_are_plain_keys(collection):
    hostile = ["a' OR '1'='1", "%", "_", '"; DROP TABLE record; --', "ключ"]
    collection.upsert([item(key, ref=key) for key in hostile])
    for key in hostile:
        assert keys(collection.get([key])) == [key]
        assert collection.delete(refs=[key]) == 1
    assert collection.count() == 0


def test_deleted_space_is_used_again(database, collection):
    batch = [item(f"k{at}", np.ones(64) * at, text="word " * 100, metadata={"n": at}) for at in range(300)]
    collection.upsert(batch)
    collection.query(text="word", mode="text", k=1)
    full = database.size()
    for _ in range(4):
        collection.delete([one.key for one in batch])
        collection.upsert(batch)
    assert database.size() < 1.3 * full


def test_collections_of_one_file_are_apart(database):
    one, two = VectorCollection(database, "one"), VectorCollection(database, "two")
    other = VectorCollection(database, "one", collection="elsewhere")
    one.upsert([item("a", [1, 0], metadata={"k": 1})])
    two.upsert([item("a", [1, 0, 0], metadata={"k": 1}), item("b", [0, 1, 0])])
    assert other.count() == 0
    two.clear()
    assert keys(one.query([1, 0], k=5, where=Compare("k", "==", 1))) == ["a"]


def test_restart_keeps_everything(tmp_path):
    path = tmp_path / "library.sqlite"
    first = Database(path)
    VectorCollection(first, "c").upsert([item("a", metadata={"k": "v"}), item("b", [0, 1])])
    first.close()
    second = Database(path)
    collection = VectorCollection(second, "c")
    assert keys(collection.query([0, 1], k=1)) == ["b"]
    assert keys(collection.get(where=Compare("k", "in", ["v"]))) == ["a"]
    second.close()
    reading = Database(path, read_only=True)
    assert keys(VectorCollection(reading, "c").query([0, 1], k=1)) == ["b"]
    reading.close()


def test_mmr_prefers_difference(collection):
    collection.upsert([item("a", [1, 0.1]), item("twin", [1, 0.11]), item("other", [0.6, -0.8])])
    assert keys(collection.query([1, 0], k=2)) == ["a", "twin"]
    found = collection.query([1, 0], k=2, mode="mmr", mmr_lambda=0.3)
    assert keys(found) == ["a", "other"]
    assert found[1].score == pytest.approx(0.6, abs=1e-6)
    assert keys(collection.query([1, 0], k=2, mode="mmr", mmr_lambda=1.0)) == ["a", "twin"]


def test_text_and_hybrid(collection):
    collection.upsert(
        [
            item("cat", [1, 0], text="the cat sat on the mat"),
            item("dog", [0, 1], text="a dog barked"),
            item("car", [0.9, 0.1], text="an engine started"),
        ]
    )
    assert keys(collection.query(text="cats", mode="text")) == ["cat"]
    assert collection.query(text="zebra", mode="text") == []
    assert keys(collection.query([0.9, 0.1], "dog", k=3, mode="hybrid", alpha=1.0))[0] == "car"
    assert keys(collection.query(text="dog", k=3, mode="hybrid", alpha=0.0)) == ["dog"]
    mixed = collection.query([1, 0], "dog", k=3, mode="hybrid", alpha=0.4)
    assert keys(mixed)[0] == "dog"
    assert all(0 <= hit.score <= 1 for hit in mixed)
    collection.upsert([item("late", [0, -1], text="another dog")])
    assert set(keys(collection.query(text="dog", mode="text"))) == {"dog", "late"}
    collection.delete(["dog"])
    assert keys(collection.query(text="dog", mode="text")) == ["late"]
    assert keys(collection.query(text="dog", mode="text", where=Compare("k", "==", 1))) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": 1},
        {"text": "x"},
        {"mode": "text"},
        {"vector": [1, 0], "mode": "hybrid"},
        {"text": "x", "mode": "hybrid"},
        {"vector": [1, 0], "mode": "svm"},
        {"vector": [1, 0], "text": "x", "mode": "hybrid", "alpha": 1.5},
        {"vector": [1, 0], "mode": "mmr", "mmr_lambda": -1},
    ],
)
def test_a_query_that_lacks_something_is_refused(collection, arguments):
    with pytest.raises(InvalidInputError):
        collection.query(**arguments)


def test_threads_share_a_collection(collection):
    def work(number):
        for at in range(10):
            collection.upsert([item(f"{number}-{at}", [number + 1, at + 1], metadata={"n": number})])
            assert collection.query([number + 1, at + 1], k=1, keys=[f"{number}-{at}"])[0].score > 0.999

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert collection.count() == 80
    assert len(collection.query([1, 1], k=100)) == 80
    assert collection.count(Compare("n", "==", 3)) == 10


def _write_from_another_process(path, number):
    database = Database(path)
    collection = VectorCollection(database, "c")
    for at in range(20):
        collection.upsert([item(f"{number}-{at}", [number, at + 1.0])])
    database.close()


def test_processes_share_a_collection(tmp_path):
    path = tmp_path / "library.sqlite"
    database = Database(path)
    collection = VectorCollection(database, "c")
    collection.upsert([item("here", [1, 1])])
    assert len(collection.query([1, 1], k=100)) == 1
    context = multiprocessing.get_context("spawn")
    others = [context.Process(target=_write_from_another_process, args=(path, number)) for number in (1, 2)]
    for process in others:
        process.start()
    for process in others:
        process.join()
        assert process.exitcode == 0
    assert len(collection.query([1, 1], k=100)) == 41
    database.close()


async def test_async_twins(collection):
    assert await collection.aupsert([item("a"), item("b", [0, 1], metadata={"k": 1})]) == ["a", "b"]
    assert keys(await collection.aquery([0, 1], k=1)) == ["b"]
    assert keys(await collection.aget(where=Compare("k", "==", 1))) == ["b"]
    assert await collection.acount() == 2
    assert await collection.adelete(["a"]) == 1
    await collection.aclear()
    assert await collection.acount() == 0


async def test_the_loop_runs_on_while_a_large_batch_is_stored(collection):
    batch = [item(str(at), np.ones(128) * at, metadata={"n": at}) for at in range(2_000)]
    turns = 0

    async def watch():
        nonlocal turns
        while True:
            await asyncio.sleep(0.001)
            turns += 1

    watcher = asyncio.create_task(watch())
    await collection.aupsert(batch)
    watcher.cancel()
    assert turns >= 10  # a call that held the loop would leave it none


class _Refusing:
    """A guard that allows some operations and remembers what it was asked."""

    def __init__(self, *allowed):
        self.allowed = allowed
        self.asked = []

    def require(self, operation, owner):
        self.asked.append(operation.value)
        if operation.value not in self.allowed:
            raise PermissionError(operation)


def test_the_guard_is_asked_before_anything_is_touched(database):
    VectorCollection(database, "c").upsert([item("a")])

    def denied(action, *allowed):
        guarded = VectorCollection(database, "c", guard=_Refusing(*allowed))
        with pytest.raises(PermissionError):
            action(guarded)

    denied(lambda c: c.upsert([item("b")]), "READ", "DELETE", "CREATE")
    denied(lambda c: c.delete(["a"]), "READ", "WRITE", "CREATE")
    denied(lambda c: c.clear(), "READ", "WRITE", "CREATE")
    denied(lambda c: c.get(), "WRITE", "DELETE", "CREATE")
    denied(lambda c: c.count(), "WRITE", "DELETE", "CREATE")
    denied(lambda c: c.query([1, 0]), "WRITE", "DELETE", "CREATE")
    denied(lambda c: c.query(text="x", mode="text"), "WRITE", "DELETE", "CREATE")
    with pytest.raises(PermissionError):
        VectorCollection(database, "new", guard=_Refusing("READ", "WRITE", "DELETE")).upsert([item("a")])
    assert keys(VectorCollection(database, "c").get()) == ["a"]
    assert VectorCollection(database, "new").count() == 0


@pytest.mark.parametrize("backend", ["numpy", "sqlite-vec"])
def test_backends_answer_alike(database, backend):
    random = np.random.default_rng(3)
    collection = VectorCollection(database, "c", index=VectorIndex(backend=backend))
    vectors = random.standard_normal((300, 16)).astype(np.float32)
    collection.upsert([item(str(at), vectors[at], metadata={"even": at % 2 == 0}) for at in range(300)])
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for at in range(20):
        found = collection.query(vectors[at], k=5, where=Compare("even", "==", True))
        best = sorted(range(0, 300, 2), key=lambda other: -float(units[other] @ units[at]))[:5]
        assert keys(found) == [str(other) for other in best]


def test_metadata_larger_than_any_limit_of_sql_variables(collection):
    wide = {f"key {at}": at for at in range(3_000)} | {"list": list(range(3_000))}
    collection.upsert([item("a", metadata=wide)])
    assert collection.count(Compare("key 2999", "==", 2999)) == 1
    assert collection.count(Compare("list", "all", [0, 2999])) == 1
    collection.upsert([item(str(at)) for at in range(1_100)])
    assert len(collection.get([str(at) for at in range(1_100)])) == 1_100
    assert json.loads(json.dumps(collection.get(["a"])[0].metadata)) == wide
