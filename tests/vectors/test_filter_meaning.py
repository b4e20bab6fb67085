"""What filters mean, through every door, and what the doors refuse."""

import json

import pytest

from libctx_core.errors import FilterTypeError, InvalidFilterError
from libctx_core.search.collection import VectorCollection
from libctx_core.search.collection_items import CollectionItem
from libctx_core.search.filters import MAX_DEPTH, MAX_LEAVES, And, Compare, Nor, Operator, Or, like, matches, prune
from libctx_core.search.filters_mapping import OPERATORS, parse_filter
from libctx_core.store.database import Database
from libctx_core.testing.filters import CASES, unanswered


@pytest.fixture(scope="module")
def collections():
    """Return a function that stores rows in a collection of their own, once."""
    database = Database(":memory:")
    filled = {}

    def of(rows):
        if id(rows) not in filled:
            collection = VectorCollection(database, f"rows {len(filled)}")
            collection.upsert([CollectionItem(key=key, text="", metadata=value) for key, value in rows.items()])
            filled[id(rows)] = collection
        return filled[id(rows)]

    yield of
    database.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case_by_index(case, collections):
    assert {item.key for item in collections(case.rows).get(where=case.filter)} == case.expected
    assert collections(case.rows).count(case.filter) == len(case.expected)


@pytest.mark.parametrize("case", [case for case in CASES if case.mapping is not None], ids=lambda case: case.name)
def test_case_as_mapping(case):
    tree = parse_filter(case.mapping)
    assert {key for key, metadata in case.rows.items() if matches(tree, metadata)} == case.expected


def test_every_case_by_evaluator():
    assert unanswered(lambda rows, tree: [key for key, metadata in rows.items() if matches(tree, metadata)]) == []


def test_cases_cover_every_operator_and_group():
    def parts(tree):
        yield type(tree) if not isinstance(tree, Compare) else tree.operator
        for child in getattr(tree, "children", ()):
            yield from parts(child)

    seen = {part for case in CASES for part in parts(case.filter)}
    assert seen >= (set(Operator) - {Operator.ILIKE}) | {And, Or, Nor}


@pytest.mark.parametrize("operator", [Operator.TEXT_MATCH, Operator.TEXT_MATCH_INSENSITIVE])
@pytest.mark.parametrize("value", [1, 1.5, True, 2**70, float("nan"), [], ["a"], {"a": 1}])
def test_text_match_refuses_metadata_that_is_no_text(operator, value):
    collection = VectorCollection(Database(":memory:"), "c")
    collection.upsert([CollectionItem(key="a", text="", metadata={"k": value}), CollectionItem(key="b", text="")])
    with pytest.raises(TypeError) as caught:
        collection.get(where=Compare("k", operator, "x"))
    assert (caught.value.code, caught.value.place) == ("filter_type", "metadata")
    assert caught.value.found == type(value).__name__ or value is True
    with pytest.raises(FilterTypeError):
        matches(Compare("k", operator, "x"), {"k": value})


def test_text_match_takes_missing_and_null():
    collection = VectorCollection(Database(":memory:"), "c")
    collection.upsert([CollectionItem(key="a", text="", metadata={"k": None}), CollectionItem(key="b", text="")])
    assert collection.get(where=Compare("k", "text_match", "x")) == []


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        ("in", "text"),
        ("nin", 3),
        ("any", {"a": 1}),
        ("all", None),
        ("exists", 1),
        ("is_null", None),
        ("==", {1, 2}),
        ("==", b"bytes"),
        ("in", [object()]),
        ("~", 1),
    ],
)
def test_a_value_that_does_not_fit_is_refused(operator, value):
    with pytest.raises(InvalidFilterError):
        Compare("k", operator, value)


@pytest.mark.parametrize("operator", ["text_match", "text_match_insensitive", "like", "ilike"])
def test_a_pattern_that_is_no_text_is_a_type_error(operator):
    with pytest.raises(TypeError):
        Compare("k", operator, 1)


@pytest.mark.parametrize("path", [(), ("a", 1)])
def test_a_path_is_keys(path):
    with pytest.raises(InvalidFilterError):
        Compare(path, "==", 1)


def test_changing_a_list_later_does_not_change_the_filter():
    wanted = ["a"]
    leaf = Compare("k", "in", wanted)
    wanted.append("b")
    assert not matches(leaf, {"k": "b"})


