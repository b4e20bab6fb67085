"""Records: the searchable rows derived from owner objects, and their vectors.

A record's place is its *slot*: the owner's id in the high 32 bits, its position in the
owner in the low 32. Positions only grow, so a range of slots is a stretch of one owner,
and neighbours in a conversation are neighbours on disk.
"""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apsw

from libctx_core.store.migrations import Component

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RECORDS = Component(
    "records",
    (
        """
        CREATE TABLE record(
            slot INTEGER PRIMARY KEY,
            key TEXT NOT NULL,
            kind TEXT NOT NULL,
            text TEXT NOT NULL,
            caption TEXT,
            role TEXT,
            speaker TEXT,
            session TEXT,
            sequence INTEGER,
            occurred_at REAL,
            ref TEXT,
            metadata TEXT,
            payload TEXT,
            visibility TEXT NOT NULL DEFAULT 'thread',
            expires_at REAL,
            created_at REAL NOT NULL,
            owner INTEGER GENERATED ALWAYS AS (slot >> 32) VIRTUAL
        ) STRICT;
        CREATE UNIQUE INDEX record_key ON record(owner, key);
        CREATE INDEX record_ref ON record(owner, ref) WHERE ref IS NOT NULL;
        CREATE INDEX record_expiry ON record(expires_at) WHERE expires_at IS NOT NULL;
        CREATE TABLE vector(slot INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
        CREATE TABLE vector_profile(
            owner INTEGER PRIMARY KEY, profile TEXT NOT NULL, dimension INTEGER NOT NULL,
            count INTEGER NOT NULL DEFAULT 0,
            tail INTEGER NOT NULL DEFAULT 0,
            epoch INTEGER NOT NULL DEFAULT 0,
            changes INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE vector_change(
            owner INTEGER NOT NULL, number INTEGER NOT NULL, slot INTEGER NOT NULL, PRIMARY KEY(owner, number)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE vector_code_header(
            owner INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, changes INTEGER NOT NULL, tail INTEGER NOT NULL,
            count INTEGER NOT NULL, settings TEXT NOT NULL, encoder BLOB NOT NULL
        ) STRICT;
        CREATE TABLE vector_code(
            id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, first INTEGER NOT NULL, slots BLOB NOT NULL,
            codes BLOB NOT NULL, UNIQUE(owner, first)
        ) STRICT;
        CREATE TABLE metadata_key(
            id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, path TEXT NOT NULL, UNIQUE(owner, path)
        ) STRICT;
        CREATE TABLE metadata_value(
            key INTEGER NOT NULL, value ANY NOT NULL, slot INTEGER NOT NULL, PRIMARY KEY(key, value, slot)
        ) STRICT, WITHOUT ROWID;
        """,
    ),
)

POSITION_BITS = 32
_POSITION_MASK = (1 << POSITION_BITS) - 1


def slot_of(owner: int, position: int) -> int:
    """Return the slot of a position in an owner."""
    return owner << POSITION_BITS | position


def owner_and_position(slot: int) -> tuple[int, int]:
    """Return the owner id and the position a slot stands for."""
    return slot >> POSITION_BITS, slot & _POSITION_MASK


def slot_range(owner: int) -> tuple[int, int]:
    """Return the first and last slot of an owner, for ``BETWEEN``."""
    return slot_of(owner, 0), slot_of(owner, _POSITION_MASK)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordInput:
    """A record to be stored.

    Attributes:
        key: Id within its owner (event id, node id, entry version id, ...).
        kind: ``event``, ``book``, ``chunk``, ``entry`` or ``node``.
        text: What is searched and shown.
        caption: Text of attachments (photo captions, file names); searched, not shown as speech.
        role: Role of the message it came from.
        speaker: Who said it.
        session: Name of the session within the owner; neighbours count within one session.
        sequence: Sequence of the event it came from.
        occurred_at: When it was said, seconds since the epoch, UTC.
        ref: Id of the document it was cut from.
        metadata: The user's JSON object, filterable.
        payload: JSON an adapter stores for itself.
        visibility: ``thread``, ``project`` or ``team``.
        expires_at: When it stops being found, seconds since the epoch.
    """

    key: str
    kind: str
    text: str
    caption: str | None = None
    role: str | None = None
    speaker: str | None = None
    session: str | None = None
    sequence: int | None = None
    occurred_at: float | None = None
    ref: str | None = None
    metadata: str | None = None
    payload: str | None = None
    visibility: str = "thread"
    expires_at: float | None = None


def embedded_text(record: RecordInput) -> str:
    """Return the text a record is embedded by: who said it, what, and what was attached."""
    speaker = f"{record.speaker}: " if record.speaker else ""
    caption = f" {record.caption}" if record.caption else ""
    return f"{speaker}{record.text}{caption}"


def bound_slots(slots: Iterable[int]) -> Any:
    """Return slots as a value to bind for ``carray(?)``; SQLite takes no empty one."""
    return apsw.carray(array("q", slots))


def slots_of_keys(connection: apsw.Connection, owner: int, keys: Sequence[str]) -> dict[str, int]:
    """Return the slot of each key that names a record of the owner."""
    if not keys:
        return {}
    rows = connection.execute(
        "SELECT key, slot FROM record WHERE owner = ? AND key IN (SELECT value FROM carray(?))",
        (owner, apsw.carray(tuple(keys))),
    )
    return dict(rows)


def slots_of_refs(connection: apsw.Connection, owner: int, refs: Sequence[str]) -> list[int]:
    """Return the slots of the records cut from any of the named documents."""
    if not refs:
        return []
    rows = connection.execute(
        "SELECT slot FROM record WHERE owner = ? AND ref IS NOT NULL AND ref IN (SELECT value FROM carray(?))",
        (owner, apsw.carray(tuple(refs))),
    )
    return [slot for (slot,) in rows]


def slots_of_owner(connection: apsw.Connection, owner: int) -> "NDArray[np.int64]":
    """Return all slots of an owner, in no particular order."""
    return parse_slots(connection.execute("SELECT group_concat(slot) FROM record WHERE owner = ?", (owner,)).get)


def parse_slots(joined: object) -> "NDArray[np.int64]":
    """Return the slots that SQL's ``group_concat`` joined; it gives NULL for none."""
    import numpy as np

    return np.empty(0, np.int64) if joined is None else np.fromstring(str(joined), np.int64, sep=",")


def count_records(connection: apsw.Connection, owner: int) -> int:
    """Return how many records an owner has."""
    found: int = connection.execute("SELECT count(*) FROM record WHERE owner = ?", (owner,)).get
    return found
