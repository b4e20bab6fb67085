"""Rows of the record and vector tables as the search index writes and reads them."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import apsw

from libctx_core.store.metadata import clear_metadata, index_metadata, unindex_metadata
from libctx_core.store.records import RecordInput, bound_slots, owner_and_position, slot_range
from libctx_core.store.vectors import clear_vectors, remove_vectors

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


_NAMES = tuple(name.strip() for name in _INPUT.split(","))


def _row(values: tuple[object, ...]) -> RecordRow:
    fields: Any = dict(zip(_NAMES, values[1:], strict=True))
    return RecordRow(cast("int", values[0]), RecordInput(**fields))


def insert_records(connection: apsw.Connection, slots: Sequence[int], records: Sequence[RecordInput]) -> None:
    """Insert one row per record of one owner, and index their metadata."""
    now = time.time()
    connection.executemany(
        f"INSERT INTO record(slot, created_at, {_INPUT}) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        [(slot, now, *_values(record)) for slot, record in zip(slots, records, strict=True)],
    )
    described = [
        (slot, json.loads(record.metadata))
        for slot, record in zip(slots, records, strict=True)
        if record.metadata is not None
    ]
    if described:
        index_metadata(connection, owner_and_position(slots[0])[0], described)


def replace_record(connection: apsw.Connection, slot: int, record: RecordInput) -> None:
    """Give a slot other contents; its creation time stays."""
    owner, _ = owner_and_position(slot)
    _unindex(connection, owner, [slot])
    assignments = ", ".join(f"{name.strip()} = ?" for name in _INPUT.split(","))
    connection.execute(f"UPDATE record SET {assignments} WHERE slot = ?", (*_values(record), slot))  # noqa: S608
    if record.metadata is not None:
        index_metadata(connection, owner, [(slot, json.loads(record.metadata))])


def _unindex(connection: apsw.Connection, owner: int, slots: Sequence[int]) -> None:
    rows = connection.execute(
        "SELECT slot, metadata FROM record WHERE slot IN (SELECT value FROM carray(?)) AND metadata IS NOT NULL",
        (bound_slots(slots),),
    )
    described = [(slot, json.loads(metadata)) for slot, metadata in rows]
    if described:
        unindex_metadata(connection, owner, described)


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


def read_records_at(connection: apsw.Connection, slots: Sequence[int]) -> Iterator[RecordRow]:
    """Yield the records at these slots, in no particular order."""
    if slots:
        for values in connection.execute(
            f"SELECT slot, {_INPUT} FROM record WHERE slot IN (SELECT value FROM carray(?))",  # noqa: S608
            (bound_slots(slots),),
        ):
            yield _row(values)


def find_slot(connection: apsw.Connection, owner: int, key: str) -> int | None:
    """Return the slot of the record with this key, or None."""
    slot: int | None = connection.execute("SELECT slot FROM record WHERE owner = ? AND key = ?", (owner, key)).get
    return slot


def delete_records(connection: apsw.Connection, owner: int, slots: Sequence[int]) -> None:
    """Remove records of one owner, their vectors and the index of their metadata."""
    _unindex(connection, owner, slots)
    remove_vectors(connection, owner, slots)
    connection.executemany("DELETE FROM record WHERE slot = ?", [(slot,) for slot in slots])


def clear_records(connection: apsw.Connection, owner: int) -> None:
    """Remove all records and vectors of an owner, its vector profile and the index of its metadata."""
    clear_metadata(connection, owner)
    clear_vectors(connection, owner)
    connection.execute("DELETE FROM record WHERE slot BETWEEN ? AND ?", slot_range(owner))


def expired_slots(connection: apsw.Connection, now: float) -> list[int]:
    """Return the slots that are not to be found any more."""
    return [
        slot
        for (slot,) in connection.execute(
            "SELECT slot FROM record WHERE expires_at IS NOT NULL AND expires_at <= ?", (now,)
        )
    ]