@pytest.mark.parametrize(
    "mapping",
    [
        {"k": {"$regex": "x"}},
        {"k": {"$eq": 1, "name": 2}},
        {"$gt": 1},
        {"$and": []},
        {"$or": {"k": 1}},
        {"$and": [1]},
        {"$not": {}},
        {"$unknown": [{"k": 1}]},
        {"k": {"$between": [1]}},
        {"k": {"$in": "text"}},
        {"k": {"$exists": "yes"}},
        {1: 2},
        {"k": {"$not": 3}},
        [("k", 1)],
    ],
)
def test_a_mapping_that_cannot_be_meant_is_refused(mapping):
    with pytest.raises(InvalidFilterError):
        parse_filter(mapping)


def test_mappings_say_null_in_lists():
    rows = [{"k": None}, {}, {"k": "a"}, {"k": "b"}]
    assert [matches(parse_filter({"k": {"$in": [None, "a"]}}), row) for row in rows] == [True, True, True, False]
    assert [matches(parse_filter({"k": {"$nin": [None, "a"]}}), row) for row in rows] == [False, False, False, True]


def test_mappings_combine_operators_under_one_key():
    tree = parse_filter({"k": {"$gt": 1, "$not": {"$gte": 5}}})
    assert [matches(tree, {"k": value}) for value in (1, 2, 4, 5)] == [False, True, True, False]


def test_every_mapping_operator_is_an_operator():
    assert set(OPERATORS.values()) <= set(Operator)
    assert parse_filter(None) is None
    assert parse_filter({}) is None


def test_depth_and_size_are_bounded():
    deep = Compare("k", "==", 1)
    for _ in range(MAX_DEPTH + 1):
        deep = Nor((deep,))
    with pytest.raises(InvalidFilterError):
        matches(deep, {})
    with pytest.raises(InvalidFilterError):
        prune(Or((Compare("k", "==", 1),) * (MAX_LEAVES + 1)))
    nested = {"k": 1}
    for _ in range(MAX_DEPTH + 2):
        nested = {"$not": nested}
    with pytest.raises(InvalidFilterError):
        parse_filter(nested)


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("", "", True),
        ("", "a", False),
        ("%", "", True),
        ("a%", "abc", True),
        ("%c", "abc", True),
        ("%b%", "abc", True),
        ("a%a", "a", False),
        ("_", "é", True),
        ("_", "", False),
        ("a_c", "abc", True),
        ("a_c", "abbc", False),
        ("%a_%", "xxab", True),
        ("%ab%ab", "abab", True),
        ("%ab%ab", "aab", False),
        ("a.c", "abc", False),
        ("%" * 50 + "b", "a" * 5000, False),
    ],
)
def test_like(pattern, text, found):
    assert like(pattern, text) is found


def test_ilike_folds_case():
    assert matches(Compare("k", "ilike", "STRASS%"), {"k": "straße"})
    assert not matches(Compare("k", "like", "STRASS%"), {"k": "straße"})


def test_the_index_follows_every_change(tmp_path):
    """No row of the index outlives its record, whatever its values were."""
    database = Database(tmp_path / "library.sqlite")
    collection = VectorCollection(database, "c")
    every = {"s": "x", "n": 1, "big": 2**80, "nan": float("nan"), "l": [1, "a", [2], None], "d": {"e": {"f": "g"}}}
    collection.upsert([CollectionItem(key="a", text="", metadata={**every, "long": "y" * 999})])
    collection.upsert([CollectionItem(key="b", text="", metadata=every)])
    collection.upsert([CollectionItem(key="a", text="", metadata={"s": "z"})])
    assert collection.get(where=Compare("long", "contains", "y")) == []
    assert [item.key for item in collection.get(where=Compare("s", "==", "z"))] == ["a"]
    collection.delete(["a", "b"])
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM metadata_value").get == 0
        assert connection.execute("SELECT count(*) FROM metadata_key").get == 0


def test_metadata_comes_back_as_it_was():
    collection = VectorCollection(Database(":memory:"), "c")
    metadata = {"ключ \ud800": ["\x00", 2**70, 1.5, None, True, {"a": []}], "": {}}
    collection.upsert([CollectionItem(key="a", text="", metadata=metadata)])
    assert collection.get(["a"])[0].metadata == json.loads(json.dumps(metadata))
