"""Metadata filters: one immutable tree, and what it means, as a function over plain values.

A leaf compares the value at a path of a record's metadata; groups combine leaves. The
meaning is that of LlamaIndex's reference evaluator, made total: a missing key and None are
the same, and match only `NE` and `NIN`; text and numbers never equal each other, while
``True``, ``1`` and ``1.0`` do; ordering two values of different kinds matches nothing;
`CONTAINS`, `ANY` and `ALL` look for members in a list and for substrings in text. Only
the two text matches refuse a value that is no text, because the reference does.

`matches` is that meaning; `libctx_core.search.filters_sql` finds the same records by index.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from libctx_core.errors import FilterTypeError, InvalidFilterError

MAX_DEPTH = 64
"""Groups inside groups at most; far below Python's recursion limit."""

MAX_LEAVES = 4_096


class Operator(StrEnum):
    """How a leaf compares the value it finds with its own.

    `EXISTS` and `IS_NULL` take True or False; `LIKE` and `ILIKE` take a pattern in which
    ``%`` stands for any text and ``_`` for one character.
    """

    EQ = "=="
    NE = "!="
    GT = ">"
    GTE = ">="
    LT = "<"
    LTE = "<="
    IN = "in"
    NIN = "nin"
    ANY = "any"
    ALL = "all"
    CONTAINS = "contains"
    TEXT_MATCH = "text_match"
    TEXT_MATCH_INSENSITIVE = "text_match_insensitive"
    IS_EMPTY = "is_empty"
    IS_NULL = "is_null"
    EXISTS = "exists"
    LIKE = "like"
    ILIKE = "ilike"


_LISTS = frozenset({Operator.IN, Operator.NIN, Operator.ANY, Operator.ALL})
_TEXTS = frozenset({Operator.TEXT_MATCH, Operator.TEXT_MATCH_INSENSITIVE, Operator.LIKE, Operator.ILIKE})
_SWITCHES = frozenset({Operator.IS_NULL, Operator.EXISTS})


@dataclass(frozen=True, slots=True)
class Compare:
    """A leaf of a filter.

    Attributes:
        path: Keys from the top of the metadata down; a key may hold any character. One
            string names a key of the top level.
        operator: How to compare.
        value: What to compare with; a JSON value.

    Raises:
        InvalidFilterError: The value does not fit the operator, or the path is empty.
    """

    path: tuple[str, ...]
    operator: Operator
    value: Any = None

    def __init__(self, path: str | Sequence[str], operator: Operator | str, value: Any = None) -> None:
        keys = (path,) if isinstance(path, str) else tuple(path)
        if not keys or not all(isinstance(key, str) for key in keys):
            raise InvalidFilterError("path", "must be a key or a sequence of keys")
        try:
            chosen = Operator(operator)
        except ValueError as error:
            raise InvalidFilterError("operator", f"must be one of {', '.join(Operator)}") from error
        if chosen in _LISTS:
            if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence):
                raise InvalidFilterError("value", f"must be a list for {chosen.value!r}")
        elif chosen in _TEXTS and not isinstance(value, str):
            raise FilterTypeError(chosen.value, "value", type(value).__name__)
        elif chosen in _SWITCHES and not isinstance(value, bool):
            raise InvalidFilterError("value", f"must be True or False for {chosen.value!r}")
        if chosen not in _TEXTS | _SWITCHES:
            value = _as_json(value)
        object.__setattr__(self, "path", keys)
        object.__setattr__(self, "operator", chosen)
        object.__setattr__(self, "value", value)


def _as_json(value: Any) -> Any:
    if value is None or type(value) in (str, int, float, bool):
        return value
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidFilterError("value", f"{type(value).__name__} is not JSON") from error


@dataclass(frozen=True, slots=True)
class And:
    """Every child matches; without children, everything does."""

    children: tuple["Filter", ...] = ()


@dataclass(frozen=True, slots=True)
class Or:
    """At least one child matches; without children, everything does."""

    children: tuple["Filter", ...] = ()


@dataclass(frozen=True, slots=True)
class Nor:
    """No child matches; without children, everything does."""

    children: tuple["Filter", ...] = ()


Filter: TypeAlias = Compare | And | Or | Nor


def prune(tree: Filter | None) -> Filter | None:
    """Return the tree without groups that say nothing, or None if nothing is left.

    An empty group restricts nothing, so inside another group it is left out, whatever the
    outer condition.

    Raises:
        InvalidFilterError: More than `MAX_DEPTH` levels or `MAX_LEAVES` leaves.
    """
    if tree is None:
        return None
    pruned = _prune(tree, 0)
    if pruned is not None and sum(1 for _ in leaves(pruned)) > MAX_LEAVES:
        raise InvalidFilterError("filter", f"has over {MAX_LEAVES} comparisons")
    return pruned


