"""Filters as mappings: the ``{"year": {"$gte": 2020}}`` door that LangChain and LangGraph users expect.

A key names a key of the metadata literally, dots included; a plain mapping under it
descends (``{"author": {"name": "Ann"}}``). Several keys, and several operators under one
key, all have to hold. ``None`` finds a missing key and a stored None alike. An unknown
operator is refused, never ignored.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from libctx_core.errors import InvalidFilterError
from libctx_core.search.filters import MAX_DEPTH, And, Compare, Filter, Nor, Operator, Or

OPERATORS: Mapping[str, Operator] = {
    "$eq": Operator.EQ,
    "$ne": Operator.NE,
    "$gt": Operator.GT,
    "$gte": Operator.GTE,
    "$lt": Operator.LT,
    "$lte": Operator.LTE,
    "$in": Operator.IN,
    "$nin": Operator.NIN,
    "$any": Operator.ANY,
    "$all": Operator.ALL,
    "$contains": Operator.CONTAINS,
    "$exists": Operator.EXISTS,
    "$like": Operator.LIKE,
    "$ilike": Operator.ILIKE,
}
"""Operators under a key; ``$between`` and ``$not`` are allowed there too."""

GROUPS: Mapping[str, type[And | Or | Nor]] = {"$and": And, "$or": Or, "$nor": Nor}
"""Operators in place of a key, each with a list of mappings; ``$not`` takes one mapping."""


def parse_filter(mapping: Mapping[str, Any] | None) -> Filter | None:
    """Return the filter a mapping says; None or an empty mapping restrict nothing.

    Raises:
        InvalidFilterError: An operator is unknown, or its value does not fit.
        FilterTypeError: A pattern is no text.
    """
    if not mapping:
        return None
    return _all((), mapping, 0)


def _all(path: tuple[str, ...], mapping: Any, depth: int) -> Filter:
    if not isinstance(mapping, Mapping):
        raise InvalidFilterError("filter", f"must be a mapping, not {type(mapping).__name__}")
    if depth > MAX_DEPTH:
        raise InvalidFilterError("filter", f"is nested over {MAX_DEPTH} levels deep")
    if not mapping:
        raise InvalidFilterError("filter", "an empty mapping inside a filter says nothing")
    parts = tuple(_entry(path, key, value, depth + 1) for key, value in mapping.items())
    return parts[0] if len(parts) == 1 else And(parts)


def _entry(path: tuple[str, ...], key: Any, value: Any, depth: int) -> Filter:
    if not isinstance(key, str):
        raise InvalidFilterError("filter", f"keys must be text, not {type(key).__name__}")
    if key in GROUPS:
        if isinstance(value, str | Mapping) or not isinstance(value, Sequence) or not value:
            raise InvalidFilterError(key, "takes a list of at least one mapping")
        return GROUPS[key](tuple(_all(path, child, depth) for child in value))
    if key == "$not":
        return Nor((_all(path, value, depth),))
    if key.startswith("$"):
        return _operation(path, key, value)
    here = (*path, key)
    if isinstance(value, Mapping) and value:
        if len({isinstance(inner, str) and inner.startswith("$") for inner in value}) > 1:
            raise InvalidFilterError(key, "mixes operators and keys; put the operators under the key they belong to")
        return _all(here, value, depth)
    return _equals(here, value)


def _operation(path: tuple[str, ...], name: str, value: Any) -> Filter:
    if not path:
        raise InvalidFilterError(name, "stands under a key; at the top only $and, $or, $nor and $not do")
    if name == "$between":
        if isinstance(value, str | Mapping) or not isinstance(value, Sequence) or len(value) != 2:
            raise InvalidFilterError(name, "takes a list of the lowest and the highest value")
        return And((Compare(path, Operator.GTE, value[0]), Compare(path, Operator.LTE, value[1])))
    if name not in OPERATORS:
        raise InvalidFilterError(name, f"is unknown; use one of {', '.join((*OPERATORS, '$between', '$not'))}")
    if name == "$eq":
        return _equals(path, value)
    if name == "$ne":
        return Nor((_equals(path, value),))
    if name in ("$in", "$nin") and isinstance(value, Sequence) and not isinstance(value, str) and None in value:
        found = Or((Compare(path, Operator.IS_NULL, True), Compare(path, Operator.IN, value)))
        return found if name == "$in" else Nor((found,))
    return Compare(path, OPERATORS[name], value)


def _equals(path: tuple[str, ...], value: Any) -> Filter:
    return Compare(path, Operator.IS_NULL, True) if value is None else Compare(path, Operator.EQ, value)
