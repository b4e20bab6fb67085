"""Filters by index: the slots of one owner that pass a filter, found in SQL.

Every comparison becomes look-ups in the inverted index of metadata, with path and value
bound; groups combine the slot sets. A set may be kept as its complement, so that ``!=``
costs what ``==`` costs. Values the index holds only as a tag (long text, huge integers,
containers) are read from the record and judged by the reference evaluator, so the answer
is the evaluator's in every case.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import apsw

from libctx_core.errors import FilterTypeError
from libctx_core.search.filters import And, Compare, Filter, Nor, Operator, compare, compare_value, prune
from libctx_core.search.slots import SlotSet, slot_array, union
from libctx_core.store import metadata as index
from libctx_core.store.records import parse_slots

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NARROW = 4_096
"""A set up to this size narrows the look-ups of the comparisons that follow it."""

_PROBE = 2 * NARROW
_UNKNOWN = 1 << 40
_TEXT_START, _BLOB_START = "", b""


def matching(connection: apsw.Connection, owner: int, tree: Filter | None) -> SlotSet:
    """Return the records of an owner that pass a filter; None and empty groups pass all.

    Raises:
        FilterTypeError: A text match names a key under which some record of the owner
            holds neither text nor nothing.
        InvalidFilterError: The filter is nested too deep or too large.
    """
    pruned = prune(tree)
    if pruned is None:
        return _everything()
    return _Finder(connection, owner).find(pruned, None)


def _everything() -> SlotSet:
    return SlotSet(slot_array(()), True)


class _Finder:
    """Evaluates one filter on one snapshot of one owner."""

    def __init__(self, connection: apsw.Connection, owner: int) -> None:
        self._connection = connection
        self._owner = owner
        self._keys: dict[tuple[tuple[str, ...], bool], int | None] = {}

    def find(self, tree: Filter, within: SlotSet | None) -> SlotSet:
        """Return the matching slots; only those inside `within` need be right."""
        if isinstance(tree, Compare):
            return self._leaf(tree, within)
        if isinstance(tree, And):
            return self._all_of(tree.children, within)
        result = _everything().complement()
        for child in tree.children:
            result = result.unite(self.find(child, within))
        return result.complement() if isinstance(tree, Nor) else result

    def _all_of(self, children: Sequence[Filter], within: SlotSet | None) -> SlotSet:
        result = within
        for child in sorted(children, key=self._size) if len(children) > 1 else children:
            found = self.find(child, result)
            result = found if result is None else result.intersect(found)
        assert result is not None, "pruned groups have children"
        return result

    def _size(self, tree: Filter) -> int:
        """Estimate how many slots a child yields, so that the narrowest is looked up first."""
        if not isinstance(tree, Compare) or tree.operator is not Operator.EQ:
            return _UNKNOWN
        key = self._key(tree.path)
        value = index.encode(tree.value)
        if key is None or isinstance(value, bytes):
            return 0 if key is None else _UNKNOWN
        found: int = self._connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM metadata_value WHERE key = ? AND value = ? LIMIT ?)",
            (key, value, _PROBE),
        ).get
        return found

    def _key(self, path: tuple[str, ...], *, member: bool = False) -> int | None:
        if (path, member) not in self._keys:
            name = index.path_name(path, member=member)
            self._keys[path, member] = index.find_key(self._connection, self._owner, name)
        return self._keys[path, member]

    # -- leaves ---------------------------------------------------------------

    def _leaf(self, leaf: Compare, within: SlotSet | None) -> SlotSet:
        key = self._key(leaf.path)
        if key is None:
            return _everything() if compare(leaf, {}) else _everything().complement()
        look = _Lookup(self._connection, leaf, key, self._key(leaf.path, member=True), within)
        match leaf.operator:
            case Operator.EQ:
                return look.equal([leaf.value])
            case Operator.NE:
                return look.equal([leaf.value], Operator.EQ).complement()
            case Operator.IN:
                return look.equal(leaf.value)
            case Operator.NIN:
                return look.equal(leaf.value, Operator.IN).complement()
            case Operator.GT | Operator.GTE | Operator.LT | Operator.LTE:
                return look.ordered()
            case Operator.CONTAINS:
                return look.holding([leaf.value])
            case Operator.ANY:
                return look.holding(leaf.value)
            case Operator.ALL:
                return look.holding_all(leaf.value)
            case Operator.EXISTS:
                return look.present(but=()) if leaf.value else look.present(but=()).complement()
            case Operator.IS_NULL:
                full = look.present(but=(index.NULL,))
                return full.complement() if leaf.value else full
            case Operator.IS_EMPTY:
                return look.present(but=(index.NULL, index.EMPTY_LIST, "")).complement()
            case _:
                return look.text()


class _Lookup:
    """The look-ups one comparison needs, on the index rows of its path."""

    def __init__(
        self, connection: apsw.Connection, leaf: Compare, key: int, member_key: int | None, within: SlotSet | None
    ) -> None:
        self._connection = connection
        self._leaf = leaf
        self._key = key
        self._member_key = member_key
        narrow = within is not None and not within.negated and len(within.slots) <= NARROW
        self._within = within.slots if narrow and within is not None else None

    def _select(self, key: int, condition: str, *values: Any) -> "NDArray[np.int64]":
        """Return slots of index rows; `condition` is a constant of this module."""
        # one text of all slots is read in a tenth of the time that a row for each takes
        sql = f"SELECT group_concat(slot) FROM metadata_value WHERE key = ? AND {condition}"  # noqa: S608
        bound: tuple[Any, ...] = (key, *values)
        if self._within is not None:
            if not len(self._within):
                return self._within
            sql += " AND slot IN (SELECT value FROM carray(?))"
            bound = (*bound, apsw.carray(self._within))
        return parse_slots(self._connection.execute(sql, bound).get)

    def _reread(self, key: int, first: bytes, last: bytes, leaf: Compare) -> "NDArray[np.int64]":
        """Return slots whose rows are tagged `first` to `last` and whose record passes `leaf`."""
        slots = union([self._select(key, "value >= ? AND value <= ?", first, last)])
        if not len(slots):
            return slots
        rows = self._connection.execute(
            "SELECT slot, metadata FROM record WHERE slot IN (SELECT value FROM carray(?))", (apsw.carray(slots),)
        )
        return slot_array(slot for slot, metadata in rows if compare(leaf, json.loads(metadata)))

    def _tagged(self, key: int, tag: bytes, leaf: Compare) -> "NDArray[np.int64]":
        return self._reread(key, tag, tag + b"\xff" * 17, leaf)

    def equal(self, values: Sequence[Any], operator: Operator | None = None) -> SlotSet:
        """Return what equals any of the values."""
        leaf = self._leaf if operator is None else Compare(self._leaf.path, operator, self._leaf.value)
        return SlotSet(union([part for value in values for part in self._equal(self._key, value, leaf)]))

    def _equal(self, key: int, value: Any, leaf: Compare) -> "list[NDArray[np.int64]]":
        code = index.encode(value)
        if code in (index.NULL, index.NOT_A_NUMBER):
            return []
        if isinstance(code, str | int):
            return [self._select(key, "value = ?", code)]
        if isinstance(code, float):
            found = [self._select(key, "value = ?", code)]
            # an integer beyond 64 bits may equal a float of that size
            return [*found, self._tagged(key, index.BIG_INTEGER, leaf)] if abs(code) >= 2.0**63 else found
        if code == index.BIG_INTEGER:
            close = _as_float(value)
            found = [self._select(key, "value = ?", close)] if close == value else []
            return [*found, self._tagged(key, code, leaf)]
        return [self._reread(key, code, code, leaf)]

    def ordered(self) -> SlotSet:
        """Return what lies on the asked side of the value, among values of its kind."""
        value, operator = self._leaf.value, self._leaf.operator
        if isinstance(value, str):
            return self._ordered_text(value, operator)
        if not isinstance(value, int | float) or value != value:
            return SlotSet(slot_array(()))
        bound, operator = _bound(value, operator)
        found = self._select(self._key, f"{_CONDITIONS[operator]} AND value < ''", bound)
        return SlotSet(union([found, self._tagged(self._key, index.BIG_INTEGER, self._leaf)]))

    def _ordered_text(self, value: str, operator: Operator) -> SlotSet:
        if not _bindable(value):
            return self.text()
        found = self._select(self._key, f"{_CONDITIONS[operator]} AND value >= '' AND value < x''", value)
        return SlotSet(union([found, self._tagged(self._key, index.LONG_TEXT, self._leaf)]))

    def present(self, *, but: Sequence[index.Value]) -> SlotSet:
        """Return what has the path, unless its value is one of three that `but` may name."""
        if not but:
            return SlotSet(union([self._select(self._key, "true")]))
        left_out = (*but, *([None] * (3 - len(but))))
        return SlotSet(union([self._select(self._key, "coalesce(value NOT IN (?, ?, ?), true)", *left_out)]))

    def holding(self, values: Sequence[Any]) -> SlotSet:
        """Return lists with a member, and texts with a part, equal to any of the values."""
        return SlotSet(union([part for value in values for part in self._holding(value)]))

    def holding_all(self, values: Sequence[Any]) -> SlotSet:
        """Return what holds every one of the values."""
        if not values:
            return self.present(but=(index.NULL,))
        result = self.holding(values[:1])
        for value in values[1:]:
            result = result.intersect(self.holding([value]))
        return result

    def _holding(self, value: Any) -> "list[NDArray[np.int64]]":
        leaf = Compare(self._leaf.path, Operator.CONTAINS, value)
        found = [] if self._member_key is None else self._members(self._member_key, value, leaf)
        if isinstance(value, str):
            if _bindable(value):
                found.append(self._select(self._key, _HOLDS, value))
            found.append(self._tagged(self._key, index.LONG_TEXT, leaf))
            found.append(self._tagged(self._key, index.MAPPING, leaf))
        return found

    def _members(self, key: int, value: Any, leaf: Compare) -> "list[NDArray[np.int64]]":
        if value is None:
            return [self._select(key, "value = ?", index.NULL)]
        return self._equal(key, value, leaf)

    def text(self) -> SlotSet:
        """Return texts that the evaluator accepts; each distinct text is judged once."""
        operator, value = self._leaf.operator, self._leaf.value
        if operator in (Operator.TEXT_MATCH, Operator.TEXT_MATCH_INSENSITIVE):
            self._refuse_other_types()
        if operator is Operator.TEXT_MATCH and _bindable(value):
            found = self._select(self._key, _HOLDS, value)
        else:
            found = self._judged(operator, value)
        return SlotSet(union([found, self._tagged(self._key, index.LONG_TEXT, self._leaf)]))

    def _judged(self, operator: Operator, value: str) -> "NDArray[np.int64]":
        rows = self._connection.execute(
            "SELECT value, group_concat(slot) FROM metadata_value"
            " WHERE key = ? AND value >= '' AND value < x'' GROUP BY value",
            (self._key,),
        )
        return union([parse_slots(slots) for text, slots in rows if compare_value(operator, text, value)])

    def _refuse_other_types(self) -> None:
        rows = self._connection.execute(
            "SELECT value FROM metadata_value WHERE key = ?1 AND value < '' UNION ALL "
            "SELECT value FROM metadata_value WHERE key = ?1 AND value >= x'' AND value < ?2 UNION ALL "
            "SELECT value FROM metadata_value WHERE key = ?1 AND value > ?2 AND value < ?3 UNION ALL "
            "SELECT value FROM metadata_value WHERE key = ?1 AND value > ?4 LIMIT 1",
            (self._key, index.NULL, index.LONG_TEXT, index.LONG_TEXT + b"\xff" * 17),
        )
        for (value,) in rows:
            raise FilterTypeError(self._leaf.operator.value, "metadata", _TYPE_NAMES.get(value, type(value).__name__))


_CONDITIONS = {
    Operator.GT: "value > ?",
    Operator.GTE: "value >= ?",
    Operator.LT: "value < ?",
    Operator.LTE: "value <= ?",
}

_HOLDS = "value >= '' AND value < x'' AND instr(value, ?)"

_TYPE_NAMES: dict[Any, str] = {
    index.BIG_INTEGER: "int",
    index.NOT_A_NUMBER: "float",
    index.EMPTY_LIST: "list",
    index.LIST: "list",
    index.MAPPING: "dict",
}


def _bindable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _bound(value: float, operator: Operator) -> tuple[float, Operator]:
    """Return a bound SQLite can hold and the operator that keeps the comparison exact."""
    if not isinstance(value, int) or isinstance(index.encode(value), int):
        return value, operator
    close = _as_float(value)
    if close > value:
        return close, {Operator.GT: Operator.GTE, Operator.LTE: Operator.LT}.get(operator, operator)
    if close < value:
        return close, {Operator.GTE: Operator.GT, Operator.LT: Operator.LTE}.get(operator, operator)
    return close, operator
