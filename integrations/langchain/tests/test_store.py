"""`LibraryStore`: the behaviours of LangGraph's own store tests, one filter semantics, time to live, vectors."""

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_libctx.filters import matches
from langchain_libctx.store import AsyncLibraryStore, LibraryStore
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from libctx_core import LibraryOfContext
from libctx_core.errors import EmbeddingDimensionError, InvalidFilterError, InvalidInputError


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_minutes(self, minutes: float) -> None:
        self.now += minutes * 60


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LibraryStore]:
    path = ":memory:" if request.param == "memory" else str(tmp_path / "store.sqlite")
    with LibraryStore.from_conn_string(path) as opened:
        yield opened


def keys(items: list[Any]) -> list[str]:
    return [item.key for item in items]


# -- items and batches --------------------------------------------------------------


def test_put_get_delete(store: LibraryStore) -> None:
    store.put(("docs", "ann"), "k", {"title": "one", "deep": {"n": [1, None, True]}})
    item = store.get(("docs", "ann"), "k")
    assert isinstance(item, Item)
    assert (item.namespace, item.key) == (("docs", "ann"), "k")
    assert item.value == {"title": "one", "deep": {"n": [1, None, True]}}
    assert store.get(("docs",), "k") is None
    assert store.get(("docs", "ben"), "k") is None
    store.delete(("docs", "ann"), "k")
    store.delete(("docs", "ann"), "k")
    assert store.get(("docs", "ann"), "k") is None


def test_times_of_an_item(tmp_path: Path) -> None:
    clock = Clock()
    store = LibraryStore(tmp_path / "s.sqlite", clock=clock)
    store.put(("a",), "k", {"v": 1})
    clock.pass_minutes(5)
    store.put(("a",), "k", {"v": 2})
    item = store.get(("a",), "k")
    assert (item.updated_at - item.created_at).total_seconds() == 300
    assert item.created_at.tzinfo is not None
    store.close()


def test_results_of_a_batch_stand_in_the_order_of_its_operations(store: LibraryStore) -> None:
    store.put(("t", "foo"), "k1", {"data": "v1"})
    store.put(("t", "bar"), "k2", {"data": "v2"})
    results = store.batch(
        [
            SearchOp(("t",), {"data": "v1"}),
            PutOp(("t",), "k3", {"data": "v3"}),
            GetOp(("t", "bar"), "k2"),
            ListNamespacesOp(),
            GetOp(("t",), "k3"),
        ]
    )
    assert keys(results[0]) == ["k1"]
    assert results[1] is None
    assert results[2].value == {"data": "v2"}
    assert results[3] == [("t", "bar"), ("t", "foo")]
    assert results[4] is None, "reads see the state before the batch"
    assert store.get(("t",), "k3").value == {"data": "v3"}


def test_the_last_write_of_a_key_in_a_batch_counts(store: LibraryStore) -> None:
    store.batch([PutOp(("a",), "k", {"v": 1}), PutOp(("a",), "k", {"v": 2}), PutOp(("a",), "gone", {"v": 1})])
    store.batch([PutOp(("a",), "k", {"v": 3}), PutOp(("a",), "gone", {"v": 2}), PutOp(("a",), "gone", None)])
    assert store.get(("a",), "k").value == {"v": 3}
    assert store.get(("a",), "gone") is None


def test_a_batch_is_all_or_nothing(store: LibraryStore) -> None:
    with pytest.raises(InvalidInputError):
        store.batch([PutOp(("a",), "good", {"v": 1}), PutOp(("a",), "bad", {"v": object()})])
    with pytest.raises(InvalidNamespaceError):
        store.batch([PutOp(("a",), "good", {"v": 1}), PutOp(("a.b",), "bad", {"v": 1})])
    assert store.search(("a",)) == []


def test_bad_labels_are_refused_in_raw_operations_too(store: LibraryStore) -> None:
    for namespace in (("a.b",), ("",), ("a\x00",), (1,)):
        for op in (GetOp(namespace, "k"), SearchOp(namespace), PutOp(namespace, "k", {})):  # type: ignore[arg-type]
            with pytest.raises(InvalidNamespaceError):
                store.batch([op])
    with pytest.raises(InvalidNamespaceError):
        store.put(("langgraph",), "k", {})


