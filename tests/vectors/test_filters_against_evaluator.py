"""What SQL finds by index is what the evaluator says, for any metadata and any filter."""

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

texts = st.sampled_from([*TEXTS, LONG, LONG + "a", LONG + "b"]) | st.text(max_size=3)
numbers = st.sampled_from(NUMBERS) | st.sampled_from(FLOATS) | st.booleans()
scalars = st.none() | texts | numbers
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=2),
    max_leaves=4,
)
metadatas = st.dictionaries(st.sampled_from(KEYS[:4]) | st.sampled_from(KEYS), values, max_size=3)
paths = st.sampled_from(KEYS[:4]) | st.sampled_from(KEYS) | st.tuples(st.sampled_from(KEYS[:4]), st.sampled_from(KEYS))

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


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(metadatas, min_size=1, max_size=8), st.lists(filters, min_size=1, max_size=4))
def test_index_and_evaluator_agree_on_random_filters(library, metadatas, trees):
    check(library, metadatas, trees)
