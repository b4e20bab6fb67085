"""Removing words for good: what is removed, and what cannot be reached from here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import apsw

from libctx_core.access.authority import Authority
from libctx_core.governor.indexer import slot_of_event
from libctx_core.governor.memories import follow_redaction
from libctx_core.governor.runtime import Runtime
from libctx_core.models import ContextEvent
from libctx_core.store import events as log
from libctx_core.store.owners import OwnerRow

OUT_OF_REACH = (
    "backups and exports made before",
    "requests already sent to a model and its provider's logs",
    "results already handed to a caller",
)

Permit: TypeAlias = Callable[[apsw.Connection], OwnerRow]
"""Returns the thread if it may be deleted from; asked inside the transaction, where nothing changes any more."""


@dataclass(frozen=True, slots=True)
class RedactionReceipt:
    """What a redaction did.

    Attributes:
        event_id: The event.
        removed: What was removed from the library.
        derived: Memory entries that cite the event; tombstoned if the redaction cascaded.
        cascaded: Whether they were.
        wal_truncated: Whether the write-ahead log was emptied; a reader can prevent it, and
            the next checkpoint makes up for it.
        out_of_reach: Where copies may remain.
    """

    event_id: str
    removed: tuple[str, ...]
    derived: tuple[str, ...]
    cascaded: bool
    wal_truncated: bool
    out_of_reach: tuple[str, ...] = OUT_OF_REACH


def redact_event(
    runtime: Runtime, authority: Authority, permit: Permit, event: ContextEvent, *, cascade: bool
) -> RedactionReceipt:
    """Remove an event's words from every table; SQLite overwrites the bytes that held them."""

    def work(connection: apsw.Connection) -> tuple[OwnerRow, tuple[str, ...]]:
        owner = permit(connection)
        removed: tuple[str, ...] = ("event", "revisions", "token counts", "outbox")
        current = log.find(connection, owner.id, event.event_id)
        if current is None or current.redacted:
            return owner, removed
        slot = slot_of_event(connection, owner.id, event)
        if slot is not None:
            runtime.index.remove(connection, [slot])
            removed += ("record", "index", "vector")
        log.redact(connection, owner.id, current)
        return owner, removed

    owner, removed = runtime.database.write(work)
    runtime.states.forget(owner.id)
    derived = follow_redaction(runtime, authority, owner.collection, event, cascade=cascade)
    return RedactionReceipt(
        event_id=event.event_id,
        removed=removed,
        derived=derived,
        cascaded=cascade and bool(derived),
        wal_truncated=runtime.database.truncate_wal(),
    )


def delete_thread(runtime: Runtime, permit: Permit) -> None:
    """Delete a thread: events, records, vectors, postings, and its access metadata."""

    def work(connection: apsw.Connection) -> int:
        owner = permit(connection).id
        runtime.index.remove_owner(connection, owner)
        connection.execute("DELETE FROM event WHERE thread = ?", (owner,))
        connection.execute("DELETE FROM owner WHERE id = ?", (owner,))
        return owner

    runtime.states.forget(runtime.database.write(work))
    runtime.database.truncate_wal()
