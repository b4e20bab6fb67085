"""Rows of sources: one owner object each, a journal per collection, and cursors of triggers."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import apsw

from libctx_core.errors import GenerationConflictError
from libctx_core.store.migrations import Component
from libctx_core.store.owners import SOURCE, OwnerRow, create_owner

SOURCES = Component(
    "sources",
    (
        """
        CREATE TABLE source(
            owner INTEGER PRIMARY KEY,
            collection TEXT NOT NULL,
            position INTEGER NOT NULL,
            source_type TEXT NOT NULL,
            source_id TEXT NOT NULL,
            origin TEXT,
            superseded_by INTEGER,
            payload TEXT NOT NULL,
            created_at REAL NOT NULL,
            UNIQUE(collection, position),
            UNIQUE(collection, source_type, source_id)
        ) STRICT;
        CREATE INDEX source_origin ON source(collection, source_type, origin) WHERE origin IS NOT NULL;
        CREATE TABLE source_head(collection TEXT PRIMARY KEY, position INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE source_cursor(
            collection TEXT NOT NULL,
            binding TEXT NOT NULL,
            sequence INTEGER NOT NULL,
            generation INTEGER NOT NULL,
            PRIMARY KEY(collection, binding)
        ) STRICT, WITHOUT ROWID;
        """,
    ),
)

_COLUMNS = "owner, collection, position, source_type, source_id, origin, superseded_by, payload, created_at"


@dataclass(frozen=True, slots=True)
class SourceRow:
    """One stored source.

    Attributes:
        owner: Id of its owner object.
        collection: Collection it belongs to.
        position: Its place in the collection's journal, from 1; never used again.
        source_type: Name of its adapter.
        source_id: Its name within the adapter.
        origin: Where the material was found; versions of one origin supersede each other.
        superseded_by: Journal position of a newer version of the same origin.
        payload: The description as JSON, captured content included.
        created_at: When it was stored, seconds since the epoch.
    """

    owner: int
    collection: str
    position: int
    source_type: str
    source_id: str
    origin: str | None
    superseded_by: int | None
    payload: str
    created_at: float


def source_owner_key(source_type: str, source_id: str) -> str:
    """Return the owner key of a source; distinct identities have distinct keys."""
    return f"{source_type.replace('%', '%25').replace(':', '%3A')}:{source_id}"


def find_source(connection: apsw.Connection, collection: str, source_type: str, source_id: str) -> SourceRow | None:
    """Return a source by its identity, or None."""
    for row in connection.execute(
        f"SELECT {_COLUMNS} FROM source WHERE collection = ? AND source_type = ? AND source_id = ?",  # noqa: S608
        (collection, source_type, source_id),
    ):
        return SourceRow(*row)
    return None


def insert_source(
    connection: apsw.Connection,
    collection: str,
    source_type: str,
    source_id: str,
    payload: str,
    *,
    origin: str | None = None,
    enrolment: tuple[str, str | None] | None = None,
) -> SourceRow:
    """Insert a source whose identity is free, with the next journal position.

    Older sources of the same origin are marked as superseded. Runs in a write transaction.

    Args:
        connection: The writer.
        collection: Collection it belongs to.
        source_type: Name of its adapter.
        source_id: Its name.
        payload: The description as JSON.
        origin: Where the material was found.
        enrolment: Resource id and boundary id under which it is protected from the start.
    """
    position = int(
        connection.execute(
            "INSERT INTO source_head VALUES(?, 1) ON CONFLICT(collection) DO UPDATE SET position = position + 1"
            " RETURNING position",
            (collection,),
        ).get
    )
    resource_id, boundary_id = enrolment or (None, None)
    key = source_owner_key(source_type, source_id)
    owner = create_owner(connection, SOURCE, collection, key, resource_id=resource_id, boundary_id=boundary_id)
    row = SourceRow(owner.id, collection, position, source_type, source_id, origin, None, payload, time.time())
    connection.execute(
        f"INSERT INTO source({_COLUMNS}) VALUES(?,?,?,?,?,?,?,?,?)",
        (row.owner, collection, position, source_type, source_id, origin, None, payload, row.created_at),
    )
    if origin is not None:
        connection.execute(
            "UPDATE source SET superseded_by = ? WHERE collection = ? AND source_type = ? AND origin = ?"
            " AND position < ? AND superseded_by IS NULL",
            (position, collection, source_type, origin, position),
        )
    return row


def revive_source(connection: apsw.Connection, row: SourceRow) -> SourceRow:
    """Make a superseded source the current one of its origin again: its material is back."""
    connection.execute(
        "UPDATE source SET superseded_by = CASE WHEN owner = ?1 THEN NULL ELSE ?2 END"
        " WHERE collection = ?3 AND source_type = ?4 AND origin = ?5 AND (superseded_by IS NULL OR owner = ?1)",
        (row.owner, row.position, row.collection, row.source_type, row.origin),
    )
    return replace(row, superseded_by=None)


def other_versions(connection: apsw.Connection, row: SourceRow) -> list[int]:
    """Return the owners of the other sources of the same origin."""
    return [
        owner
        for (owner,) in connection.execute(
            "SELECT owner FROM source WHERE collection = ? AND source_type = ? AND origin = ? AND owner <> ?",
            (row.collection, row.source_type, row.origin, row.owner),
        )
    ]


def iterate_sources(
    connection: apsw.Connection, collection: str, *, after: int = 0, limit: int | None = None
) -> Iterator[SourceRow]:
    """Yield the sources of a collection in journal order.

    Args:
        connection: Any connection.
        collection: Collection to read.
        after: Journal position to start behind.
        limit: Sources to yield at most; None means all.
    """
    for row in connection.execute(
        f"SELECT {_COLUMNS} FROM source WHERE collection = ? AND position > ? ORDER BY position LIMIT ?",  # noqa: S608
        (collection, after, -1 if limit is None else limit),
    ):
        yield SourceRow(*row)


def journal_position(connection: apsw.Connection, collection: str) -> int:
    """Return the highest position the journal of a collection gave away, 0 if none."""
    return int(connection.execute("SELECT position FROM source_head WHERE collection = ?", (collection,)).get or 0)


def source_by_owner(connection: apsw.Connection, owner: int) -> SourceRow | None:
    """Return the source of an owner object, or None."""
    for row in connection.execute(f"SELECT {_COLUMNS} FROM source WHERE owner = ?", (owner,)):  # noqa: S608
        return SourceRow(*row)
    return None


def delete_source(connection: apsw.Connection, owner: OwnerRow) -> None:
    """Delete a source and its owner object; its journal position stays used."""
    connection.execute("DELETE FROM source WHERE owner = ?", (owner.id,))
    connection.execute("DELETE FROM owner WHERE id = ?", (owner.id,))


def read_cursor(connection: apsw.Connection, collection: str, binding: str) -> tuple[int, int]:
    """Return the sequence and the generation of a cursor; ``(0, 0)`` if it never moved."""
    for sequence, generation in connection.execute(
        "SELECT sequence, generation FROM source_cursor WHERE collection = ? AND binding = ?", (collection, binding)
    ):
        return sequence, generation
    return 0, 0


def move_cursor(connection: apsw.Connection, collection: str, binding: str, sequence: int, *, generation: int) -> int:
    """Move a cursor that is still at `generation`; return its new generation.

    Runs in the write transaction of what the move stands for.

    Raises:
        GenerationConflictError: Somebody moved it in the meantime.
    """
    current = read_cursor(connection, collection, binding)[1]
    if current != generation:
        raise GenerationConflictError(binding, generation, current)
    connection.execute(
        "INSERT INTO source_cursor VALUES(?, ?, ?, 1) ON CONFLICT(collection, binding)"
        " DO UPDATE SET sequence = excluded.sequence, generation = generation + 1",
        (collection, binding, sequence),
    )
    return generation + 1
