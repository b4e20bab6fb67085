"""Filters against LlamaIndex's own evaluator, on random filters, metadata, keys and values."""

import datetime as dt

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn
from llama_index_libctx import LibraryVectorStore
from llama_index_libctx.filters import to_filter

from libctx_core.errors import InvalidFilterError
from libctx_core.search.filters import And, Compare, Nor, Or

Op, C = FilterOperator, FilterCondition

KEYS = ["a", "b", "a.b", "it's", 'say "x"', "per cent%", "$[0]", "ключ", "doc_id", "ref_doc_id", "x' OR 1=1 --", ""]
WORDS = ["", "a", "A", "ab", "50%", "_b", "a_b", "it's", '"', "1", "2024-01-31", "ключ", "ß", "x' OR '1'='1"]

scalars = st.one_of(
    st.sampled_from(WORDS), st.sampled_from([-1, 0, 1, 2, 2**40]), st.sampled_from([0.0, 1.0, 1.5, -2.5])
)
stored = st.one_of(
    scalars,
    st.booleans(),
    st.none(),
    st.lists(scalars, max_size=3),
    st.dictionaries(st.sampled_from(["a", "b"]), scalars, max_size=2),
)
rows = st.lists(st.dictionaries(st.sampled_from(KEYS), stored, max_size=5), min_size=1, max_size=6)

SCALAR_OPERATORS = [Op.EQ, Op.NE, Op.GT, Op.GTE, Op.LT, Op.LTE, Op.CONTAINS]
LIST_OPERATORS = [Op.IN, Op.NIN, Op.ANY, Op.ALL]
TEXT_OPERATORS = [Op.TEXT_MATCH, Op.TEXT_MATCH_INSENSITIVE]
homogeneous = st.one_of(
    st.lists(st.sampled_from(WORDS), max_size=3),
    st.lists(st.sampled_from([0, 1, 2, 2**40]), max_size=3),
    st.lists(st.sampled_from([0.0, 1.5]), max_size=3),
)


def leaves_of(operators, values):
    return st.builds(
        lambda key, operator, value: MetadataFilter(key=key, operator=operator, value=value),
        st.sampled_from(KEYS),
        st.sampled_from(operators),
        values,
    )


leaves = st.one_of(
    leaves_of(SCALAR_OPERATORS, scalars),
    leaves_of(LIST_OPERATORS, homogeneous),
    leaves_of(TEXT_OPERATORS, st.sampled_from(WORDS)),
    leaves_of([Op.IS_EMPTY], st.none()),
)


def groups(children):
    return st.builds(
        lambda parts, condition: MetadataFilters(filters=parts, condition=condition),
        st.lists(children, max_size=3),
        st.sampled_from([C.AND, C.OR, C.NOT, None]),
    )


filters = groups(st.recursive(leaves, groups, max_leaves=6))


class Refused(Exception):
    """The reference refuses a text match on what is no text."""


def expected(group, metadata):
    """Judge every leaf by LlamaIndex's evaluator and combine the verdicts; None says nothing."""
    verdicts = []
    for part in group.filters:
        verdict = expected(part, metadata) if isinstance(part, MetadataFilters) else leaf(part, metadata)
        if verdict is not None:
            verdicts.append(verdict)
    if not verdicts:
        return None
    if group.condition == C.OR:
        return any(verdicts)
    return not any(verdicts) if group.condition == C.NOT else all(verdicts)


def leaf(part, metadata):
    try:
        return bool(build_metadata_filter_fn(lambda _: metadata, MetadataFilters(filters=[part]))("n"))
    except TypeError:
        if part.operator in TEXT_OPERATORS:
            raise Refused from None
        return False


def check(metadata_of_rows, group):
    store = LibraryVectorStore()
    nodes = [TextNode(id_=f"n{i}", metadata=row, embedding=[1.0]) for i, row in enumerate(metadata_of_rows)]
    store.add(nodes)
    query = VectorStoreQuery(query_embedding=[1.0], similarity_top_k=100, filters=group)
    try:
        wanted = {n.node_id for n in nodes if expected(group, n.metadata) is not False}
    except Refused:
        with pytest.raises(TypeError):
            store.query(query)
        return
    assert set(store.query(query).ids) == wanted
    assert {n.node_id for n in store.get_nodes(filters=group)} == wanted
    if group.filters and to_filter(group) is not None and _says_something(group):
        store.delete_nodes(filters=group)
        assert {n.node_id for n in store.get_nodes()} == {n.node_id for n in nodes} - wanted


def _says_something(group):
    return any(not isinstance(part, MetadataFilters) or _says_something(part) for part in group.filters)


PROFILE = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=60, **PROFILE)
@given(rows, filters)
def test_answers_are_the_reference_evaluators(metadata_of_rows, group):
    check(metadata_of_rows, group)


@pytest.mark.exhaustive
@settings(max_examples=3000, **PROFILE)
@given(rows, filters)
def test_answers_are_the_reference_evaluators_at_length(metadata_of_rows, group):
    check(metadata_of_rows, group)


def test_translation():
    group = MetadataFilters(
        filters=[
            MetadataFilter(key="a.b", value=1),
            MetadataFilters(filters=[MetadataFilter(key="t", operator=Op.IN, value=["x"])], condition=C.OR),
            MetadataFilters(filters=[], condition=C.NOT),
        ],
        condition=None,
    )
    assert to_filter(group) == And((Compare("a.b", "==", 1), Or((Compare("t", "in", ["x"]),)), Nor()))
    assert to_filter(None) is None


def test_json_of_a_filter_means_the_same():
    group = MetadataFilters(
        filters=[MetadataFilters(filters=[MetadataFilter(key="a", operator=Op.NIN, value=[1, 2])], condition=C.NOT)]
    )
    assert to_filter(MetadataFilters.model_validate_json(group.model_dump_json())) == to_filter(group)


@pytest.mark.parametrize("operator", LIST_OPERATORS)
@pytest.mark.parametrize("value", ["text", 1, None])
def test_a_list_operator_needs_a_list(store, operator, value):
    group = MetadataFilters(filters=[MetadataFilter(key="a", operator=operator, value=value)])
    with pytest.raises(InvalidFilterError):
        store.query(VectorStoreQuery(query_embedding=[1.0], filters=group))


def test_dates_are_filtered_as_iso_text(store):
    for day in (1, 15):
        store.add([TextNode(id_=f"d{day}", metadata={"day": dt.date(2024, 5, day)}, embedding=[1.0])])
    group = MetadataFilters(filters=[MetadataFilter(key="day", operator=Op.GT, value="2024-05-02")])
    assert store.query(VectorStoreQuery(query_embedding=[1.0], similarity_top_k=5, filters=group)).ids == ["d15"]


def test_a_boolean_is_found_as_1_and_0(store):
    store.add([TextNode(id_=str(flag), metadata={"flag": flag}, embedding=[1.0]) for flag in (True, False)])
    group = MetadataFilters(filters=[MetadataFilter(key="flag", value=1)])
    assert store.query(VectorStoreQuery(query_embedding=[1.0], similarity_top_k=5, filters=group)).ids == ["True"]
