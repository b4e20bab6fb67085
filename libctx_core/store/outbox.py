"""The outbox: work that is durable before anybody does it, claimed under a lease."""

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from libctx_core.models import ContextEvent, Watermarks
from libctx_core.store import events


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
    connection: apsw.Connection, *, owner: str, token: str, now: float, lease: float, limit: int, dead: Sequence[str]
) -> Claim | None:
    """Lease the oldest free rows; rows of dead owners and expired leases of others are free.

    A worker never takes over its own owner's expired lease: the holder of the token
    may still complete it.
    """
    dead_owners = tuple(dead)
    marks = ",".join("?" * len(dead_owners))
    rows = connection.execute(
        "SELECT uid, attempts FROM outbox WHERE not_before <= ? AND ("
        " claim_token IS NULL OR (claim_until < ? AND claim_owner <> ?)"
        f" OR claim_owner IN ({marks})) ORDER BY uid LIMIT ?",
        (now, now, owner, *dead_owners, limit),
    ).fetchall()
    if not rows:
        return None
    connection.executemany(
        "UPDATE outbox SET claim_owner = ?, claim_token = ?, claim_until = ? WHERE uid = ?",
        [(owner, token, now + lease, uid) for uid, _ in rows],
    )
    attempts = dict(rows)
    found = events.by_uids(connection, [uid for uid, _ in rows])
    return Claim(token, tuple((thread, event, attempts[event.uid]) for thread, event in found))


def claim_owners(connection: apsw.Connection) -> list[str]:
    """Return the owners that hold leases now."""
    return [row[0] for row in connection.execute("SELECT DISTINCT claim_owner FROM outbox WHERE claim_owner NOT NULL")]


def held(connection: apsw.Connection, claim_token: str) -> set[int]:
    """Return the uids that are still leased under a token."""
    return {row[0] for row in connection.execute("SELECT uid FROM outbox WHERE claim_token = ?", (claim_token,))}


def complete(connection: apsw.Connection, uids: Sequence[int]) -> None:
    """Remove finished work."""
    connection.executemany("DELETE FROM outbox WHERE uid = ?", [(uid,) for uid in uids])


def postpone(connection: apsw.Connection, uid: int, *, not_before: float) -> None:
    """Count an attempt and give the row back until later."""
    connection.execute(
        "UPDATE outbox SET attempts = attempts + 1, not_before = ?, claim_owner = NULL, claim_token = NULL,"
        " claim_until = NULL WHERE uid = ?",
        (not_before, uid),
    )


def quarantine(connection: apsw.Connection, thread: int, event: ContextEvent, *, attempts: int, error: str,
               at: float) -> None:  # fmt: skip
    """Set an event aside with its error; those after it go on."""
    connection.execute("DELETE FROM outbox WHERE uid = ?", (event.uid,))
    connection.execute(
        "INSERT OR REPLACE INTO quarantine(uid, thread, sequence, attempts, error, at) VALUES(?,?,?,?,?,?)",
        (event.uid, thread, event.sequence, attempts, error, at),
    )


def retry(connection: apsw.Connection, thread: int, uid: int) -> bool:
    """Return a quarantined event to the queue; False if it is not in quarantine."""
    row = connection.execute("SELECT sequence FROM quarantine WHERE uid = ?", (uid,)).fetchall()
    if not row:
        return False
    connection.execute("DELETE FROM quarantine WHERE uid = ?", (uid,))
    connection.execute(
        "INSERT OR IGNORE INTO outbox(uid, thread, sequence, again) VALUES(?,?,?,1)", (uid, thread, row[0][0])
    )
    return True


def quarantined(connection: apsw.Connection, thread: int | None = None) -> list[QuarantinedEvent]:
    """Return what is set aside in one thread, or in the whole library."""
    rows = connection.execute(
        "SELECT e.event_id, q.sequence, q.attempts, q.error FROM quarantine q JOIN event e USING(uid)"
        " WHERE ?1 IS NULL OR q.thread = ?1 ORDER BY q.thread, q.sequence",
        (thread,),
    )
    return [QuarantinedEvent(*row) for row in rows]


def watermarks(connection: apsw.Connection, thread: int) -> Watermarks:
    """Derive a thread's watermarks from what is still in its outbox.

    Quarantined and re-queued events are gaps the marks pass over.
    """
    head = events.thread_head(connection, thread)
    recorded = 0 if head is None else head.last_sequence
    pending = connection.execute("SELECT min(sequence) FROM outbox WHERE thread = ? AND again = 0", (thread,)).get
    indexed = recorded if pending is None else pending - 1
    return Watermarks(recorded, indexed, indexed)


def pending(connection: apsw.Connection, thread: int | None = None) -> int:
    """Return how many events wait to be indexed, in one thread or in the whole library."""
    if thread is None:
        return int(connection.execute("SELECT count(*) FROM outbox").get)
    return int(connection.execute("SELECT count(*) FROM outbox WHERE thread = ?", (thread,)).get)
