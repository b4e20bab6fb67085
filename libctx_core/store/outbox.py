"""The outbox: work that is durable before anybody does it, claimed under a lease."""

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from libctx_core.models import ContextEvent, Watermarks
from libctx_core.store import events

MAX_SEQUENCE = 2**62
"""Beyond any event of a thread."""

_FREE = (
    "SELECT thread, sequence, uid, attempts FROM outbox WHERE not_before <= ? AND ("
    "claim_token IS NULL OR claim_until < ? OR claim_owner IN (SELECT value FROM carray(?))) "
)


_QUARANTINED = (
    "SELECT event.event_id, quarantine.sequence, quarantine.attempts, quarantine.error"
    " FROM quarantine JOIN event USING(uid) "
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A batch of events leased to one worker.

    Attributes:
        token: Must still be on the rows when the work is completed.
        items: Owner id of the thread, event, and attempts made so far.
    """

    token: str
    items: tuple[tuple[int, ContextEvent, int], ...]


@dataclass(frozen=True, slots=True)
class QuarantinedEvent:
    """An event that could not be indexed.

    Attributes:
        event_id: Its id, for `retry_failed`.
        sequence: Its place in the thread.
        attempts: How often it was tried.
        error: Class and message of the last error.
    """

    event_id: str
    sequence: int
    attempts: int
    error: str


def claim(
    connection: apsw.Connection,
    *,
    owner: str,
    token: str,
    now: float,
    lease: float,
    limit: int,
    dead: Sequence[str],
    beyond: int = 0,
) -> Claim | None:
    """Lease up to `limit` free rows, or return None if there are none.

    Free is what nobody leased, what is leased by a dead owner or beyond its time, and
    what this very owner leased before: it asks for more only when it is done with that.

    Args:
        connection: The writer, inside a transaction.
        owner: The worker.
        token: Fresh; work completed under an older one is refused.
        now: Seconds since the epoch.
        lease: Seconds until others may take over.
        limit: Rows wanted.
        dead: Owners proven dead.
        beyond: Begin with the threads after this one, so that one that is never quiet
            does not keep the others waiting.
    """
    gone = apsw.carray((owner, *dead))
    free = (now, now, gone)
    rows = connection.execute(_FREE + "AND thread > ? ORDER BY thread, sequence LIMIT ?", (*free, beyond, limit))
    found = rows.fetchall()
    if len(found) < limit and beyond:
        rows = connection.execute(
            _FREE + "AND thread <= ? ORDER BY thread, sequence LIMIT ?", (*free, beyond, limit - len(found))
        )
        found += rows.fetchall()
    if not found:
        return None
    connection.executemany(
        "UPDATE outbox SET claim_owner = ?, claim_token = ?, claim_until = ? WHERE thread = ? AND sequence = ?",
        [(owner, token, now + lease, thread, sequence) for thread, sequence, _, _ in found],
    )
    items = []
    for _, _, uid, attempts in found:
        event = events.by_uid(connection, uid)
        if event is not None:
            items.append((*event, attempts))
    return Claim(token, tuple(items))


def claim_owners(connection: apsw.Connection) -> list[str]:
    """Return the owners that hold leases now."""
    return [
        row[0] for row in connection.execute("SELECT DISTINCT claim_owner FROM outbox WHERE claim_owner IS NOT NULL")
    ]


def is_held(connection: apsw.Connection, claim_token: str, thread: int, sequence: int) -> bool:
    """Tell whether an event is still leased under a token."""
    found = connection.execute(
        "SELECT claim_token FROM outbox WHERE thread = ? AND sequence = ?", (thread, sequence)
    ).get
    return bool(found == claim_token)


def complete(connection: apsw.Connection, claim_token: str, thread: int, sequences: Sequence[int]) -> None:
    """Remove finished work that is still leased under the token; the rest is somebody else's now."""
    connection.executemany(
        "DELETE FROM outbox WHERE thread = ? AND sequence = ? AND claim_token = ?",
        [(thread, sequence, claim_token) for sequence in sequences],
    )


def release(connection: apsw.Connection, owner: str) -> None:
    """Give back everything an owner holds, without counting an attempt."""
    connection.execute(
        "UPDATE outbox SET claim_owner = NULL, claim_token = NULL, claim_until = NULL WHERE claim_owner = ?", (owner,)
    )


def postpone(connection: apsw.Connection, claim_token: str, thread: int, sequence: int, *, not_before: float) -> None:
    """Count an attempt and give the row back until later; nothing happens under an obsolete token."""
    connection.execute(
        "UPDATE outbox SET attempts = attempts + 1, not_before = ?, claim_owner = NULL, claim_token = NULL,"
        " claim_until = NULL WHERE thread = ? AND sequence = ? AND claim_token = ?",
        (not_before, thread, sequence, claim_token),
    )


def quarantine(
    connection: apsw.Connection, claim_token: str, thread: int, sequence: int, *, error: str, at: float
) -> None:
    """Set an event aside with its error; those after it go on. Nothing happens under an obsolete token."""
    connection.execute(
        "INSERT OR REPLACE INTO quarantine(uid, thread, sequence, attempts, error, at)"
        " SELECT uid, thread, sequence, attempts + 1, ?, ? FROM outbox"
        " WHERE thread = ? AND sequence = ? AND claim_token = ?",
        (error, at, thread, sequence, claim_token),
    )
    complete(connection, claim_token, thread, [sequence])


def retry(connection: apsw.Connection, thread: int, uid: int) -> bool:
    """Return a quarantined event to the queue; False if it is not in quarantine."""
    row = connection.execute("SELECT sequence FROM quarantine WHERE uid = ?", (uid,)).fetchall()
    if not row:
        return False
    connection.execute("DELETE FROM quarantine WHERE uid = ?", (uid,))
    connection.execute(
        "INSERT OR IGNORE INTO outbox(thread, sequence, uid, again) VALUES(?,?,?,1)", (thread, row[0][0], uid)
    )
    return True


def quarantined(connection: apsw.Connection, thread: int | None = None) -> list[QuarantinedEvent]:
    """Return what is set aside in one thread, or in the whole library."""
    if thread is None:
        rows = connection.execute(_QUARANTINED + "ORDER BY quarantine.thread, quarantine.sequence")
    else:
        rows = connection.execute(_QUARANTINED + "WHERE quarantine.thread = ? ORDER BY quarantine.sequence", (thread,))
    return [QuarantinedEvent(*row) for row in rows]


def watermarks(connection: apsw.Connection, thread: int, recorded: int | None = None) -> Watermarks:
    """Derive a thread's watermarks from what is still in its outbox.

    Quarantined and re-queued events are gaps the marks pass over.

    Args:
        connection: A reader.
        thread: The thread.
        recorded: Its last sequence, where that is known already.
    """
    if recorded is None:
        head = events.thread_head(connection, thread)
        recorded = 0 if head is None else head.last_sequence
    first = connection.execute(
        "SELECT sequence FROM outbox WHERE thread = ? AND again = 0 ORDER BY sequence LIMIT 1", (thread,)
    ).get
    indexed = recorded if first is None else first - 1
    return Watermarks(recorded, indexed, indexed)


def is_clear(connection: apsw.Connection, thread: int | None = None, through: int = MAX_SEQUENCE) -> bool:
    """Tell whether nothing waits to be indexed: in a thread up to a sequence, or in the whole library."""
    if thread is None:
        waiting = connection.execute("SELECT 1 FROM outbox LIMIT 1").get
    else:
        waiting = connection.execute(
            "SELECT 1 FROM outbox WHERE thread = ? AND sequence <= ? LIMIT 1", (thread, through)
        ).get
    return waiting is None


def pending(connection: apsw.Connection, thread: int | None = None) -> int:
    """Return how many events wait to be indexed, in one thread or in the whole library."""
    if thread is None:
        return int(connection.execute("SELECT count(*) FROM outbox").get)
    return int(connection.execute("SELECT count(*) FROM outbox WHERE thread = ?", (thread,)).get)