def test_values_are_copies(store: LibraryStore) -> None:
    value = {"list": [1]}
    store.put(("a",), "k", value)
    value["list"].append(2)
    store.get(("a",), "k").value["list"].append(3)
    assert store.get(("a",), "k").value == {"list": [1]}


def test_several_stores_share_a_library(tmp_path: Path) -> None:
    with LibraryOfContext(tmp_path / "l.sqlite") as library:
        one, two = LibraryStore(library), LibraryStore(library, name="other")
        one.put(("a",), "k", {"v": 1})
        assert two.get(("a",), "k") is None
        assert two.list_namespaces() == []
        assert LibraryStore(library).get(("a",), "k").value == {"v": 1}


# -- namespaces ------------------------------------------------------------------------


def put_all(store: LibraryStore, *namespaces: tuple[str, ...]) -> None:
    for namespace in namespaces:
        store.put(namespace, "k", {"v": 1})


def found(store: LibraryStore, prefix: tuple[str, ...]) -> set[tuple[str, ...]]:
    return {item.namespace for item in store.search(prefix, limit=100)}


def test_a_prefix_ends_at_a_label(store: LibraryStore) -> None:
    put_all(store, ("acme",), ("acme", "x"), ("acme", "x", "y"), ("acme-corp",), ("acme2", "x"), ("Acme",))
    assert found(store, ("acme",)) == {("acme",), ("acme", "x"), ("acme", "x", "y")}
    assert found(store, ("acme-corp",)) == {("acme-corp",)}
    assert found(store, ("Acme",)) == {("Acme",)}
    assert found(store, ("acm",)) == set()
    assert len(found(store, ())) == 6


def test_wildcards_of_sql_are_plain_characters(store: LibraryStore) -> None:
    labels = ["user_1", "userX1", "a%b", "axxb", "star*", "starX", "q?m", "qXm", "br[ack]et", "brXacXket", "new\n"]
    put_all(store, *((label,) for label in labels), *((label, "child") for label in labels))
    for label in labels:
        assert found(store, (label,)) == {(label,), (label, "child")}
        if "*" not in label:
            assert set(store.list_namespaces(prefix=(label,), limit=100)) == {(label,), (label, "child")}


def test_listing_namespaces(store: LibraryStore) -> None:
    put_all(
        store,
        ("u", "test", "documents", "public"),
        ("u", "test", "documents", "private"),
        ("u", "test", "images", "public"),
        ("u", "prod", "documents", "public"),
        ("u", "prod", "documents", "some", "nesting", "public"),
        ("v", "alice"),
        ("v", "malice"),
    )
    assert len(store.list_namespaces()) == 7
    assert len(store.list_namespaces(prefix=("u", "test"))) == 3
    assert len(store.list_namespaces(suffix=("public",))) == 4
    assert store.list_namespaces(suffix=("alice",)) == [("v", "alice")]
    assert len(store.list_namespaces(prefix=("u", "*", "documents"))) == 4
    assert store.list_namespaces(prefix=("u", "test"), suffix=("images", "*")) == [("u", "test", "images", "public")]
    assert store.list_namespaces(max_depth=2) == [("u", "prod"), ("u", "test"), ("v", "alice"), ("v", "malice")]
    assert store.list_namespaces(limit=2, offset=5) == [("v", "alice"), ("v", "malice")]
    with pytest.raises(InvalidInputError):
        store.batch([ListNamespacesOp((MatchCondition("middle", ("u",)),))])  # type: ignore[arg-type]
    store.delete(("v", "alice"), "k")
    assert ("v", "alice") not in store.list_namespaces()


# -- search and filters ------------------------------------------------------------------


def test_unfiltered_search_shows_the_last_changed_first(tmp_path: Path) -> None:
    clock = Clock()
    store = LibraryStore(tmp_path / "s.sqlite", clock=clock)
    for key in "abc":
        store.put(("t",), key, {"v": key})
        clock.pass_minutes(1)
    store.put(("t",), "a", {"v": "again"})
    assert keys(store.search(("t",))) == ["a", "c", "b"]
    assert keys(store.search(("t",), limit=1, offset=1)) == ["c"]
    assert store.search(("t",), limit=0) == []
    store.close()


