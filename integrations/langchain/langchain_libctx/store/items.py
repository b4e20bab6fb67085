"""Rows of the store: reading, writing and listing within one transaction or snapshot."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import apsw

from langchain_libctx.filters import matches, required_literals
from langchain_libctx.sql import fetch
from libctx_core.errors import InvalidInputError
from libctx_core.models import check_identifier, is_storable

Namespace = tuple[str, ...]
Clock = Callable[[], float]

_ITEMS = (
    "SELECT i.id, n.path, i.key, i.value, i.created_at, i.updated_at"
    " FROM store_item AS i JOIN store_namespace AS n ON n.id = i.namespace"
)


@dataclass(frozen=True, slots=True)
class StoredItem:
    """An item as it lies in the file, its value still text."""

    id: int
    path: str
    key: str
    value: str
    created_at: float
    updated_at: float

    def fields(self) -> dict[str, Any]:
        """Return the arguments of LangGraph's `Item`."""
        return {
            "namespace": tuple(self.path.split(".")),
            "key": self.key,
            "value": json.loads(self.value),
            "created_at": datetime.fromtimestamp(self.created_at, UTC),
            "updated_at": datetime.fromtimestamp(self.updated_at, UTC),
        }


def encode_value(value: Mapping[str, Any]) -> str:
    """Return a value as it is stored.

    Raises:
        InvalidInputError: It is no mapping, or holds what JSON cannot express.
    """
    if not isinstance(value, Mapping):
        raise InvalidInputError("value", f"must be a mapping, not {type(value).__name__}")
    try:
        text = json.dumps(dict(value), ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError("value", "must hold only what JSON can: text, numbers, lists, objects") from error
    if not is_storable(text):
        raise InvalidInputError("value", "holds a lone surrogate, which cannot be stored")
    return text


class ItemTable:
    """The items of one named store.

    Args:
        connection: Connection of the running transaction or snapshot.
        store: Name of the store.
        omit_expired: Whether items past their time are invisible before they are swept.
        clock: Seconds since the epoch.
    """

    def __init__(
        self, connection: apsw.Connection, store: str, *, omit_expired: bool = False, clock: Clock = time.time
    ) -> None:
        self._connection = connection
        self._store = store
        self._now = clock()
        self._horizon = self._now if omit_expired else float("-inf")

    # -- reading --------------------------------------------------------------

    def get(self, namespace: Namespace, key: str) -> StoredItem | None:
        """Return one item, or None."""
        rows = fetch(
            self._connection,
            f"{_ITEMS} WHERE n.store = ? AND n.path = ? AND i.key = ? AND (i.expires_at IS NULL OR i.expires_at > ?)",
            (self._store, ".".join(namespace), key, self._horizon),
        )
        return StoredItem(*rows[0]) if rows else None

    def search(self, prefix: Namespace, wanted: Mapping[str, Any], limit: int, offset: int) -> list[StoredItem]:
        """Return items below a prefix that pass a filter, the last changed first."""
        if limit <= 0:
            return []
        where, values = self._below(prefix, wanted)
        statement = f"{_ITEMS} WHERE {where} ORDER BY i.updated_at DESC, i.id DESC"
        if not wanted:
            rows = fetch(self._connection, f"{statement} LIMIT ? OFFSET ?", (*values, limit, offset))
            return [StoredItem(*row) for row in rows]
        found: list[StoredItem] = []
        for row in self._connection.execute(statement, values):
            item = StoredItem(*row)
            if matches(json.loads(item.value), wanted):
                found.append(item)
                if len(found) == offset + limit:
                    break
        return found[offset:]

    def candidates(self, prefix: Namespace, wanted: Mapping[str, Any]) -> tuple[list[int], list[bytes]]:
        """Return item id and vector of each embedded field below a prefix, filtered.

        Items with several fields appear once for each.
        """
        where, values = self._below(prefix, wanted)
        rows = fetch(
            self._connection,
            "SELECT v.item, v.data FROM store_namespace AS n JOIN store_vector AS v ON v.namespace = n.id"  # noqa: S608
            f" WHERE {self._prefix_condition(prefix)[0]}",
            self._prefix_condition(prefix)[1],
        )
        if wanted or self._horizon > float("-inf"):
            visible = self._visible(where, values, wanted)
            rows = [row for row in rows if row[0] in visible]
        return [row[0] for row in rows], [row[1] for row in rows]

    def _visible(self, where: str, values: Sequence[Any], wanted: Mapping[str, Any]) -> set[int]:
        """Return the ids of items that meet the conditions and pass the filter."""
        rows = fetch(
            self._connection,
            f"SELECT i.id, i.value FROM store_item AS i JOIN store_namespace AS n ON n.id = i.namespace WHERE {where}",  # noqa: S608
            values,
        )
        return {item for item, value in rows if not wanted or matches(json.loads(value), wanted)}

    def by_ids(self, ids: Sequence[int]) -> list[StoredItem]:
        """Return items in the order of their ids given."""
        rows = (
            row
            for item in ids
            for row in self._connection.execute(
                f"{_ITEMS} WHERE i.id = ?",
                (item,),
            )
        )
        return [StoredItem(*row) for row in rows]

    def _below(self, prefix: Namespace, wanted: Mapping[str, Any]) -> tuple[str, list[Any]]:
        condition, values = self._prefix_condition(prefix)
        conditions = [condition, "(i.expires_at IS NULL OR i.expires_at > ?)"]
        values.append(self._horizon)
        for literal in required_literals(wanted):
            conditions.append("instr(i.value, ?) > 0")
            values.append(literal)
        return " AND ".join(conditions), values

    def _prefix_condition(self, prefix: Namespace) -> tuple[str, list[Any]]:
        if not prefix:
            return "n.store = ?", [self._store]
        path = ".".join(prefix)
        # '/' follows '.' in byte order, so the range is exactly what lies below the path
        return "n.store = ? AND (n.path = ? OR (n.path > ? AND n.path < ?))", [
            self._store,
            path,
            f"{path}.",
            f"{path}/",
        ]

    def namespaces(self, fixed_prefix: Namespace) -> list[Namespace]:
        """Return every namespace below a prefix that holds a visible item, in order."""
        condition, values = self._prefix_condition(fixed_prefix)
        rows = fetch(
            self._connection,
            f"SELECT n.path FROM store_namespace AS n WHERE {condition} AND EXISTS("  # noqa: S608 - constants only
            "SELECT 1 FROM store_item AS i WHERE i.namespace = n.id AND (i.expires_at IS NULL OR i.expires_at > ?))",
            (*values, self._horizon),
        )
        return sorted(tuple(row[0].split(".")) for row in rows)

    # -- writing --------------------------------------------------------------

    def put(
        self, namespace: Namespace, key: str, value: str, *, ttl: float | None, vectors: Iterable[tuple[str, bytes]]
    ) -> None:
        """Insert or replace an item; its creation time stays."""
        expires_at = None if ttl is None else self._now + ttl * 60
        place = self._namespace(namespace)
        item = self._connection.execute(
            "INSERT INTO store_item(namespace, key, value, created_at, updated_at, ttl, expires_at)"
            " VALUES(?,?,?,?,?,?,?) ON CONFLICT(namespace, key) DO UPDATE SET value = excluded.value,"
            " updated_at = excluded.updated_at, ttl = excluded.ttl, expires_at = excluded.expires_at RETURNING id",
            (place, check_identifier("key", key), value, self._now, self._now, ttl, expires_at),
        ).get
        self._connection.execute("DELETE FROM store_vector WHERE item = ?", (item,))
        self._connection.executemany(
            "INSERT INTO store_vector(namespace, item, field, data) VALUES(?,?,?,?)",
            ((place, item, field, data) for field, data in vectors),
        )

    def _namespace(self, namespace: Namespace) -> int:
        path = ".".join(namespace)
        known = self._connection.execute(
            "SELECT id FROM store_namespace WHERE store = ? AND path = ?", (self._store, path)
        ).get
        if isinstance(known, int):
            return known
        self._connection.execute("INSERT INTO store_namespace(store, path) VALUES(?,?)", (self._store, path))
        return int(self._connection.last_insert_rowid())

    def delete(self, namespace: Namespace, key: str) -> None:
        """Delete an item, if it is there."""
        self._connection.execute(
            "DELETE FROM store_item WHERE key = ? AND namespace IN"
            " (SELECT id FROM store_namespace WHERE store = ? AND path = ?)",
            (key, self._store, ".".join(namespace)),
        )

    def refresh(self, ids: Sequence[int]) -> None:
        """Let the time to live of items begin anew."""
        self._connection.executemany(
            "UPDATE store_item SET expires_at = ? + ttl * 60 WHERE id = ? AND ttl IS NOT NULL AND expires_at > ?",
            ((self._now, item, self._horizon) for item in ids),
        )

    def have_ttl(self, ids: Sequence[int]) -> list[int]:
        """Return those of the items that have a time to live."""
        return [
            row[0]
            for item in ids
            for row in self._connection.execute("SELECT id FROM store_item WHERE id = ? AND ttl IS NOT NULL", (item,))
        ]

    def sweep(self) -> int:
        """Delete every expired item and return how many there were."""
        self._connection.execute(
            "DELETE FROM store_item WHERE expires_at <= ? AND namespace IN"
            " (SELECT id FROM store_namespace WHERE store = ?)",
            (self._now, self._store),
        )
        return int(self._connection.changes())


def does_match(namespace: Namespace, kind: str, path: Sequence[str]) -> bool:
    """Tell whether a namespace begins or ends with a path, in which ``*`` stands for one label.

    Raises:
        InvalidInputError: Any other kind of match.
    """
    if kind not in ("prefix", "suffix"):
        raise InvalidInputError("match_type", "must be 'prefix' or 'suffix'")
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if kind == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
