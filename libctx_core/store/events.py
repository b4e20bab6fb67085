"""The event log: what a thread's rows look like, and every statement that touches them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import apsw

from libctx_core.errors import EventConflictError, EventNotFoundError
from libctx_core.models import Block, ContextEvent, Role

_COLUMNS = (
    "uid, sequence, event_id, role, content, is_blocks, metadata, importance, protected, tokens, counter,"
    " running_total, created_at, speaker, occurred_at, turn_id, reply_to, parent_event_id, label, native,"
    " redacted, repaired, branch, revision"
)
_SELECT = f"SELECT {_COLUMNS} FROM event "  # noqa: S608 - constant columns
_INSERT = f"INSERT INTO event({_COLUMNS}, thread, identity) VALUES({','.join('?' * 26)})"

_HEAD = (
    "SELECT sequence, running_total, thread.revision, branches, branch, created_at FROM thread"
    " JOIN event ON event.thread = thread.owner"
    " AND sequence = (SELECT max(sequence) FROM event AS every WHERE every.thread = thread.owner) WHERE owner = ?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDraft:
    """An event ready to be stored: checked, sanitised and counted.

    Attributes:
        event_id: The caller's id, or a fresh one.
        fresh: Whether the id was made here, so that no stored event can hold it.
        identity: Digest of role and content; equal digests mean the same event.
        content: Stored form of the content.
        is_blocks: Whether `content` is a JSON list of blocks.
        metadata: Canonical JSON, or None.
        tokens: Tokens of its message under `counter`.
    """

    event_id: str
    fresh: bool
    identity: bytes
    role: Role
    content: str
    is_blocks: bool
    metadata: str | None
    importance: float
    protected: bool
    tokens: int
    counter: str
    created_at: float
    speaker: str | None = None
    occurred_at: float | None = None
    turn_id: str | None = None
    reply_to: str | None = None
    parent_event_id: str | None = None
    label: str | None = None
    native: str | None = None
    repaired: bool = False


@dataclass(frozen=True, slots=True)
class ThreadHead:
    """How far a thread got.

    Attributes:
        owner: Owner id, which is the thread's id.
        last_sequence: Sequence of the newest event, 0 for none.
        running_total: Tokens of all events, each counted when it was stored.
        revision: Grows whenever a stored event changes (amended, redacted, protected, released).
        branches: Number of forks.
        tip_branch: Branch of the newest event.
        updated_at: When the newest event was stored, seconds since the epoch.
    """

    owner: int
    last_sequence: int = 0
    running_total: int = 0
    revision: int = 0
    branches: int = 0
    tip_branch: int = 0
    updated_at: float | None = None


def event_from_row(row: Sequence[Any]) -> ContextEvent:
    """Build the value from a row of the constant column list."""
    (uid, sequence, event_id, role, content, is_blocks, metadata, importance, protected, tokens, counter,
     running_total, created_at, speaker, occurred_at, turn_id, reply_to, parent, label, native,
     redacted, repaired, branch, revision) = row  # fmt: skip
    return ContextEvent(
        event_id=event_id,
        uid=uid,
        sequence=sequence,
        role=role,
        content=json.loads(content) if is_blocks else content,
        metadata=None if metadata is None else json.loads(metadata),
        importance=importance,
        protected=bool(protected),
        token_count=tokens,
        counter=counter,
        running_total=running_total,
        created_at=created_at,
        speaker=speaker,
        occurred_at=occurred_at,
        turn_id=turn_id,
        reply_to=reply_to,
        parent_event_id=parent,
        label=label,
        native=native,
        redacted=bool(redacted),
        repaired=bool(repaired),
        branch=branch,
        revision=revision,
    )


def thread_head(connection: apsw.Connection, thread: int) -> ThreadHead | None:
    """Return how far a thread got, or None before its first event."""
    for row in connection.execute(_HEAD, (thread,)):
        return ThreadHead(thread, *row)
    return None


def append(connection: apsw.Connection, thread: int, drafts: Iterable[EventDraft]) -> list[ContextEvent]:
    """Store events and their outbox rows; all or nothing.

    An event id that is already stored with the same role and content returns the
    stored event.

    Raises:
        EventConflictError: An id is stored with other content.
        EventNotFoundError: A parent event does not exist.
    """
    head = thread_head(connection, thread)
    if head is None:
        connection.execute("INSERT INTO thread(owner) VALUES(?)", (thread,))
        head = ThreadHead(thread)
    uid = connection.execute(
        "SELECT max(uid, (SELECT coalesce(max(uid), 0) FROM event)) FROM event_floor WHERE one = 1"
    ).get
    branches = head.branches
    stored: list[ContextEvent] = []
    for draft in drafts:
        known = None if draft.fresh else _same_event(connection, thread, draft)
        if known is not None:
            stored.append(known)
            continue
        uid += 1
        head, event = _insert(connection, head, draft, uid)
        stored.append(event)
    if head.branches != branches:
        connection.execute("UPDATE thread SET branches = ? WHERE owner = ?", (head.branches, thread))
    return stored


def _same_event(connection: apsw.Connection, thread: int, draft: EventDraft) -> ContextEvent | None:
    for row in connection.execute(_SELECT + "WHERE thread = ? AND event_id = ?", (thread, draft.event_id)):
        event = event_from_row(row)
        if event.redacted:
            return event
        identity = connection.execute("SELECT identity FROM event WHERE uid = ?", (event.uid,)).get
        if event.role != draft.role:
            raise EventConflictError(draft.event_id, event.role)
        same_text = identity == draft.identity or _stored_content(connection, event.uid) == draft.content
        same_metadata = draft.metadata is None or draft.metadata == _stored_metadata(connection, event.uid)
        if not (same_text and same_metadata):
            raise EventConflictError(draft.event_id, event.role)
        return event
    return None


def _stored_content(connection: apsw.Connection, uid: int) -> object:
    return connection.execute("SELECT content FROM event WHERE uid = ?", (uid,)).get


def _stored_metadata(connection: apsw.Connection, uid: int) -> object:
    return connection.execute("SELECT metadata FROM event WHERE uid = ?", (uid,)).get


def _insert(
    connection: apsw.Connection, head: ThreadHead, draft: EventDraft, uid: int
) -> tuple[ThreadHead, ContextEvent]:
    branch, branches = head.tip_branch, head.branches
    if draft.parent_event_id is not None:
        branch, branches = _branch_of_child(connection, head, draft.parent_event_id)
    sequence = head.last_sequence + 1
    total = head.running_total + draft.tokens
    row = (
        uid, sequence, draft.event_id, draft.role, draft.content, draft.is_blocks, draft.metadata, draft.importance,
        draft.protected, draft.tokens, draft.counter, total, draft.created_at, draft.speaker, draft.occurred_at,
        draft.turn_id, draft.reply_to, draft.parent_event_id, draft.label, draft.native, False, draft.repaired,
        branch, 0,
    )  # fmt: skip
    connection.execute(_INSERT, (*row, head.owner, draft.identity))
    connection.execute("INSERT INTO outbox(thread, sequence, uid) VALUES(?,?,?)", (head.owner, sequence, uid))
    return (
        ThreadHead(head.owner, sequence, total, head.revision, branches, branch, draft.created_at),
        event_from_row(row),
    )


def _branch_of_child(connection: apsw.Connection, head: ThreadHead, parent_event_id: str) -> tuple[int, int]:
    """Continue the parent's branch if the parent is its tip, else open a new one."""
    parent = find(connection, head.owner, parent_event_id)
    if parent is None:
        raise EventNotFoundError(parent_event_id)
    if parent.sequence == head.last_sequence:
        return parent.branch, head.branches
    later = connection.execute(
        "SELECT 1 FROM event WHERE thread = ? AND sequence > ? AND branch = ? LIMIT 1",
        (head.owner, parent.sequence, parent.branch),
    ).get
    if later is None:
        return parent.branch, head.branches
    branch = head.branches + 1
    connection.execute(
        "INSERT INTO branch(thread, id, parent, fork_sequence) VALUES(?,?,?,?)",
        (head.owner, branch, parent.branch, parent.sequence),
    )
    return branch, branch