MIXED = {
    "number": {"score": 4},
    "float": {"score": 4.0},
    "text": {"score": "4"},
    "true": {"score": True},
    "null": {"score": None},
    "missing": {"other": 1},
    "list": {"score": [4]},
}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (4, {"number", "float"}),
        ("4", {"text"}),
        (True, {"true"}),
        (None, {"null", "missing"}),
        ([4], {"list"}),
        ({"$eq": 4}, {"number", "float"}),
        ({"$ne": 4}, {"text", "true", "null", "list"}),
        ({"$gt": 3}, {"number", "float"}),
        ({"$gte": 4, "$lte": 4}, {"number", "float"}),
        ({"$lt": "5"}, {"text"}),
        ({"$gt": float("-inf")}, {"number", "float"}),
        ({"$eq": float("nan")}, set()),
        ({"$lt": 10**100}, {"number", "float"}),
    ],
)
def test_one_filter_semantics(store: LibraryStore, condition: Any, expected: set[str]) -> None:
    """A missing key matches nothing but a plain None; kinds of values never mix."""
    for key, value in MIXED.items():
        store.put(("t",), key, value)
    assert set(keys(store.search(("t",), filter={"score": condition}, limit=20))) == expected


def test_nested_and_dotted_keys(store: LibraryStore) -> None:
    store.put(("t",), "nested", {"meta": {"lang": "en", "page": 3}, "user": {"access-level": "low"}})
    store.put(("t",), "dotted", {"meta.lang": "en", "123abc": "ok"})
    assert keys(store.search(("t",), filter={"meta": {"lang": "en"}})) == ["nested"]
    assert keys(store.search(("t",), filter={"meta": {"page": {"$gt": 2}}})) == ["nested"]
    assert set(keys(store.search(("t",), filter={"meta.lang": "en"}))) == {"nested", "dotted"}
    assert keys(store.search(("t",), filter={"user.access-level": "low"})) == ["nested"]
    assert keys(store.search(("t",), filter={"123abc": "ok"})) == ["dotted"]


def test_hostile_filters(store: LibraryStore) -> None:
    store.put(("d",), "public", {"access": "public"})
    store.put(("d",), "quote", {"access": "O'Brien's \" file"})
    with pytest.raises(ValueError, match="Invalid filter key"):
        store.search(("d",), filter={"access') = 'public' OR '1'='1": "x"})
    with pytest.raises(InvalidFilterError):
        store.search(("d",), filter={"access": {"$regex": ".*"}})
    for value in ("public' OR '1'='1", "public'; --", "public\x00'", "''''"):
        assert store.search(("d",), filter={"access": value}) == []
    assert keys(store.search(("d",), filter={"access": "O'Brien's \" file"})) == ["quote"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab\"'é", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(
    values=st.lists(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3), max_size=6),
    wanted=st.dictionaries(st.sampled_from(["a", "b", "a.b"]), JSON, min_size=1, max_size=2),
)
def test_the_file_finds_what_the_definition_says(values: list[dict[str, Any]], wanted: dict[str, Any]) -> None:
    """The sieve in SQL never loses an item that the one definition matches."""
    with LibraryStore.from_conn_string(":memory:") as store:
        for number, value in enumerate(values):
            store.put(("t",), str(number), value)
        expected = {str(number) for number, value in enumerate(values) if matches(value, wanted)}
        assert set(keys(store.search(("t",), filter=wanted, limit=50))) == expected


# -- time to live --------------------------------------------------------------------------


def timed(tmp_path: Path, clock: Clock, **config: Any) -> LibraryStore:
    return LibraryStore(tmp_path / "ttl.sqlite", ttl=config, clock=clock)


def test_items_expire_and_are_swept(tmp_path: Path) -> None:
    clock = Clock()
    store = timed(tmp_path, clock, default_ttl=10)
    store.put(("t",), "default", {"v": 1})
    store.put(("t",), "short", {"v": 1}, ttl=1)
    store.put(("t",), "forever", {"v": 1}, ttl=None)
    clock.pass_minutes(2)
    assert store.sweep_ttl() == 1
    assert set(keys(store.search(("t",)))) == {"default", "forever"}
    clock.pass_minutes(20)
    assert store.sweep_ttl() == 1
    assert keys(store.search(("t",))) == ["forever"]
    store.close()


@pytest.mark.parametrize("omit", [None, False])
def test_expired_items_stay_visible_until_swept_by_default(tmp_path: Path, omit: bool | None) -> None:
    clock = Clock()
    store = timed(tmp_path, clock, default_ttl=1, **({} if omit is None else {"omit_expired": omit}))
    store.put(("t",), "k", {"v": 1})
    clock.pass_minutes(2)
    assert store.get(("t",), "k") is not None
    assert store.list_namespaces() == [("t",)]
    store.close()


