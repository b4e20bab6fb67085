"""Banked pages in the library file: one owner row each, payload and enrolment in one transaction."""

import time
from collections.abc import Iterable
from typing import Any

import apsw

from libctx_core.access.metadata import ResourceMetadata
from libctx_core.errors import ResourceExistsError
from libctx_core.errors.bank import VersionConflictError
from libctx_core.store.access import ACCESS, enrol_owner, metadata_state, state_of_columns, unenrol_owner
from libctx_core.store.database import Database
from libctx_core.store.migrations import Component
from libctx_core.store.owners import OWNERS, create_owner, find_owner
from libctx_core.store.payloads import ABSENT, Encode, Recheck, StoredEntry, StoredHead, StoredPage

BANK = Component(
    "bank",
    (
        """
        CREATE TABLE bank_page(
            owner INTEGER PRIMARY KEY REFERENCES owner(id) ON DELETE CASCADE,
            version INTEGER NOT NULL,
            data BLOB NOT NULL,
            stored_at REAL NOT NULL,
            stamp INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE bank_clock(id INTEGER PRIMARY KEY CHECK(id = 0), stamp INTEGER NOT NULL) STRICT;
        INSERT INTO bank_clock VALUES(0, 0);
        """,
    ),
)

_HEAD = (
    "SELECT resource_id, boundary_id, metadata_version, stamp FROM owner LEFT JOIN bank_page ON owner = id"
    " WHERE kind = ? AND collection = ? AND key = ?"
)


