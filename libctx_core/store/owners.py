"""Owner objects: every thread, shelf, source, memory, bank page and vector collection is one row.

The row carries the enrolment of the resource (resource id, boundary id, metadata
version), so a payload and its access metadata are written in one transaction, and its
small integer id is what records carry: a permitted set is a set of integers.
"""

import time
from dataclasses import dataclass

import apsw

from libctx_core.store.migrations import Component

OWNERS = Component(
    "owners",
    (
        """
        CREATE TABLE owner(
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            kind TEXT NOT NULL,
            collection TEXT NOT NULL,
            key TEXT NOT NULL,
            user TEXT,
            team TEXT,
            resource_id TEXT,
            boundary_id TEXT,
            metadata_version INTEGER,
            created_at REAL NOT NULL,
            UNIQUE(kind, collection, key)
        ) STRICT;
        CREATE INDEX owner_resource ON owner(resource_id) WHERE resource_id IS NOT NULL;
        CREATE INDEX owner_boundary ON owner(boundary_id) WHERE boundary_id IS NOT NULL;
        CREATE INDEX owner_user ON owner(user, kind) WHERE user IS NOT NULL;
        CREATE TABLE kv(
            space TEXT NOT NULL, key TEXT NOT NULL, value ANY, PRIMARY KEY(space, key)
        ) STRICT, WITHOUT ROWID;
        """,
    ),
)

THREAD = "THREAD"
COLLECTION = "COLLECTION"
SOURCE = "SOURCE"
MEMORY = "MEMORY"
VECTOR_COLLECTION = "VECTOR_COLLECTION"
ARTIFACT = "ARTIFACT"
"""All artifacts of one family in a collection."""


@dataclass(frozen=True, slots=True)
class OwnerRow:
    """One owner object as stored.

    Attributes:
        id: Small integer that records carry.
        kind: Resource kind, e.g. ``"THREAD"``.
        collection: Namespace it lives in.
        key: Its name within the collection and kind.
        user: The user it belongs to, if any.
        team: The team it was shared with, if any.
        resource_id: Enrolled resource id, or None while it is not enrolled.
        boundary_id: Enrolled boundary id.
        metadata_version: Schema version of the enrolment.
    """

    id: int
    kind: str
    collection: str
    key: str
    user: str | None
    team: str | None
    resource_id: str | None
    boundary_id: str | None
    metadata_version: int | None


_COLUMNS = "id, kind, collection, key, user, team, resource_id, boundary_id, metadata_version"


def find_owner(connection: apsw.Connection, kind: str, collection: str, key: str) -> OwnerRow | None:
    """Return the owner row, or None."""
    for row in connection.execute(
        f"SELECT {_COLUMNS} FROM owner WHERE kind = ? AND collection = ? AND key = ?",  # noqa: S608 - constant columns
        (kind, collection, key),
    ):
        return OwnerRow(*row)
    return None


def owner_by_id(connection: apsw.Connection, owner_id: int) -> OwnerRow | None:
    """Return the owner row with this id, or None."""
    for row in connection.execute(f"SELECT {_COLUMNS} FROM owner WHERE id = ?", (owner_id,)):  # noqa: S608
        return OwnerRow(*row)
    return None


def owners_of(connection: apsw.Connection, kind: str, collection: str) -> list[OwnerRow]:
    """Return the owner rows of one kind in a collection, by key."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM owner WHERE kind = ? AND collection = ? ORDER BY key",  # noqa: S608 - constant columns
        (kind, collection),
    )
    return [OwnerRow(*row) for row in found]


def create_owner(
    connection: apsw.Connection,
    kind: str,
    collection: str,
    key: str,
    *,
    user: str | None = None,
    team: str | None = None,
    resource_id: str | None = None,
    boundary_id: str | None = None,
) -> OwnerRow:
    """Insert an owner, enrolled if a resource id is given; must run in a write transaction."""
    version = None if resource_id is None else 1
    connection.execute(
        "INSERT INTO owner(kind, collection, key, user, team, resource_id, boundary_id, metadata_version, created_at)"
        " VALUES(?,?,?,?,?,?,?,?,?)",
        (kind, collection, key, user, team, resource_id, boundary_id, version, time.time()),
    )
    return OwnerRow(
        connection.last_insert_rowid(), kind, collection, key, user, team, resource_id, boundary_id, version
    )


def get_or_create_owner(
    connection: apsw.Connection, kind: str, collection: str, key: str, *, user: str | None = None
) -> OwnerRow:
    """Return the owner, creating it unenrolled where it is missing."""
    return find_owner(connection, kind, collection, key) or create_owner(connection, kind, collection, key, user=user)