def _prune(tree: Filter, depth: int) -> Filter | None:
    if depth > MAX_DEPTH:
        raise InvalidFilterError("filter", f"is nested over {MAX_DEPTH} levels deep")
    if isinstance(tree, Compare):
        return tree
    children = tuple(kept for child in tree.children if (kept := _prune(child, depth + 1)) is not None)
    return type(tree)(children) if children else None


def leaves(tree: Filter) -> Iterator[Compare]:
    """Yield every comparison of a tree."""
    if isinstance(tree, Compare):
        yield tree
        return
    for child in tree.children:
        yield from leaves(child)


def matches(tree: Filter | None, metadata: Mapping[str, Any]) -> bool:
    """Tell whether a record with this metadata passes the filter.

    Raises:
        FilterTypeError: A text match met a value that is neither text nor missing.
    """
    pruned = prune(tree)
    return pruned is None or _matches(pruned, metadata)


def _matches(tree: Filter, metadata: Mapping[str, Any]) -> bool:
    if isinstance(tree, Compare):
        return compare(tree, metadata)
    # all children are evaluated, so that a refused text match never depends on their order
    results = [_matches(child, metadata) for child in tree.children]
    if isinstance(tree, And):
        return all(results)
    return any(results) if isinstance(tree, Or) else not any(results)


_MISSING = object()


def _value_at(metadata: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = metadata
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return _MISSING
        value = value[key]
    return value


def compare(leaf: Compare, metadata: Mapping[str, Any]) -> bool:
    """Tell whether one comparison holds for a record's metadata.

    Raises:
        FilterTypeError: A text match met a value that is neither text nor missing.
    """
    found = _value_at(metadata, leaf.path)
    if leaf.operator is Operator.EXISTS:
        return (found is not _MISSING) is leaf.value
    if found is _MISSING:
        found = None
    if leaf.operator is Operator.IS_NULL:
        return (found is None) is leaf.value
    if leaf.operator is Operator.IS_EMPTY:
        return found is None or found == "" or found == []
    if found is None:
        return leaf.operator in (Operator.NE, Operator.NIN)
    return compare_value(leaf.operator, found, leaf.value)


def compare_value(operator: Operator, found: Any, value: Any) -> bool:
    """Tell whether a value that is present and not None compares with another as asked."""
    match operator:
        case Operator.EQ:
            return bool(found == value)
        case Operator.NE:
            return bool(found != value)
        case Operator.GT | Operator.GTE | Operator.LT | Operator.LTE:
            return _in_order(operator, found, value)
        case Operator.IN:
            return any(found == one for one in value)
        case Operator.NIN:
            return all(found != one for one in value)
        case Operator.CONTAINS:
            return _holds(found, value)
        case Operator.ANY:
            return any(_holds(found, one) for one in value)
        case Operator.ALL:
            return all(_holds(found, one) for one in value)
        case Operator.LIKE:
            return isinstance(found, str) and like(value, found)
        case Operator.ILIKE:
            return isinstance(found, str) and like(value.casefold(), found.casefold())
        case _:
            if not isinstance(found, str):
                raise FilterTypeError(operator.value, "metadata", type(found).__name__)
            if operator is Operator.TEXT_MATCH:
                return value in found
            return value.lower() in found.lower()


def _in_order(operator: Operator, found: Any, value: Any) -> bool:
    if isinstance(found, str) is not isinstance(value, str):
        return False
    if not isinstance(found, str | int | float) or not isinstance(value, str | int | float):
        return False
    match operator:
        case Operator.GT:
            return bool(found > value)  # type: ignore[operator]
        case Operator.GTE:
            return bool(found >= value)  # type: ignore[operator]
        case Operator.LT:
            return bool(found < value)  # type: ignore[operator]
        case _:
            return bool(found <= value)  # type: ignore[operator]


def _holds(found: Any, value: Any) -> bool:
    if isinstance(found, list):
        return any(member == value for member in found)
    if isinstance(found, str | Mapping):
        return isinstance(value, str) and value in found
    return False


def like(pattern: str, text: str) -> bool:
    """Match a pattern of ``%`` and ``_`` against a whole text, in time linear in the text for each ``_``."""
    first, *rest = pattern.split("%")
    if not _fits(first, text, 0):
        return False
    if not rest:
        return len(first) == len(text)
    *middle, last = rest
    at = len(first)
    for part in middle:
        at = _find(part, text, at)
        if at < 0:
            return False
        at += len(part)
    end = len(text) - len(last)
    return end >= at and _fits(last, text, end)


def _fits(part: str, text: str, at: int) -> bool:
    if "_" not in part:
        return text.startswith(part, at)
    if at + len(part) > len(text):
        return False
    return all(wanted in ("_", text[at + offset]) for offset, wanted in enumerate(part))


def _find(part: str, text: str, start: int) -> int:
    if "_" not in part:
        return text.find(part, start)
    for at in range(start, len(text) - len(part) + 1):
        if _fits(part, text, at):
            return at
    return -1
