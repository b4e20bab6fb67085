"""What a filter means, for the store's items and for checkpoints' metadata: one definition.

A filter is a mapping of keys to conditions that must all hold.

* A key names a field of the value. If no field has exactly this name and it holds dots,
  it is read as a path into nested objects.
* A plain condition asks for equality as JSON has it: ``1`` equals ``1.0`` but not
  ``True``; lists are equal element by element. A nested mapping asks for its own keys
  only, so ``{"meta": {"lang": "en"}}`` matches whatever else ``meta`` holds.
* A mapping of operators (``$eq $ne $gt $gte $lt $lte``) asks for each of them. Order is
  defined between two numbers or two texts.
* A missing field matches nothing, ``$ne`` included. Only a plain ``None`` or
  ``{"$eq": None}`` matches both null and missing.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from libctx_core.errors import InvalidFilterError

_FORBIDDEN = frozenset("'\"`()[]{}\\;")
_MISSING = object()


def check_filter(wanted: Mapping[str, Any]) -> None:
    """Refuse a filter that cannot be meant.

    Raises:
        InvalidFilterError: An unknown operator, or a key that is no text, is empty, or
            holds quotes, brackets or control characters.
    """
    for key, condition in wanted.items():
        _check_key(key)
        _check_condition(condition)


def _check_key(key: Any) -> None:
    if not isinstance(key, str) or not key or key.startswith("$") or not _FORBIDDEN.isdisjoint(key):
        raise InvalidFilterError("filter", "Invalid filter key: must be a field name or a dotted path of them")
    if not key.isprintable():
        raise InvalidFilterError("filter", "Invalid filter key: must not hold control characters")


def _check_condition(condition: Any) -> None:
    if not isinstance(condition, Mapping):
        return
    if _is_operators(condition):
        for operator in condition:
            if operator not in _OPERATORS:
                raise InvalidFilterError("filter", f"unsupported operator; use one of {', '.join(_OPERATORS)}")
    else:
        check_filter(condition)


def _is_operators(condition: Mapping[str, Any]) -> bool:
    return any(isinstance(key, str) and key.startswith("$") for key in condition)


def matches(value: Any, wanted: Mapping[str, Any]) -> bool:
    """Tell whether a stored value passes a filter."""
    return all(_holds(_field(value, key), condition) for key, condition in wanted.items())


def _field(value: Any, key: str) -> Any:
    if not isinstance(value, Mapping):
        return _MISSING
    if key in value:
        return value[key]
    found: Any = value
    for label in key.split("."):
        if not isinstance(found, Mapping) or label not in found:
            return _MISSING
        found = found[label]
    return found


def _holds(found: Any, condition: Any) -> bool:
    if not isinstance(condition, Mapping):
        return _equal_or_both_absent(found, condition)
    if _is_operators(condition):
        return all(_OPERATORS[operator](found, value) for operator, value in condition.items())
    return isinstance(found, Mapping) and matches(found, condition)


def _equal_or_both_absent(found: Any, value: Any) -> bool:
    if found is _MISSING:
        return value is None
    return _equal(found, value)


def _equal(found: Any, value: Any) -> bool:
    if isinstance(found, bool) is not isinstance(value, bool):
        return False
    if isinstance(value, list | tuple):
        return (
            isinstance(found, list)
            and len(found) == len(value)
            and all(_equal(one, other) for one, other in zip(found, value, strict=True))
        )
    if isinstance(value, Mapping):
        return isinstance(found, Mapping) and matches(found, value)
    return bool(found == value)


def _differs(found: Any, value: Any) -> bool:
    return found is not _MISSING and not _equal(found, value)


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(found: Any, value: Any) -> bool:
        return _comparable(found, value) and compare(found, value)

    return holds


def _comparable(found: Any, value: Any) -> bool:
    if isinstance(found, bool) or isinstance(value, bool):
        return False
    return (isinstance(found, str) and isinstance(value, str)) or (
        isinstance(found, int | float) and isinstance(value, int | float)
    )


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": _equal_or_both_absent,
    "$ne": _differs,
    "$gt": _ordered(lambda found, value: bool(found > value)),
    "$gte": _ordered(lambda found, value: bool(found >= value)),
    "$lt": _ordered(lambda found, value: bool(found < value)),
    "$lte": _ordered(lambda found, value: bool(found <= value)),
}


def required_literals(wanted: Mapping[str, Any]) -> list[str]:
    """Return texts that the JSON of every matching value must contain.

    A cheap sieve before the value is parsed: equality with a text needs that text,
    written as JSON writes it, somewhere in the value.
    """
    return [encode_text(text) for text in _texts(wanted)]


def _texts(condition: Any) -> Iterator[str]:
    if isinstance(condition, str):
        yield condition
    elif isinstance(condition, list | tuple):
        for item in condition:
            yield from _texts(item)
    elif isinstance(condition, Mapping):
        for key, item in condition.items():
            if not key.startswith("$") or key == "$eq":
                yield from _texts(item)


def encode_text(text: str) -> str:
    """Return a text as it stands in a stored value."""
    return json.dumps(text, ensure_ascii=False)