def branch_path(connection: apsw.Connection, thread: int, branch: int) -> dict[int, int]:
    """Return which events a branch sees: the newest visible sequence of it and of each ancestor."""
    path = {branch: 2**62}
    limit = 2**62
    while branch != 0:
        row = connection.execute(
            "SELECT parent, fork_sequence FROM branch WHERE thread = ? AND id = ?", (thread, branch)
        ).fetchall()
        branch, fork = row[0]
        limit = min(limit, fork)
        path[branch] = limit
    return path


def find(connection: apsw.Connection, thread: int, event_id: str) -> ContextEvent | None:
    """Return the event of this id in the thread, or None."""
    for row in connection.execute(_SELECT + "WHERE thread = ? AND event_id = ?", (thread, event_id)):
        return event_from_row(row)
    return None


def by_uid(connection: apsw.Connection, uid: int) -> tuple[int, ContextEvent] | None:
    """Return the thread and the event of a library-wide uid, or None."""
    for row in connection.execute(f"SELECT thread, {_COLUMNS} FROM event WHERE uid = ?", (uid,)):  # noqa: S608
        return row[0], event_from_row(row[1:])
    return None


def newest(connection: apsw.Connection, thread: int, *, through: int, limit: int) -> list[ContextEvent]:
    """Return up to `limit` events with a sequence of at most `through`, newest first."""
    rows = connection.execute(
        _SELECT + "WHERE thread = ? AND sequence <= ? ORDER BY sequence DESC LIMIT ?", (thread, through, limit)
    )
    return [event_from_row(row) for row in rows]


def after(connection: apsw.Connection, thread: int, sequence: int, limit: int) -> list[ContextEvent]:
    """Return up to `limit` events that follow a sequence, in order."""
    rows = connection.execute(
        _SELECT + "WHERE thread = ? AND sequence > ? ORDER BY sequence LIMIT ?", (thread, sequence, limit)
    )
    return [event_from_row(row) for row in rows]


