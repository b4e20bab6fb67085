"""Records: the searchable rows derived from owner objects, and their vectors.

A record's place is its *slot*: the owner's id in the high 32 bits, its position in the
owner in the low 32. Positions only grow, so a range of slots is a stretch of one owner,
and neighbours in a conversation are neighbours on disk.
"""

from dataclasses import dataclass

from libctx_core.store.migrations import Component

RECORDS = Component(
    "records",
    (
        """
        CREATE TABLE record(
            slot INTEGER PRIMARY KEY,
            key TEXT NOT NULL,
            kind TEXT NOT NULL,
            text TEXT NOT NULL,
            caption TEXT,
            role TEXT,
            speaker TEXT,
            session TEXT,
            sequence INTEGER,
            occurred_at REAL,
            ref TEXT,
            metadata TEXT,
            payload TEXT,
            visibility TEXT NOT NULL DEFAULT 'thread',
            expires_at REAL,
            created_at REAL NOT NULL,
            owner INTEGER GENERATED ALWAYS AS (slot >> 32) VIRTUAL
        ) STRICT;
        CREATE UNIQUE INDEX record_key ON record(owner, key);
        CREATE INDEX record_ref ON record(owner, ref) WHERE ref IS NOT NULL;
        CREATE INDEX record_expiry ON record(expires_at) WHERE expires_at IS NOT NULL;
        CREATE TABLE vector(slot INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
        CREATE TABLE vector_profile(
            owner INTEGER PRIMARY KEY, profile TEXT NOT NULL, dimension INTEGER NOT NULL
        ) STRICT;
        """,
    ),
)

POSITION_BITS = 32
_POSITION_MASK = (1 << POSITION_BITS) - 1


def slot_of(owner: int, position: int) -> int:
    """Return the slot of a position in an owner."""
    return owner << POSITION_BITS | position


def owner_and_position(slot: int) -> tuple[int, int]:
    """Return the owner id and the position a slot stands for."""
    return slot >> POSITION_BITS, slot & _POSITION_MASK


def slot_range(owner: int) -> tuple[int, int]:
    """Return the first and last slot of an owner, for ``BETWEEN``."""
    return slot_of(owner, 0), slot_of(owner, _POSITION_MASK)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordInput:
    """A record to be stored.

    Attributes:
        key: Id within its owner (event id, node id, entry version id, ...).
        kind: ``event``, ``book``, ``chunk``, ``entry`` or ``node``.
        text: What is searched and shown.
        caption: Text of attachments (photo captions, file names); searched, not shown as speech.
        role: Role of the message it came from.
        speaker: Who said it.
        session: Name of the session within the owner; neighbours count within one session.
        sequence: Sequence of the event it came from.
        occurred_at: When it was said, seconds since the epoch, UTC.
        ref: Id of the document it was cut from.
        metadata: The user's JSON object, filterable.
        payload: JSON an adapter stores for itself.
        visibility: ``thread``, ``project`` or ``team``.
        expires_at: When it stops being found, seconds since the epoch.
    """

    key: str
    kind: str
    text: str
    caption: str | None = None
    role: str | None = None
    speaker: str | None = None
    session: str | None = None
    sequence: int | None = None
    occurred_at: float | None = None
    ref: str | None = None
    metadata: str | None = None
    payload: str | None = None
    visibility: str = "thread"
    expires_at: float | None = None
