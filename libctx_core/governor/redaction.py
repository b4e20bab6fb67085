"""Removing words for good: what is removed, and what cannot be reached from here."""

from dataclasses import dataclass

import apsw

from libctx_core.access.authority import Authority
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
    runtime: Runtime, authority: Authority, owner: OwnerRow, event: ContextEvent, *, cascade: bool
) -> RedactionReceipt:
    """Remove an event's words from every table; SQLite overwrites the bytes that held them."""
    removed = ["event", "revisions", "token counts", "outbox"]

    def work(connection: apsw.Connection) -> None:
        current = log.find(connection, owner.id, event.event_id)
        if current is None or current.redacted:
            return
        slot = connection.execute("SELECT slot FROM record WHERE owner = ? AND key = ?", (owner.id, event.event_id)).get
        if slot is not None:
            runtime.index.remove(connection, [slot])
            removed.extend(["record", "index", "vector"])
        log.redact(connection, owner.id, current)

    runtime.database.write(work)
    runtime.states.forget(owner.id)
    derived = follow_redaction(runtime, authority, owner.collection, event, cascade=cascade)
    return RedactionReceipt(
        event_id=event.event_id,
        removed=tuple(removed),
        derived=derived,
        cascaded=cascade and bool(derived),
        wal_truncated=runtime.database.truncate_wal(),
    )


def delete_thread(runtime: Runtime, owner: OwnerRow) -> None:
    """Delete a thread: events, records, vectors, postings, and its access metadata."""

    def work(connection: apsw.Connection) -> None:
        runtime.index.remove_owner(connection, owner.id)
        connection.execute("DELETE FROM event WHERE thread = ?", (owner.id,))
        connection.execute("DELETE FROM owner WHERE id = ?", (owner.id,))

    runtime.database.write(work)
    runtime.states.forget(owner.id)
    runtime.database.truncate_wal()