def protected(connection: apsw.Connection, thread: int) -> list[ContextEvent]:
    """Return the protected events of a thread, in order."""
    rows = connection.execute(_SELECT + "WHERE thread = ? AND protected = 1 ORDER BY sequence", (thread,))
    return [event_from_row(row) for row in rows]


def answer_to(connection: apsw.Connection, thread: int, event_id: str) -> ContextEvent | None:
    """Return the newest assistant event that answers a user event, or None.

    The unary plus keeps the planner off the sequence index, which it would scan whole.
    """
    for row in connection.execute(
        _SELECT + "WHERE thread = ? AND reply_to = ? AND role = 'assistant' ORDER BY +sequence DESC LIMIT 1",
        (thread, event_id),
    ):
        return event_from_row(row)
    return None


def start_of_running_total(connection: apsw.Connection, thread: int, through: int, total: int) -> int:
    """Return the first sequence whose running total exceeds `total`: binary search over the log."""
    low, high = 1, through + 1
    while low < high:
        middle = (low + high) // 2
        at = connection.execute(
            "SELECT running_total FROM event WHERE thread = ? AND sequence = ?", (thread, middle)
        ).get
        if at is not None and at > total:
            high = middle
        else:
            low = middle + 1
    return low


def set_protected(connection: apsw.Connection, thread: int, event: ContextEvent, *, value: bool) -> ContextEvent:
    """Set or clear the protection flag; the thread's revision grows."""
    connection.execute("UPDATE event SET protected = ? WHERE uid = ?", (value, event.uid))
    _touch(connection, thread)
    return replace(event, protected=value)


def amend(
    connection: apsw.Connection,
    thread: int,
    event: ContextEvent,
    *,
    content: str,
    is_blocks: bool,
    tokens: int,
    counter: str,
    native: str | None,
    at: float,
) -> None:
    """Replace an event's content, keep what it was as a revision, and queue it for indexing again."""
    connection.execute(
        "INSERT INTO event_revision(uid, revision, content, is_blocks, native, replaced_at)"
        " SELECT uid, revision, content, is_blocks, native, ? FROM event WHERE uid = ?",
        (at, event.uid),
    )
    connection.execute(
        "UPDATE event SET content = ?, is_blocks = ?, tokens = ?, counter = ?, native = ?, revision = revision + 1"
        " WHERE uid = ?",
        (content, is_blocks, tokens, counter, native, event.uid),
    )
    connection.execute("DELETE FROM event_tokens WHERE uid = ?", (event.uid,))
    connection.execute(
        "INSERT INTO outbox(thread, sequence, uid, again) VALUES(?,?,?,1)"
        " ON CONFLICT DO UPDATE SET attempts = 0, not_before = 0, claim_token = NULL, claim_owner = NULL,"
        " claim_until = NULL",
        (thread, event.sequence, event.uid),
    )
    connection.execute("DELETE FROM quarantine WHERE uid = ?", (event.uid,))
    _touch(connection, thread)


def redact(connection: apsw.Connection, thread: int, event: ContextEvent) -> None:
    """Remove an event's words and its digest; its slot in the sequence stays as a tombstone."""
    connection.execute(
        "UPDATE event SET content = '', is_blocks = 0, metadata = NULL, native = NULL, speaker = NULL, label = NULL,"
        " tokens = 0, protected = 0, identity = NULL, redacted = 1 WHERE uid = ?",
        (event.uid,),
    )
    for table in ("event_tokens", "event_revision", "quarantine"):
        connection.execute(f"DELETE FROM {table} WHERE uid = ?", (event.uid,))  # noqa: S608 - constant names
    connection.execute("DELETE FROM outbox WHERE thread = ? AND sequence = ?", (thread, event.sequence))
    _touch(connection, thread)


def _touch(connection: apsw.Connection, thread: int) -> None:
    connection.execute("UPDATE thread SET revision = revision + 1 WHERE owner = ?", (thread,))


def revisions(connection: apsw.Connection, uid: int) -> list[str | list[Block]]:
    """Return the earlier contents of an event, oldest first."""
    rows = connection.execute("SELECT content, is_blocks FROM event_revision WHERE uid = ? ORDER BY revision", (uid,))
    return [json.loads(content) if is_blocks else content for content, is_blocks in rows]


def tokens_under(connection: apsw.Connection, uids: Sequence[int], counter: str) -> dict[int, int]:
    """Return the counts stored for a second counter."""
    counts: dict[int, int] = {}
    for uid in uids:
        value = connection.execute("SELECT tokens FROM event_tokens WHERE uid = ? AND counter = ?", (uid, counter)).get
        if value is not None:
            counts[uid] = value
    return counts


def store_tokens(connection: apsw.Connection, counts: dict[int, int], counter: str) -> None:
    """Keep counts under a second counter, so that each event is counted once per counter."""
    connection.executemany(
        "INSERT OR REPLACE INTO event_tokens(uid, counter, tokens) SELECT uid, ?2, ?3 FROM event WHERE uid = ?1",
        [(uid, counter, tokens) for uid, tokens in counts.items()],
    )
