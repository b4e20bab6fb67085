"""What a metadata filter means, as 64 questions any implementation can be asked.

Each has a filter, where it can be said as a mapping that too, and the ids that match.
`unanswered` asks them all; a store's own tests translate the filter if it speaks another
language.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from libctx_core.search.filters import And, Compare, Filter, Nor, Operator, Or

Rows: TypeAlias = Mapping[str, Mapping[str, Any]]

LONG = "chapter " * 60

BOOKS: Rows = {
    "dune": {
        "genre": "novel",
        "year": 1965,
        "price": 9.5,
        "out": "1965-08-01",
        "tags": ["sand", "fun"],
        "read": True,
    },
    "emma": {"genre": "novels", "year": 1815, "price": 8.0, "out": "1815-12-23", "tags": ["love"], "read": False},
    "howl": {"genre": "poem", "year": 1956, "price": 8, "out": "1956-11-01", "tags": [], "read": None},
    "note": {"year": 2024.5},
}
"""Text, numbers of both kinds, ISO dates, lists, booleans; ``note`` has almost nothing."""

ODD: Rows = {
    "keys": {"a.b": "dot", "it's": 1, 'say "x"': 2, "": "blank", "ключ": "да", "$.a": "path", "a' OR 1=1 --": "sql"},
    "nest": {"a": {"b": "inner", "c": [1, {"d": 2}]}, "empty": {}, "list": [[1, 2], None]},
    "huge": {"n": 2**70, "f": 2.0**70, "nan": float("nan"), "inf": float("inf"), "text": LONG},
    "near": {"n": 2**70 + 1, "f": 2**53 + 1, "text": LONG + "end", "zero": "\x00", "half": "\ud800"},
    "like": {"title": "100%_sure"},
    "alike": {"title": "sure, 100%"},
}
"""Keys and values that break string building, number formats and indexes."""


@dataclass(frozen=True, slots=True)
class FilterCase:
    """One question.

    Attributes:
        name: Stable name.
        rows: Metadata by id.
        filter: The filter.
        mapping: The same as a mapping, None where mappings cannot say it.
        expected: Ids that match.
    """

    name: str
    rows: Rows
    filter: Filter
    mapping: Mapping[str, Any] | None
    expected: frozenset[str]


def _books(name: str, tree: Filter, mapping: Mapping[str, Any] | None, expected: str) -> FilterCase:
    return FilterCase(name, BOOKS, tree, mapping, frozenset(expected.split()))


def _odd(name: str, tree: Filter, mapping: Mapping[str, Any] | None, expected: str) -> FilterCase:
    return FilterCase(name, ODD, tree, mapping, frozenset(expected.split()))


def _is(path: str | tuple[str, ...], operator: str, value: Any = None) -> Compare:
    return Compare(path, operator, value)


_NOVEL, _OLD = _is("genre", "==", "novel"), _is("year", "<", 1900)
_O = Operator

CASES: tuple[FilterCase, ...] = (
    _books("eq_text", _NOVEL, {"genre": "novel"}, "dune"),
    _books("eq_whole_number", _is("year", "==", 1965), {"year": {"$eq": 1965}}, "dune"),
    _books("eq_number_of_either_kind", _is("price", "==", 8), {"price": 8}, "emma howl"),
    _books("eq_float", _is("price", "==", 8.0), {"price": 8.0}, "emma howl"),
    _books("eq_text_is_no_number", _is("year", "==", "1965"), {"year": "1965"}, ""),
    _books("eq_true", _is("read", "==", True), {"read": True}, "dune"),
    _books("eq_one_is_true", _is("read", "==", 1), {"read": 1}, "dune"),
    _books("eq_list", _is("tags", "==", ["sand", "fun"]), {"tags": ["sand", "fun"]}, "dune"),
    _books("eq_member_is_no_list", _is("tags", "==", "love"), {"tags": "love"}, ""),
    _books("eq_null_finds_nothing", _is("read", "==", None), None, ""),
    _books("eq_unknown_key", _is("isbn", "==", 1), {"isbn": 1}, ""),
    _books("ne_finds_missing", _is("genre", "!=", "novel"), {"genre": {"$ne": "novel"}}, "emma howl note"),
    _books("ne_finds_null", _is("read", "!=", True), {"read": {"$ne": True}}, "emma howl note"),
    _books("ne_unknown_key", _is("isbn", "!=", 1), {"isbn": {"$ne": 1}}, "dune emma howl note"),
    _books("gt_number", _is("year", ">", 1956), {"year": {"$gt": 1956}}, "dune note"),
    _books("gte_number", _is("year", ">=", 1956), {"year": {"$gte": 1956}}, "dune howl note"),
    _books("lt_float", _is("price", "<", 8.5), {"price": {"$lt": 8.5}}, "emma howl"),
    _books("lte_number", _is("price", "<=", 8), {"price": {"$lte": 8}}, "emma howl"),
    _books("gt_date", _is("out", ">", "1956-11-01"), {"out": {"$gt": "1956-11-01"}}, "dune"),
    _books("lte_date", _is("out", "<=", "1956-11-01"), {"out": {"$lte": "1956-11-01"}}, "emma howl"),
    _books("gt_across_kinds", _is("year", ">", "1"), {"year": {"$gt": "1"}}, ""),
    _books("lt_across_kinds", _is("genre", "<", 5), {"genre": {"$lt": 5}}, ""),
    _books(
        "between", And((_is("year", ">=", 1900), _is("year", "<=", 1960))), {"year": {"$between": [1900, 1960]}}, "howl"
    ),
    _books("in_texts", _is("genre", "in", ["novel", "poem"]), {"genre": {"$in": ["novel", "poem"]}}, "dune howl"),
    _books("in_numbers", _is("price", "in", [8, 9.5]), {"price": {"$in": [8, 9.5]}}, "dune emma howl"),
    _books("in_wrong_kind", _is("year", "in", ["1965"]), {"year": {"$in": ["1965"]}}, ""),
    _books("in_nothing", _is("genre", "in", []), {"genre": {"$in": []}}, ""),
    _books("nin_finds_missing", _is("genre", "nin", ["novel"]), {"genre": {"$nin": ["novel"]}}, "emma howl note"),
    _books("nin_nothing", _is("genre", "nin", []), {"genre": {"$nin": []}}, "dune emma howl note"),
    _books("any", _is("tags", "any", ["sand", "love"]), {"tags": {"$any": ["sand", "love"]}}, "dune emma"),
    _books("any_of_nothing", _is("tags", "any", []), {"tags": {"$any": []}}, ""),
    _books("all", _is("tags", "all", ["sand", "fun"]), {"tags": {"$all": ["sand", "fun"]}}, "dune"),
    _books("all_of_nothing", _is("tags", "all", []), {"tags": {"$all": []}}, "dune emma howl"),
    _books("contains_member", _is("tags", "contains", "sand"), {"tags": {"$contains": "sand"}}, "dune"),
    _books("contains_is_no_part_of_member", _is("tags", "contains", "san"), {"tags": {"$contains": "san"}}, ""),
    _books("contains_part_of_text", _is("genre", "contains", "novel"), {"genre": {"$contains": "novel"}}, "dune emma"),
    _books("text_match", _is("genre", "text_match", "vel"), None, "dune emma"),
    _books("text_match_case", _is("genre", "text_match", "NOVEL"), None, ""),
    _books("text_match_insensitive", _is("genre", "text_match_insensitive", "NOVEL"), None, "dune emma"),
    _books("is_empty", _is("tags", "is_empty"), None, "howl note"),
    _books("is_empty_null", _is("read", "is_empty"), None, "howl note"),
    _books("is_null", _is("read", "is_null", True), {"read": None}, "howl note"),
    _books("is_not_null", _is("read", "is_null", False), {"read": {"$ne": None}}, "dune emma"),
    _books("exists", _is("read", "exists", True), {"read": {"$exists": True}}, "dune emma howl"),
    _books("exists_not", _is("read", "exists", False), {"read": {"$exists": False}}, "note"),
    _books("and", And((_is("price", "==", 8), _OLD)), {"price": 8, "year": {"$lt": 1900}}, "emma"),
    _books("or_over_keys", Or((_NOVEL, _OLD)), {"$or": [{"genre": "novel"}, {"year": {"$lt": 1900}}]}, "dune emma"),
    _books("nor", Nor((_NOVEL, _OLD)), {"$nor": [{"genre": "novel"}, {"year": {"$lt": 1900}}]}, "howl note"),
    _books("not_finds_missing", Nor((_NOVEL,)), {"$not": {"genre": "novel"}}, "emma howl note"),
    _books("double_not", Nor((Nor((_NOVEL,)),)), {"$not": {"$not": {"genre": "novel"}}}, "dune"),
    _books("nested", And((Or((_OLD, _NOVEL)), Nor((_OLD,)))), None, "dune"),
    _books("empty_groups", And((And(()), Or(()), Nor((Nor(()),)))), {}, "dune emma howl note"),
    _books("empty_group_beside_another", Or((_NOVEL, And(()))), None, "dune"),
    _odd("dot_in_key", _is("a.b", "==", "dot"), {"a.b": "dot"}, "keys"),
    _odd("quotes_in_keys", And((_is("it's", "==", 1), _is('say "x"', "==", 2))), {"it's": 1, 'say "x"': 2}, "keys"),
    _odd("sql_in_key", _is("a' OR 1=1 --", "==", "zzz"), {"a' OR 1=1 --": "zzz"}, ""),
    _odd("sql_in_value", _is("a.b", "==", "x' OR '1'='1"), {"a.b": "x' OR '1'='1"}, ""),
    _odd("path", _is(("a", "b"), "==", "inner"), {"a": {"b": "inner"}}, "nest"),
    _odd("object_in_list", _is(("a", "c"), "contains", {"d": 2}), {"a": {"c": {"$contains": {"d": 2}}}}, "nest"),
    _odd("whole_number_beyond_64_bits", _is("n", "==", 2**70), {"n": 2**70}, "huge"),
    _odd("order_beyond_64_bits", _is("n", ">", 2**70), {"n": {"$gt": 2**70}}, "near"),
    _odd("nan_equals_nothing", Or((_is("nan", "==", float("nan")), _is("nan", ">", 0))), None, ""),
    _odd("long_text", _is("text", "==", LONG), {"text": LONG}, "huge"),
    _odd("like", _is("title", _O.LIKE, "100%_sure"), {"title": {"$like": "100%_sure"}}, "like"),
)
"""The questions, in the order they are asked."""


def unanswered(find: Callable[[Rows, Filter], Collection[str]]) -> list[str]:
    """Ask every question; return the names of those answered wrongly.

    Args:
        find: Returns the ids of the rows that pass a filter; what it raises is not caught.
    """
    return [case.name for case in CASES if frozenset(find(case.rows, case.filter)) != case.expected]
