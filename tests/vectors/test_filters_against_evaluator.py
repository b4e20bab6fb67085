"""What SQL finds by index is what the evaluator says, for any metadata and any filter."""

import itertools
import json
import math
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libctx_core.errors import FilterTypeError
from libctx_core.search.filters import And, Compare, Nor, Operator, Or, matches
from libctx_core.search.filters_sql import matching
from libctx_core.search.index import SearchIndex
from libctx_core.store.database import Database
from libctx_core.store.owners import VECTOR_COLLECTION, create_owner
from libctx_core.store.records import RecordInput

KEYS = ["a", "a.b", "", " ", "k'", 'k"', "$.a", "[0]", "ключ", "author' = 'alice' OR '1'='1' --", "\x00", "\ud800"]

LONG = "x" * 300
TEXTS = [
    "",
    "a",
    "A",
    "ab",
    "b%",
    "a_b",
    "%",
    "1",
    "x",
    "é",
    "É",
    "ß",
    "\x00",
    "a\x00b",
    "\ud800",
    "\U0001f600",
    "2024-01-02",
]
NUMBERS = [0, 1, -1, 2, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**70, 2**70 + 1, 10**400]
FLOATS = [0.0, -0.0, 1.0, 1.5, 2.0**53, 2.0**63, 2.0**70, -(2.0**63), math.inf, -math.inf, math.nan, 5e-324, 1e308]

# a few keys and values per example, so that filters meet what they ask for
keys = st.shared(st.lists(st.sampled_from(KEYS), min_size=2, max_size=3, unique=True), key="keys").flatmap(
    st.sampled_from
)
any_text = st.sampled_from([*TEXTS, LONG, LONG + "a"]) | st.text(max_size=3)
any_number = st.sampled_from(NUMBERS) | st.sampled_from(FLOATS) | st.booleans()
texts = st.shared(st.lists(any_text, min_size=2, max_size=4), key="texts").flatmap(st.sampled_from)
numbers = st.shared(st.lists(any_number, min_size=2, max_size=4), key="numbers").flatmap(st.sampled_from)
scalars = st.one_of(texts, numbers, st.none())
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=2),
    max_leaves=4,
)
metadatas = st.dictionaries(keys, values, max_size=3)
paths = keys | st.tuples(keys, keys)

LISTS = [Operator.IN, Operator.NIN, Operator.ANY, Operator.ALL]
TEXT_ONLY = [Operator.TEXT_MATCH, Operator.TEXT_MATCH_INSENSITIVE, Operator.LIKE, Operator.ILIKE]
SWITCHES = [Operator.IS_NULL, Operator.EXISTS]
SCALARS = [Operator.EQ, Operator.NE, Operator.GT, Operator.GTE, Operator.LT, Operator.LTE, Operator.CONTAINS]

leaves = st.one_of(
    st.builds(Compare, paths, st.sampled_from(SCALARS), values),
    st.builds(Compare, paths, st.sampled_from(LISTS), st.lists(values, max_size=3)),
    st.builds(Compare, paths, st.sampled_from(TEXT_ONLY), texts),
    st.builds(Compare, paths, st.sampled_from(SWITCHES), st.booleans()),
    st.builds(Compare, paths, st.just(Operator.IS_EMPTY)),
)
filters = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda group, children: group(tuple(children)), st.sampled_from([And, Or, Nor]), st.lists(inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def library():
    database = Database(":memory:")
    yield database, SearchIndex(database)
    database.close()


def stored(library, metadatas):
    """Store one record per metadata in an owner of its own; return the owner and the slots."""
    database, index = library

    def work(connection):
        owner = create_owner(connection, VECTOR_COLLECTION, "tests", str(time.perf_counter_ns())).id
        records = [
            RecordInput(key=str(at), kind="node", text="", metadata=json.dumps(metadata) if metadata else None)
            for at, metadata in enumerate(metadatas)
        ]
        return owner, index.add_pending(connection, owner, records, None)

    return database.write(work)


def answers(library, owner, slots, tree):
    database, _ = library
    with database.read() as connection:
        try:
            found = set(matching(connection, owner, tree).resolve(connection, owner).tolist())
        except FilterTypeError:
            return "refused"
    return [slot in found for slot in slots]


def expected(metadatas, tree):
    outcome = []
    refused = False
    for metadata in metadatas:
        try:
            outcome.append(matches(tree, json.loads(json.dumps(metadata))))
        except FilterTypeError:
            refused = True
    return "refused" if refused else outcome


def check(library, metadatas, trees):
    owner, slots = stored(library, metadatas)
    for tree in trees:
        assert answers(library, owner, slots, tree) == expected(metadatas, tree), tree


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(metadatas, min_size=1, max_size=8), st.lists(filters, min_size=1, max_size=4))
def test_index_and_evaluator_agree_on_random_filters(library, metadatas, trees):
    check(library, metadatas, trees)


@pytest.mark.exhaustive
@pytest.mark.timeout(1_200)
@settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(metadatas, min_size=1, max_size=12), st.lists(filters, min_size=1, max_size=6))
def test_index_and_evaluator_agree_on_very_many_filters(library, metadatas, trees):
    check(library, metadatas, trees)


def test_a_narrow_part_does_not_change_the_answer_of_a_wide_one(library):
    """Conjunctions look up the narrowest part first and the others only within it."""
    rows = [{"rare": at % 500, "half": at % 2, "text": f"t{at % 7}", "list": [at % 3, "x"]} for at in range(3_000)]
    wide = [
        Compare("half", "==", 1),
        Compare("half", "!=", 1),
        Compare("text", "contains", "5"),
        Compare("text", "ilike", "T1%"),
        Compare("list", "contains", 2),
        Compare("rare", "<", 250),
        Compare("none", "is_empty"),
        Nor((Compare("half", "==", 1), Compare("text", "==", "t3"))),
        Or((Compare("list", "any", [0]), Compare("text", "in", ["t2", "t4"]))),
    ]
    check(library, rows, [And((part, Compare("rare", "==", 7))) for part in wide])
    check(library, rows, [And((part, Compare("rare", "==", 999))) for part in wide])
    check(library, rows, [Nor((part, Compare("rare", "!=", 7))) for part in wide])


EVERY_VALUE = [
    *TEXTS,
    LONG,
    LONG + "a",
    *NUMBERS,
    *FLOATS,
    True,
    None,
    [],
    [None],
    ["a", "ab"],
    [1, 2.5, True],
    [2**70, LONG, math.nan],
    [[1]],
    {},
    {"a": 1, LONG: 2},
]


@pytest.mark.parametrize("operator", [*SCALARS, Operator.IS_EMPTY], ids=lambda operator: operator.name)
def test_every_value_against_every_value(library, operator):
    check(library, [{"k": value} for value in EVERY_VALUE], [Compare("k", operator, value) for value in EVERY_VALUE])


@pytest.mark.parametrize("operator", LISTS, ids=lambda operator: operator.name)
def test_every_value_against_every_pair_in_a_row(library, operator):
    pairs = [[one, other] for one, other in itertools.pairwise(EVERY_VALUE)]
    check(library, [{"k": value} for value in EVERY_VALUE], [Compare("k", operator, pair) for pair in pairs])


@pytest.mark.parametrize("operator", TEXT_ONLY, ids=lambda operator: operator.name)
def test_every_text_against_every_text(library, operator):
    every = [*TEXTS, LONG, LONG + "a"]
    check(library, [{"k": value} for value in every], [Compare("k", operator, value) for value in every])
