"""Rows of the record and vector tables as the search index writes and reads them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apsw

from libctx_core.errors import EmbeddingDimensionError, EmbeddingProfileError
from libctx_core.store.records import RecordInput, slot_range

FLOAT_BYTES = 4

_INPUT = (
    "key, kind, text, caption, role, speaker, session, sequence, occurred_at, ref, metadata, payload, visibility, "
    "expires_at"
)


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record as stored: its slot and what it was made of."""

    slot: int
    record: RecordInput


def _values(record: RecordInput) -> tuple[object, ...]:
    return (
        record.key,
        record.kind,
        record.text,
        record.caption,
        record.role,
        record.speaker,
        record.session,
        record.sequence,
        record.occurred_at,
        record.ref,
        record.metadata,
        record.payload,
        record.visibility,
        record.expires_at,
    )


def _row(values: tuple[object, ...]) -> RecordRow:
    slot, *fields = values
    names = [name.strip() for name in _INPUT.split(",")]
    return RecordRow(slot, RecordInput(**dict(zip(names, fields, strict=True))))  # type: ignore[arg-type]


def insert_records(connection: apsw.Connection, slots: Sequence[int], records: Sequence[RecordInput]) -> None:
    """Insert one row per record."""
    now = time.time()
    connection.executemany(
        f"INSERT INTO record(slot, created_at, {_INPUT}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [(slot, now, *_values(record)) for slot, record in zip(slots, records, strict=True)],
    )


def replace_record(connection: apsw.Connection, slot: int, record: RecordInput) -> None:
    """Give a slot other contents; its creation time stays."""
    assignments = ", ".join(f"{name.strip()} = ?" for name in _INPUT.split(","))
    connection.execute(f"UPDATE record SET {assignments} WHERE slot = ?", (*_values(record), slot))  # noqa: S608


def read_record(connection: apsw.Connection, slot: int) -> RecordRow | None:
    """Return the record at a slot, or None."""
    for values in connection.execute(f"SELECT slot, {_INPUT} FROM record WHERE slot = ?", (slot,)):  # noqa: S608
        return _row(values)
    return None


def read_records(connection: apsw.Connection, owner: int, start: int, limit: int) -> Iterator[RecordRow]:
    """Yield up to `limit` records of an owner from a position on, by rising slot."""
    first, last = slot_range(owner)
    for values in connection.execute(
        f"SELECT slot, {_INPUT} FROM record WHERE slot BETWEEN ? AND ? ORDER BY slot LIMIT ?",  # noqa: S608
        (first + start, last, limit),
    ):
        yield _row(values)


def find_slot(connection: apsw.Connection, owner: int, key: str) -> int | None:
    """Return the slot of the record with this key, or None."""
    slot: int | None = connection.execute("SELECT slot FROM record WHERE owner = ? AND key = ?", (owner, key)).get
    return slot


def delete_record(connection: apsw.Connection, slot: int) -> None:
    """Remove a record and its vector."""
    connection.execute("DELETE FROM record WHERE slot = ?", (slot,))
    connection.execute("DELETE FROM vector WHERE slot = ?", (slot,))


def delete_records(connection: apsw.Connection, owner: int) -> None:
    """Remove all records and vectors of an owner, and its vector profile."""
    span = slot_range(owner)
    connection.execute("DELETE FROM record WHERE slot BETWEEN ? AND ?", span)
    connection.execute("DELETE FROM vector WHERE slot BETWEEN ? AND ?", span)
    connection.execute("DELETE FROM vector_profile WHERE owner = ?", (owner,))


def expired_slots(connection: apsw.Connection, now: float) -> list[int]:
    """Return the slots that are not to be found any more."""
    return [
        slot
        for (slot,) in connection.execute(
            "SELECT slot FROM record WHERE expires_at IS NOT NULL AND expires_at <= ?", (now,)
        )
    ]


def claim_profile(connection: apsw.Connection, owner: int, profile: str, dimension: int) -> None:
    """Tie an owner to an embedding profile, or check that it is tied to this one.

    Raises:
        EmbeddingProfileError: The owner's vectors come from another embedder.
        EmbeddingDimensionError: They have another number of dimensions.
    """
    found = read_profile(connection, owner)
    if found is None:
        connection.execute(
            "INSERT INTO vector_profile(owner, profile, dimension) VALUES(?,?,?)", (owner, profile, dimension)
        )
        return
    if found[0] != profile:
        raise EmbeddingProfileError(found[0], profile)
    if found[1] != dimension:
        raise EmbeddingDimensionError(found[1], dimension)


def read_profile(connection: apsw.Connection, owner: int) -> tuple[str, int] | None:
    """Return the profile id and dimension of an owner's vectors, or None."""
    for profile, dimension in connection.execute(
        "SELECT profile, dimension FROM vector_profile WHERE owner = ?", (owner,)
    ):
        return profile, dimension
    return None


def put_vectors(connection: apsw.Connection, slots: Sequence[int], rows: Sequence[bytes]) -> None:
    """Store one packed float32 row per slot, replacing what is there."""
    connection.executemany("INSERT OR REPLACE INTO vector(slot, data) VALUES(?,?)", list(zip(slots, rows, strict=True)))


def read_vectors(connection: apsw.Connection, owner: int, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield slot and packed vector of an owner from a position on, by rising slot."""
    first, last = slot_range(owner)
    yield from connection.execute(
        "SELECT slot, data FROM vector WHERE slot BETWEEN ? AND ? ORDER BY slot", (first + start, last)
    )
