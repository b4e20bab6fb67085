"""The inverted index of metadata: one row per scalar, list member and container of a record.

Each distinct path of an owner has a small integer; a row joins it with a value and a slot,
so that a filter on any key is a look-up. Values keep their SQLite type, in which numbers
compare by value and text by code point, as in Python. What SQLite cannot compare
faithfully (long text, integers beyond 64 bits, NaN) and what is no scalar is a tagged
blob: the reader looks at the record itself for those.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import apsw

from libctx_core.models import is_storable

Value: TypeAlias = str | int | float | bytes
Path: TypeAlias = tuple[str, ...]

INDEXED_CHARACTERS = 256
"""Longer text is indexed by its digest: found by equality, read for anything else."""

LONG_TEXT = b"t"
BIG_INTEGER = b"i"
NOT_A_NUMBER = b"x"
NULL = b"n"
EMPTY_LIST = b"e"
LIST = b"l"
MAPPING = b"m"

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1


@lru_cache(maxsize=8192)
def path_name(path: Path, *, member: bool = False) -> str:
    """Return how a path is stored; members of the list at a path have a name of their own."""
    return ("@" if member else "=") + json.dumps(path)


def encode(value: Any) -> Value:
    """Return the indexed form of a JSON value."""
    kind = type(value)
    if kind is str:
        return value if len(value) <= INDEXED_CHARACTERS and is_storable(value) else _digest(value)
    if kind is bool:
        return int(value)
    if kind is int:
        return value if _SMALLEST <= value <= _LARGEST else BIG_INTEGER
    if kind is float:
        return NOT_A_NUMBER if value != value else value
    if value is None:
        return NULL
    if kind is dict:
        return MAPPING
    return LIST if value else EMPTY_LIST


def _digest(text: str) -> bytes:
    return LONG_TEXT + hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def entries(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    """Yield the stored path and value of everything in a JSON object, repeats included."""
    pending: list[tuple[Path, Any]] = [((key,), value) for key, value in metadata.items()]
    while pending:
        path, value = pending.pop()
        yield path_name(path), encode(value)
        if type(value) is dict:
            pending.extend(((*path, key), inner) for key, inner in value.items())
        elif type(value) is list:
            name = path_name(path, member=True)
            for member in value:
                yield name, encode(member)


def index_metadata(connection: apsw.Connection, owner: int, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
    """Index the metadata of slots that have none indexed; must run in a write transaction."""
    keys: dict[str, int] = {}

    def key_of(path: str) -> int:
        found = keys.get(path)
        if found is None:
            keys[path] = found = find_key(connection, owner, path) or _new_key(connection, owner, path)
        return found

    connection.executemany(
        "INSERT OR IGNORE INTO metadata_value(key, value, slot) VALUES(?, ?, ?)", _index_rows(rows, key_of)
    )


def unindex_metadata(connection: apsw.Connection, owner: int, rows: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
    """Remove what `index_metadata` wrote for the same rows, and keys nobody uses any more."""
    keys: dict[str, int] = {}

    def key_of(path: str) -> int:
        found = keys.get(path)
        if found is None:
            found = keys[path] = find_key(connection, owner, path) or 0
        return found

    connection.executemany(
        "DELETE FROM metadata_value WHERE key = ? AND value = ? AND slot = ?", _index_rows(rows, key_of)
    )
    connection.executemany(
        "DELETE FROM metadata_key WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM metadata_value WHERE key = ?1)",
        [(key,) for key in keys.values()],
    )


def clear_metadata(connection: apsw.Connection, owner: int) -> None:
    """Remove the whole index of an owner."""
    connection.execute(
        "DELETE FROM metadata_value WHERE key IN (SELECT id FROM metadata_key WHERE owner = ?)", (owner,)
    )
    connection.execute("DELETE FROM metadata_key WHERE owner = ?", (owner,))


def find_key(connection: apsw.Connection, owner: int, path: str) -> int | None:
    """Return the number of a stored path, or None if no record of the owner has it."""
    found: int | None = connection.execute(
        "SELECT id FROM metadata_key WHERE owner = ? AND path = ?", (owner, path)
    ).get
    return found


def _new_key(connection: apsw.Connection, owner: int, path: str) -> int:
    connection.execute("INSERT INTO metadata_key(owner, path) VALUES(?, ?)", (owner, path))
    return int(connection.last_insert_rowid())


def _index_rows(
    rows: Iterable[tuple[int, Mapping[str, Any]]], key_of: Callable[[str], int]
) -> Iterator[tuple[int, Value, int]]:
    for slot, metadata in rows:
        for path, value in entries(metadata):
            yield key_of(path), value, slot