def test_omit_expired_hides_from_every_read(tmp_path: Path) -> None:
    clock = Clock()
    store = timed(tmp_path, clock, default_ttl=1, omit_expired=True, refresh_on_read=True)
    store.put(("gone",), "e", {"v": 1})
    store.put(("here",), "c", {"v": 1}, ttl=None)
    clock.pass_minutes(2)
    assert store.get(("gone",), "e", refresh_ttl=True) is None
    assert store.search(("gone",), refresh_ttl=True) == []
    assert store.search((), filter={"v": 1})[0].key == "c"
    assert store.list_namespaces() == [("here",)]
    assert store.sweep_ttl() == 1, "reading must not have revived it"
    store.close()


def test_pages_are_cut_after_expired_items_are_left_out(tmp_path: Path) -> None:
    clock = Clock()
    store = timed(tmp_path, clock, omit_expired=True)
    for key, ttl in (("c", None), ("b", None), ("x", 1), ("a", None)):
        store.put(("t",), key, {"v": 1}, ttl=ttl)
        clock.pass_minutes(0.1)
    clock.pass_minutes(5)
    assert keys(store.search(("t",), limit=2)) == ["a", "b"]
    assert keys(store.search(("t",), limit=2, offset=2)) == ["c"]
    store.close()


def test_reading_refreshes_where_it_is_asked_for(tmp_path: Path) -> None:
    clock = Clock()
    store = timed(tmp_path, clock, default_ttl=10, refresh_on_read=True)
    store.put(("t",), "read", {"id": 1})
    store.put(("t",), "found", {"id": 2})
    store.put(("t",), "left", {"id": 3})
    clock.pass_minutes(9)
    store.get(("t",), "read")
    store.search(("t",), filter={"id": 2})
    store.get(("t",), "left", refresh_ttl=False)
    clock.pass_minutes(5)
    assert store.sweep_ttl() == 1
    assert set(keys(store.search(("t",)))) == {"read", "found"}
    store.close()


def test_the_sweeper_sweeps_and_stops(tmp_path: Path) -> None:
    with LibraryStore.from_conn_string(
        str(tmp_path / "s.sqlite"), ttl={"default_ttl": 0.0001, "sweep_interval_minutes": 0.001}
    ) as store:
        done = store.start_ttl_sweeper()
        assert store.start_ttl_sweeper() is done
        store.put(("t",), "k", {"v": 1})
        for _ in range(100):
            if store.get(("t",), "k") is None:
                break
            done_waiting = store._sweeper._stop.wait(0.05)
            assert not done_waiting
        assert store.get(("t",), "k") is None
        assert store.stop_ttl_sweeper(5)
        assert done.done()


# -- search by meaning -----------------------------------------------------------------------


