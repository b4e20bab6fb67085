"""Counts over what may be seen: threads, events, records, bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from libctx_core.access.authority import Authority, present
from libctx_core.models import ThreadKey
from libctx_core.store.access import metadata_state
from libctx_core.store.database import Database
from libctx_core.store.events import ThreadHead, thread_head
from libctx_core.store.owners import THREAD, OwnerRow
from libctx_core.store.records import slot_range


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """One thread of a listing.

    Attributes:
        key: The thread.
        events: Events it holds.
        pending: Events that are not yet searchable.
        user: The user it belongs to.
        updated_at: When its newest event was stored, seconds since the epoch.
    """

    key: ThreadKey
    events: int
    pending: int
    user: str | None
    updated_at: float


@dataclass(frozen=True, slots=True)
class LibraryStatistics:
    """Counts over what may be seen.

    Attributes:
        threads: Threads.
        events: Events in them.
        records: Searchable records of all owner objects.
        pending: Events that are not yet searchable.
        quarantined: Events that could not be indexed.
        bytes: Size of the whole file; None under a scope, which does not see the whole.
    """

    threads: int
    events: int
    records: int
    pending: int
    quarantined: int
    bytes: int | None


_OWNERS = "SELECT id, kind, collection, key, user, team, resource_id, boundary_id, metadata_version FROM owner"


def visible_owners(
    connection: apsw.Connection, authority: Authority, kind: str | None = None, collection: str | None = None
) -> list[OwnerRow]:
    """Return the owner objects a listing may name, in order of creation."""
    rows = connection.execute(
        _OWNERS + " WHERE (?1 IS NULL OR kind = ?1) AND (?2 IS NULL OR collection = ?2) ORDER BY id",
        (kind, collection),
    )
    owners = [OwnerRow(*row) for row in rows.fetchall()]
    return [
        owner
        for owner in owners
        if authority.visible(owner.kind, f"{owner.collection}/{owner.key}", metadata_state(owner), present)
    ]


def list_threads(connection: apsw.Connection, authority: Authority, collection: str | None) -> list[ThreadInfo]:
    """Return the threads a scope may list."""
    return [_thread(connection, owner) for owner in visible_owners(connection, authority, THREAD, collection)]


def _thread(connection: apsw.Connection, owner: OwnerRow) -> ThreadInfo:
    head = thread_head(connection, owner.id) or ThreadHead(owner.id)
    return ThreadInfo(
        ThreadKey(owner.collection, owner.key),
        head.last_sequence,
        _count(connection, "outbox", [owner.id]),
        owner.user,
        head.updated_at or 0.0,
    )


def read_statistics(connection: apsw.Connection, authority: Authority, database: Database) -> LibraryStatistics:
    """Count what a scope may see; without one, everything."""
    owners = visible_owners(connection, authority)
    threads = [owner.id for owner in owners if owner.kind == THREAD]
    return LibraryStatistics(
        threads=len(threads),
        events=_count(connection, "event", threads),
        records=sum(_records(connection, owner.id) for owner in owners),
        pending=_count(connection, "outbox", threads),
        quarantined=_count(connection, "quarantine", threads),
        bytes=database.size() if authority.scope is None else None,
    )


def _count(connection: apsw.Connection, table: str, threads: Sequence[int]) -> int:
    return sum(
        connection.execute(f"SELECT count(*) FROM {table} WHERE thread = ?", (thread,)).get  # noqa: S608 - constants
        for thread in threads
    )


def _records(connection: apsw.Connection, owner: int) -> int:
    return int(connection.execute("SELECT count(*) FROM record WHERE slot BETWEEN ? AND ?", slot_range(owner)).get)
