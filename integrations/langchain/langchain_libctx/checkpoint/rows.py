"""Rows of the checkpointer's tables: threads, checkpoints and pending writes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apsw

Version = str | int | float | None
Channels = dict[str, tuple[Version, int]]
"""Channel name to its version and the chunk that holds its value."""

_COLUMNS = (
    "t.thread_id, c.thread, c.ns, c.checkpoint_id, c.parent_id, c.channels, "
    "c.state_kind, c.state, c.metadata_kind, c.metadata"
)
_NEWEST_FIRST = "ORDER BY c.checkpoint_id DESC, c.thread, c.ns"


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """One stored checkpoint, its channels not loaded."""

    thread_id: str
    thread: int
    ns: str
    checkpoint_id: str
    parent_id: str | None
    channels: Channels
    state: tuple[str, bytes]
    metadata: tuple[str, bytes]

    @property
    def place(self) -> tuple[str, int, str]:
        """Position in the newest-first order, to continue a listing after it."""
        return self.checkpoint_id, self.thread, self.ns


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A thread's small id and the epoch of its chunks."""

    id: int
    epoch: int

    @property
    def era(self) -> tuple[int, int]:
        """What must be unchanged for remembered chunk ids to be valid."""
        return self.id, self.epoch


def _row(values: tuple[Any, ...]) -> CheckpointRow:
    thread_id, thread, ns, checkpoint_id, parent_id, channels, state_kind, state, metadata_kind, metadata = values
    return CheckpointRow(
        thread_id,
        thread,
        ns,
        checkpoint_id,
        parent_id,
        {name: (version, chunk) for name, (version, chunk) in json.loads(channels).items()},
        (state_kind, state),
        (metadata_kind, metadata),
    )


def find_thread(connection: apsw.Connection, thread_id: str) -> ThreadRow | None:
    """Return the thread, or None if nothing was ever stored in it."""
    for row in connection.execute("SELECT id, epoch FROM checkpoint_thread WHERE thread_id = ?", (thread_id,)):
        return ThreadRow(*row)
    return None


def get_or_create_thread(connection: apsw.Connection, thread_id: str) -> ThreadRow:
    """Return the thread, creating it where it is missing."""
    found = find_thread(connection, thread_id)
    if found is not None:
        return found
    connection.execute("INSERT INTO checkpoint_thread(thread_id) VALUES(?)", (thread_id,))
    return ThreadRow(connection.last_insert_rowid(), 0)


def select_checkpoints(
    connection: apsw.Connection,
    *,
    thread_id: str | None = None,
    ns: str | None = None,
    checkpoint_id: str | None = None,
    before: str | None = None,
    after: tuple[str, int, str] | None = None,
    limit: int,
) -> list[CheckpointRow]:
    """Return checkpoints, newest first.

    Args:
        connection: A reading connection.
        thread_id: Only of this thread.
        ns: Only of this namespace.
        checkpoint_id: Only this one.
        before: Only with a smaller id than this one's.
        after: Only what follows this place in the listing.
        limit: At most so many.
    """
    conditions = ["1"]
    values: list[Any] = []
    for column, value in (("t.thread_id =", thread_id), ("c.ns =", ns), ("c.checkpoint_id =", checkpoint_id)):
        if value is not None:
            conditions.append(f"{column} ?")
            values.append(value)
    if before is not None:
        conditions.append("c.checkpoint_id < ?")
        values.append(before)
    if after is not None:
        conditions.append("(c.checkpoint_id < ? OR (c.checkpoint_id = ? AND (c.thread, c.ns) > (?, ?)))")
        values.extend((after[0], *after))
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM checkpoint AS c JOIN checkpoint_thread AS t ON t.id = c.thread "  # noqa: S608 - constants only
        f"WHERE {' AND '.join(conditions)} {_NEWEST_FIRST} LIMIT ?",
        (*values, limit),
    )
    return [_row(row) for row in rows]


def insert_checkpoint(
    connection: apsw.Connection,
    thread: int,
    *,
    ns: str,
    checkpoint_id: str,
    parent_id: str | None,
    run_id: str | None,
    channels: Mapping[str, tuple[Version, int]],
    state: tuple[str, bytes],
    metadata: tuple[str, bytes],
) -> None:
    """Store a checkpoint, in place of one with the same id."""
    connection.execute(
        "INSERT OR REPLACE INTO checkpoint(thread, ns, checkpoint_id, parent_id, run_id, channels,"
        " state_kind, state, metadata_kind, metadata) VALUES(?,?,?,?,?,?,?,?,?,?)",
        (
            thread,
            ns,
            checkpoint_id,
            parent_id,
            run_id,
            json.dumps(channels, separators=(",", ":")),
            *state,
            *metadata,
        ),
    )


def channels_of(connection: apsw.Connection, thread: int, ns: str, checkpoint_id: str | None) -> Channels:
    """Return the channels of one checkpoint; empty if it is not stored."""
    if checkpoint_id is None:
        return {}
    found = connection.execute(
        "SELECT channels FROM checkpoint WHERE thread = ? AND ns = ? AND checkpoint_id = ?",
        (thread, ns, checkpoint_id),
    ).get
    return {} if found is None else {name: (version, chunk) for name, (version, chunk) in json.loads(found).items()}


def insert_writes(
    connection: apsw.Connection,
    thread: int,
    *,
    ns: str,
    checkpoint_id: str,
    task_path: str,
    task_id: str,
    writes: Iterable[tuple[int, str, int]],
) -> None:
    """Store writes as (index, channel, chunk); a regular one that is there already stays."""
    for idx, channel, chunk in writes:
        # a negative index is a special write (error, interrupt, resume): the newest counts
        verb = "REPLACE" if idx < 0 else "IGNORE"
        connection.execute(
            f"INSERT OR {verb} INTO checkpoint_write"
            "(thread, ns, checkpoint_id, task_path, task_id, idx, channel, chunk) VALUES(?,?,?,?,?,?,?,?)",
            (thread, ns, checkpoint_id, task_path, task_id, idx, channel, chunk),
        )


def select_writes(
    connection: apsw.Connection,
    thread: int,
    ns: str,
    checkpoint_id: str,
    channels: Sequence[str] | None = None,
) -> list[tuple[str, str, int]]:
    """Return (task id, channel, chunk) of a checkpoint's writes, in the order a step applies them."""
    rows = connection.execute(
        "SELECT task_id, channel, chunk FROM checkpoint_write WHERE thread = ? AND ns = ? AND checkpoint_id = ?"
        " ORDER BY task_path, task_id, idx",
        (thread, ns, checkpoint_id),
    )
    return [row for row in rows if channels is None or row[1] in channels]