def letters(texts: list[str]) -> list[list[float]]:
    return [[float(text.lower().count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]


INDEX: Any = {"dims": 26, "embed": letters, "fields": ["text"]}


def test_closest_first_with_filters_and_pages() -> None:
    with LibraryStore.from_conn_string(":memory:", index=INDEX) as store:
        for key, text, colour in (("1", "zebra zebra", "red"), ("2", "zebra dog", "red"), ("3", "dog dog", "blue")):
            store.put(("t",), key, {"text": text, "colour": colour})
        store.put(("t",), "4", {"text": "zebra"}, index=False)
        results = store.search(("t",), query="zebra")
        assert keys(results) == ["1", "2", "3"]
        assert results[0].score == pytest.approx(1.0)
        assert keys(store.search(("t",), query="zebra", filter={"colour": "blue"})) == ["3"]
        assert keys(store.search(("t",), query="zebra", limit=1, offset=1)) == ["2"]
        assert len(store.search(("t",), query="")) == 4
        store.put(("t",), "1", {"text": "dog"})
        assert keys(store.search(("t",), query="zebra"))[0] == "2"
        store.delete(("t",), "2")
        assert "2" not in keys(store.search(("t",), query="zebra"))


def test_the_closest_field_of_an_item_counts() -> None:
    with LibraryStore.from_conn_string(":memory:", index={**INDEX, "fields": ["a", "b[*].c"]}) as store:
        store.put(("t",), "1", {"a": "xxx", "b": [{"c": "yyy"}, {"c": "zzz"}]})
        store.put(("t",), "2", {"a": "uuu"})
        store.put(("t",), "3", {"a": "qqq", "other": "zzz"}, index=["other"])
        assert keys(store.search(("t",), query="zzz"))[:2] in (["1", "3"], ["3", "1"])
        assert store.search(("t",), query="zzz")[1].score == pytest.approx(1.0)
        assert store.search(("t",), query="qqq")[0].score == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("distance", "ranking"),
    [
        ("cosine", [("a", 1.0), ("b", 2 / math.sqrt(4.01)), ("c", 0.0)]),
        ("l2", [("a", 0.0), ("b", -math.sqrt(1.01)), ("c", -math.sqrt(2))]),
        ("inner_product", [("b", 2.0), ("a", 1.0), ("c", 0.0)]),
    ],
)
def test_every_distance_puts_the_closest_first(distance: str, ranking: list[tuple[str, float]]) -> None:
    vectors = {"a": [1.0, 0.0, 0.0], "b": [2.0, 0.1, 0.0], "c": [0.0, 0.0, 1.0]}
    index: Any = {
        "dims": 3,
        "embed": lambda texts: [vectors[t] for t in texts],
        "fields": ["t"],
        "distance_type": distance,
    }
    with LibraryStore.from_conn_string(":memory:", index=index) as store:
        for key in vectors:
            store.put(("d",), key, {"t": key})
        results = store.search(("d",), query="a")
        assert keys(results) == [key for key, _ in ranking]
        assert [item.score for item in results] == pytest.approx([score for _, score in ranking], abs=1e-5)


def test_bad_index_settings_and_vectors() -> None:
    with pytest.raises(InvalidInputError):
        LibraryStore(":memory:", index={**INDEX, "dims": 0})
    with pytest.raises(InvalidInputError):
        LibraryStore(":memory:", index={**INDEX, "distance_type": "manhattan"})
    with LibraryStore.from_conn_string(":memory:", index={**INDEX, "dims": 5}) as store:
        with pytest.raises(EmbeddingDimensionError):
            store.put(("t",), "k", {"text": "x"})
        assert store.search(("t",)) == []


# -- the event loop ------------------------------------------------------------------------------


async def test_async_operations_in_the_same_class(tmp_path: Path) -> None:
    async def embed(texts: list[str]) -> list[list[float]]:
        return letters(texts)

    store = LibraryStore(tmp_path / "s.sqlite", index={**INDEX, "embed": embed})
    await asyncio.gather(*(store.aput(("t",), str(n), {"text": f"word {n}"}) for n in range(20)))
    assert len(await store.asearch(("t",), limit=50)) == 20
    assert (await store.asearch(("t",), query="word"))[0].score is not None
    assert (await store.aget(("t",), "3")).value == {"text": "word 3"}
    await store.adelete(("t",), "3")
    assert await store.aget(("t",), "3") is None
    assert await store.alist_namespaces() == [("t",)]
    assert store.get(("t",), "4") is not None, "a synchronous call on the loop works"
    store.close()


async def test_the_async_store_guards_its_loop_and_merges_operations(tmp_path: Path) -> None:
    async with AsyncLibraryStore.from_conn_string(str(tmp_path / "s.sqlite")) as store:
        await store.setup()
        for attempt in (
            lambda: store.put(("a",), "k", {"v": 1}),
            lambda: store.get(("a",), "k"),
            lambda: store.search(("a",)),
            lambda: store.delete(("a",), "k"),
            lambda: store.list_namespaces(),
            lambda: store.batch([GetOp(("a",), "k")]),
        ):
            with pytest.raises(asyncio.InvalidStateError):
                attempt()
        await asyncio.gather(*(store.aput(("a",), str(n), {"v": n}) for n in range(200)))
        assert len(await store.asearch(("a",), limit=500)) == 200
        assert await asyncio.to_thread(store.get, ("a",), "7") is not None
        assert await store.sweep_ttl() == 0
        await store.start_ttl_sweeper()
        assert await store.stop_ttl_sweeper()


def test_search_before_setup_works(tmp_path: Path) -> None:
    store = LibraryStore(tmp_path / "s.sqlite")
    assert store.search(("a",)) == []
    store.setup()
    store.close()
