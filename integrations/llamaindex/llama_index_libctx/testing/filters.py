"""56 questions about metadata filters: all operators, conditions, nesting, missing values, hostile text.

The answers follow LlamaIndex's own evaluator (`build_metadata_filter_fn`) and extend it
where that one refuses: a nested group is a filter like any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from llama_index_libctx.testing.names import id_of, names_of
from llama_index_libctx.testing.report import CheckResult, StoreFactory, SuiteReport, expect, run_check

Rows: TypeAlias = Mapping[str, Mapping[str, Any]]

GOODS: Rows = {
    "a": {"color": "red", "size": 1, "price": 1.5, "day": "2024-01-31", "title": "50%_off Wool"},
    "b": {"color": "green", "size": 2, "price": 2.0, "day": "2024-02-01", "title": "50% off wool"},
    "c": {"color": "re", "size": 3, "price": 2.5, "day": "2023-12-31", "title": "WOOL coat"},
    "d": {"size": 10, "price": 10.0, "day": "2024-10-05", "title": "linen"},
}
"""Strings, whole numbers, floats and ISO dates; ``d`` has no colour."""

TAGGED: Rows = {
    "x": {"tags": ["alpha", "beta"], "numbers": [1, 2]},
    "y": {"tags": ["beta"], "numbers": [2, 3]},
    "z": {"tags": [], "numbers": []},
    "w": {"other": "value"},
}
"""Lists; ``w`` has none."""

BLANKS: Rows = {
    "null": {"deleted": None, "kind": "k"},
    "absent": {"kind": "k"},
    "blank": {"deleted": "", "kind": "k"},
    "set": {"deleted": "2024", "kind": "k"},
}
"""Every way to hold nothing."""

HOSTILE: Rows = {
    "quoted": {"name": "O'Brien", 'say "hi"': 1, "per cent": "100%"},
    "plain": {"name": "Brien", "per cent": "100 or more"},
}
"""Quotes and blanks in keys and values."""

DOTTED: Rows = {
    "dotted": {"a.b": "yes"},
    "nested": {"a": {"b": "yes"}},
}
"""A key with a dot, and a path that looks like it."""


@dataclass(frozen=True, slots=True)
class FilterCase:
    """One question.

    Attributes:
        name: Stable name.
        rows: Metadata by node id.
        filters: The filter asked with.
        expected: Ids that match.
    """

    name: str
    rows: Rows
    filters: MetadataFilters
    expected: frozenset[str]


_O = FilterOperator
_AND, _OR, _NOT = FilterCondition.AND, FilterCondition.OR, FilterCondition.NOT


def _is(key: str, operator: FilterOperator, value: Any) -> MetadataFilter:
    return MetadataFilter(key=key, operator=operator, value=value)


def _group(condition: FilterCondition | None, *parts: MetadataFilter | MetadataFilters) -> MetadataFilters:
    return MetadataFilters(filters=list(parts), condition=condition)


def _one(name: str, rows: Rows, key: str, operator: FilterOperator, value: Any, expected: str) -> FilterCase:
    return FilterCase(name, rows, _group(_AND, _is(key, operator, value)), frozenset(expected.split()))


def _many(name: str, rows: Rows, filters: MetadataFilters, expected: str) -> FilterCase:
    return FilterCase(name, rows, filters, frozenset(expected.split()))


_RED = _is("color", _O.EQ, "red")
_SIZE_2 = _is("size", _O.EQ, 2)

CASES: tuple[FilterCase, ...] = (
    _one("eq_string", GOODS, "color", _O.EQ, "red", "a"),
    _one("eq_whole_number", GOODS, "size", _O.EQ, 2, "b"),
    _one("eq_float", GOODS, "price", _O.EQ, 2.5, "c"),
    _one("eq_whole_number_finds_equal_float", GOODS, "price", _O.EQ, 2, "b"),
    _one("eq_text_is_not_a_number", GOODS, "size", _O.EQ, "1", ""),
    _one("eq_unknown_key", GOODS, "unknown", _O.EQ, "red", ""),
    _one("ne_finds_missing", GOODS, "color", _O.NE, "red", "b c d"),
    _one("ne_is_no_substring_test", GOODS, "color", _O.NE, "re", "a b d"),
    _one("ne_unknown_key", GOODS, "unknown", _O.NE, "x", "a b c d"),
    _one("gt_number", GOODS, "size", _O.GT, 2, "c d"),
    _one("gt_compares_numbers_not_digits", GOODS, "size", _O.GT, 9, "d"),
    _one("gt_date", GOODS, "day", _O.GT, "2024-01-31", "b d"),
    _one("gt_skips_missing", GOODS, "color", _O.GT, "a", "a b c"),
    _one("gte_number", GOODS, "size", _O.GTE, 2, "b c d"),
    _one("lt_float", GOODS, "price", _O.LT, 2.5, "a b"),
    _one("lte_float", GOODS, "price", _O.LTE, 2.5, "a b c"),
    _one("lte_date", GOODS, "day", _O.LTE, "2024-01-31", "a c"),
    _one("in_strings", GOODS, "color", _O.IN, ["red", "re"], "a c"),
    _one("in_whole_numbers", GOODS, "size", _O.IN, [1, 10], "a d"),
    _one("in_floats", GOODS, "price", _O.IN, [2.0, 2.5], "b c"),
    _one("in_text_is_not_a_number", GOODS, "size", _O.IN, ["1", "2"], ""),
    _one("in_nothing", GOODS, "color", _O.IN, [], ""),
    _one("nin_finds_missing", GOODS, "color", _O.NIN, ["red"], "b c d"),
    _one("nin_nothing", GOODS, "color", _O.NIN, [], "a b c d"),
    _one("text_match_is_case_sensitive", GOODS, "title", _O.TEXT_MATCH, "Wool", "a"),
    _one("text_match_within_a_word", GOODS, "title", _O.TEXT_MATCH, "oat", "c"),
    _one("text_match_percent_is_literal", GOODS, "title", _O.TEXT_MATCH, "50%", "a b"),
    _one("text_match_underscore_is_literal", GOODS, "title", _O.TEXT_MATCH, "_off", "a"),
    _one("text_match_insensitive", GOODS, "title", _O.TEXT_MATCH_INSENSITIVE, "wOOl", "a b c"),
    _one("contains_in_string_is_substring", GOODS, "color", _O.CONTAINS, "re", "a b c"),
    _one("contains_in_list_is_member", TAGGED, "tags", _O.CONTAINS, "alpha", "x"),
    _one("contains_number", TAGGED, "numbers", _O.CONTAINS, 2, "x y"),
    _one("contains_in_list_is_no_substring", TAGGED, "tags", _O.CONTAINS, "alp", ""),
    _one("any_string", TAGGED, "tags", _O.ANY, ["alpha", "gamma"], "x"),
    _one("any_number", TAGGED, "numbers", _O.ANY, [1, 3], "x y"),
    _one("all_strings", TAGGED, "tags", _O.ALL, ["alpha", "beta"], "x"),
    _one("is_empty_list", TAGGED, "tags", _O.IS_EMPTY, None, "z w"),
    _many("not_contains", TAGGED, _group(_NOT, _is("tags", _O.CONTAINS, "alpha")), "y z w"),
    _one("is_empty", BLANKS, "deleted", _O.IS_EMPTY, None, "null absent blank"),
    _one("ne_finds_null", BLANKS, "deleted", _O.NE, "2024", "null absent blank"),
    _one("nin_finds_null", BLANKS, "deleted", _O.NIN, ["2024"], "null absent blank"),
    _many("and", GOODS, _group(_AND, _is("size", _O.GTE, 2), _is("price", _O.LTE, 2.5)), "b c"),
    _many("or_over_two_keys", GOODS, _group(_OR, _RED, _is("size", _O.EQ, 10)), "a d"),
    _many("not_one", GOODS, _group(_NOT, _RED), "b c d"),
    _many("not_means_none_of_them", GOODS, _group(_NOT, _RED, _SIZE_2), "c d"),
    _many("no_condition_is_and", GOODS, _group(None, _is("size", _O.GTE, 2), _is("size", _O.LT, 10)), "b c"),
    _many("no_filters_match_all", GOODS, _group(_OR), "a b c d"),
    _many(
        "nested_or_of_and",
        GOODS,
        _group(_OR, _group(_AND, _RED, _is("size", _O.LT, 2)), _is("color", _O.IN, ["re", "blue"])),
        "a c",
    ),
    _many("nested_not_in_and", GOODS, _group(_AND, _is("size", _O.LTE, 3), _group(_NOT, _RED)), "b c"),
    _many("nested_double_not", GOODS, _group(_NOT, _group(_NOT, _RED)), "a"),
    _many("nested_empty_group_is_ignored", GOODS, _group(_OR, _RED, _group(_AND)), "a"),
    _many("nested_three_deep", GOODS, _group(_AND, _group(_OR, _group(_NOT, _RED, _SIZE_2), _RED)), "a c d"),
    _one("quote_in_value", HOSTILE, "name", _O.IN, ["O'Brien"], "quoted"),
    _one("injected_value", HOSTILE, "name", _O.EQ, "x' OR '1'='1", ""),
    _one("injected_key", HOSTILE, "name' = 'Brien' OR '1'='1' --", _O.EQ, "zzz", ""),
    _one("dot_in_key", DOTTED, "a.b", _O.EQ, "yes", "dotted"),
)
"""The questions, in the order they are asked."""


def nodes_of(rows: Rows) -> list[TextNode]:
    """Return one node per row, all with the same vector."""
    return [
        TextNode(id_=id_of(node_id), text=f"text of {node_id}", metadata=dict(metadata), embedding=[1.0, 0.0, 0.0])
        for node_id, metadata in rows.items()
    ]


def ask(store: BasePydanticVectorStore, filters: MetadataFilters) -> set[str]:
    """Return the names of the nodes that a query with `filters` finds."""
    result = store.query(VectorStoreQuery(query_embedding=[1.0, 0.0, 0.0], similarity_top_k=50, filters=filters))
    return set(names_of(result.ids if result.ids is not None else [node.node_id for node in result.nodes or ()]))


def run(make_store: StoreFactory) -> SuiteReport:
    """Ask all questions; each of the five sets of nodes gets a store of its own."""
    stores: list[tuple[Rows, BasePydanticVectorStore | Exception]] = []
    results = []
    for case in CASES:
        store = next((known for rows, known in stores if rows is case.rows), None)
        if store is None:
            store = _filled(make_store, case.rows)
            stores.append((case.rows, store))
        results.append(_judge(case, store))
    return SuiteReport("filters", tuple(results))


def _filled(make_store: StoreFactory, rows: Rows) -> BasePydanticVectorStore | Exception:
    try:
        store = make_store()
        store.add(nodes_of(rows))
    except Exception as error:  # noqa: BLE001 - a store that refuses the nodes fails their cases
        return error
    return store


def _judge(case: FilterCase, store: BasePydanticVectorStore | Exception) -> CheckResult:
    def check() -> None:
        if isinstance(store, Exception):
            raise store
        found = ask(store, case.filters)
        expect(found == case.expected, f"expected {sorted(case.expected)}, got {sorted(found)}")

    return run_check(case.name, check)