class BankStore:
    """Keeps pages of one collection in the library file.

    Args:
        database: The library file.
        collection: Namespace of the keys.
    """

    def __init__(self, database: Database, collection: str = "bank") -> None:
        for component in (OWNERS, ACCESS, BANK):
            database.ensure(component)
        self._database = database
        self._collection = collection

    def head(self, kind: str, key: str, /) -> StoredHead:
        """Return enrolment and stamp of a key, without reading its payload."""
        rows = self._database.select(_HEAD, (kind, self._collection, key))
        if not rows:
            return StoredHead(None, None)
        resource, boundary, version, stamp = rows[0]
        return StoredHead(state_of_columns(kind, resource, boundary, version), stamp)

    def stamp(self, kind: str, key: str, /) -> object | None:
        """Return the stamp of a payload, None where there is none."""
        return self.head(kind, key).stamp

    def read(self, kind: str, key: str, /) -> StoredPage | None:
        """Return a page with the enrolment it has in the same snapshot, or None."""
        with self._database.read() as connection:
            found: list[Any] = connection.execute(
                "SELECT data, version, stamp, resource_id, boundary_id, metadata_version"
                " FROM bank_page JOIN owner ON owner = id WHERE kind = ? AND collection = ? AND key = ?",
                (kind, self._collection, key),
            ).fetchall()
        if not found:
            return None
        data, version, stamp, *columns = found[0]
        return StoredPage(data, version, stamp, state_of_columns(kind, *columns))

    def write(
        self,
        kind: str,
        key: str,
        encode: Encode,
        *,
        expected_version: int | None = None,
        recheck: Recheck | None = None,
    ) -> tuple[int, object]:
        """Store a page; its version is 0, or one above the stored one.

        Raises:
            VersionConflictError: Another version is stored; nothing was changed.
        """

        def work(connection: apsw.Connection) -> tuple[int, object]:
            owner = find_owner(connection, kind, self._collection, key)
            found = ABSENT if owner is None else _version(connection, owner.id)
            if recheck is not None:
                recheck(metadata_state(owner), found != ABSENT)
            if expected_version is not None and expected_version != found:
                raise VersionConflictError(expected_version, None if found == ABSENT else found)
            if owner is None:
                owner = create_owner(connection, kind, self._collection, key)
            return found + 1, _put(connection, owner.id, found + 1, encode(found + 1))

        return self._database.write(work)

    def create(self, kind: str, key: str, metadata: ResourceMetadata | None, encode: Encode) -> object:
        """Store a new page, version 0, and its enrolment, or neither; return its stamp.

        Raises:
            ResourceExistsError: There is a payload or an enrolment already.
        """

        def work(connection: apsw.Connection) -> object:
            if find_owner(connection, kind, self._collection, key) is not None:
                raise ResourceExistsError(kind, key)
            owner = create_owner(
                connection,
                kind,
                self._collection,
                key,
                resource_id=None if metadata is None else metadata.resource_id,
                boundary_id=None if metadata is None else metadata.boundary_id,
            )
            return _put(connection, owner.id, 0, encode(0))

        return self._database.write(work)

    def delete(self, kind: str, key: str, *, recheck: Recheck | None = None, reserve: bool = False) -> bool:
        """Remove a page and, unless it stays reserved, its enrolment; return whether there was a page."""

        def work(connection: apsw.Connection) -> bool:
            owner = find_owner(connection, kind, self._collection, key)
            present = owner is not None and _version(connection, owner.id) != ABSENT
            if recheck is not None:
                recheck(metadata_state(owner), present)
            if owner is not None:
                connection.execute("DELETE FROM bank_page WHERE owner = ?", (owner.id,))
                if not (reserve and owner.resource_id is not None):
                    connection.execute("DELETE FROM owner WHERE id = ?", (owner.id,))
            return present

        return self._database.write(work)

    def put_metadata(self, key: str, metadata: ResourceMetadata, *, unique: bool = False) -> None:
        """Enrol a key, with or without a payload, replacing what is there.

        Raises:
            ResourceExistsError: `unique` is set and another owner has this resource id.
        """
        self._database.write(lambda connection: enrol_owner(connection, self._collection, key, metadata, unique=unique))

    def delete_metadata(self, kind: str, key: str) -> bool:
        """Remove an enrolment; return whether there was one. A key without payload is gone."""

        def work(connection: apsw.Connection) -> bool:
            found = unenrol_owner(connection, kind, self._collection, key)
            connection.execute(
                "DELETE FROM owner WHERE kind = ? AND collection = ? AND key = ?"
                " AND NOT EXISTS(SELECT 1 FROM bank_page WHERE owner = owner.id)",
                (kind, self._collection, key),
            )
            return found

        return self._database.write(work)

    def entries(self, kind: str, /) -> Iterable[StoredEntry]:
        """Return every key of a kind that has a payload or an enrolment, in order of creation."""
        with self._database.read() as connection:
            rows: list[Any] = connection.execute(
                "SELECT key, resource_id, boundary_id, metadata_version,"
                " EXISTS(SELECT 1 FROM bank_page WHERE bank_page.owner = owner.id)"
                " FROM owner WHERE kind = ? AND collection = ? ORDER BY id",
                (kind, self._collection),
            ).fetchall()
        return [
            StoredEntry(key, state_of_columns(kind, resource, boundary, version), bool(present))
            for key, resource, boundary, version, present in rows
        ]


def _version(connection: apsw.Connection, owner: int) -> int:
    version = connection.execute("SELECT version FROM bank_page WHERE owner = ?", (owner,)).get
    return ABSENT if version is None else int(version)


def _put(connection: apsw.Connection, owner: int, version: int, document: bytes) -> int:
    """Store a document under a stamp that no page ever had."""
    stamp = int(connection.execute("UPDATE bank_clock SET stamp = stamp + 1 RETURNING stamp").get)
    connection.execute(
        "INSERT INTO bank_page(owner, version, data, stored_at, stamp) VALUES(?, ?, ?, ?, ?)"
        " ON CONFLICT(owner) DO UPDATE SET version = excluded.version, data = excluded.data,"
        " stored_at = excluded.stored_at, stamp = excluded.stamp",
        (owner, version, document, time.time(), stamp),
    )
    return stamp
