"""Deleting, pruning and copying threads; what is no longer reachable leaves with them."""

import json
from collections.abc import Callable, Iterable

import apsw

from langchain_libctx.checkpoint.chunks import ChunkWriter, references, transplant
from langchain_libctx.checkpoint.rows import CheckpointRow, find_thread, get_or_create_thread, select_checkpoints
from langchain_libctx.sql import fetch

DeltaChannels = Callable[[CheckpointRow], set[str]]

_EVERYTHING = 2**31


def delete_thread(connection: apsw.Connection, thread_id: str) -> None:
    """Delete a thread with all namespaces, writes and chunks."""
    thread = find_thread(connection, thread_id)
    if thread is None:
        return
    for table in ("checkpoint_write", "checkpoint", "checkpoint_chunk"):
        connection.execute(f"DELETE FROM {table} WHERE thread = ?", (thread.id,))  # noqa: S608 - constant names
    connection.execute("DELETE FROM checkpoint_thread WHERE id = ?", (thread.id,))


def threads_of_runs(connection: apsw.Connection, run_ids: Iterable[str]) -> list[str]:
    """Return the threads in which these runs wrote a checkpoint."""
    found = {row[0] for run_id in run_ids for row in fetch(connection, _THREADS_OF_RUN, (run_id,))}
    return sorted(found)


_THREADS_OF_RUN = (
    "SELECT DISTINCT t.thread_id FROM checkpoint AS c JOIN checkpoint_thread AS t ON t.id = c.thread WHERE c.run_id = ?"
)


def delete_runs(connection: apsw.Connection, run_ids: Iterable[str]) -> None:
    """Delete the checkpoints that these runs wrote."""
    touched: set[int] = set()
    for run_id in run_ids:
        for thread, ns, checkpoint_id in fetch(
            connection, "SELECT thread, ns, checkpoint_id FROM checkpoint WHERE run_id = ?", (run_id,)
        ):
            touched.add(thread)
            _delete_checkpoint(connection, thread, ns, checkpoint_id)
    for thread in touched:
        sweep(connection, thread)


def keep_latest(connection: apsw.Connection, thread_id: str, delta_channels: DeltaChannels) -> None:
    """Keep the newest checkpoint of each namespace and the ancestors its delta channels still need.

    Args:
        connection: The connection of the running write transaction.
        thread_id: The thread.
        delta_channels: Names the channels of a checkpoint that live in writes and hold no
            value of their own there.
    """
    thread = find_thread(connection, thread_id)
    if thread is None:
        return
    rows = select_checkpoints(connection, thread_id=thread_id, limit=_EVERYTHING)
    newest: dict[str, CheckpointRow] = {}
    for row in rows:
        newest.setdefault(row.ns, row)
    by_id = {(row.ns, row.checkpoint_id): row for row in rows}
    kept: set[tuple[str, str]] = set()
    for row in newest.values():
        kept.add((row.ns, row.checkpoint_id))
        kept.update(_needed_ancestors(row, by_id, delta_channels(row)))
    for row in rows:
        if (row.ns, row.checkpoint_id) not in kept:
            _delete_checkpoint(connection, row.thread, row.ns, row.checkpoint_id)
    sweep(connection, thread.id)


def _needed_ancestors(
    row: CheckpointRow, by_id: dict[tuple[str, str], CheckpointRow], missing: set[str]
) -> set[tuple[str, str]]:
    """Walk back until every delta channel has met a stored value."""
    needed: set[tuple[str, str]] = set()
    parent = row.parent_id
    while missing and parent is not None and (ancestor := by_id.get((row.ns, parent))) is not None:
        if (ancestor.ns, ancestor.checkpoint_id) in needed:
            break
        needed.add((ancestor.ns, ancestor.checkpoint_id))
        missing = missing - ancestor.channels.keys()
        parent = ancestor.parent_id
    return needed


def _delete_checkpoint(connection: apsw.Connection, thread: int, ns: str, checkpoint_id: str) -> None:
    for table in ("checkpoint_write", "checkpoint"):
        connection.execute(
            f"DELETE FROM {table} WHERE thread = ? AND ns = ? AND checkpoint_id = ?",  # noqa: S608 - constant names
            (thread, ns, checkpoint_id),
        )


def sweep(connection: apsw.Connection, thread: int) -> None:
    """Delete the chunks of a thread that no checkpoint and no write reaches any more."""
    roots: set[int] = set()
    for (channels,) in fetch(connection, "SELECT channels FROM checkpoint WHERE thread = ?", (thread,)):
        roots.update(chunk for _, chunk in json.loads(channels).values())
    roots.update(row[0] for row in fetch(connection, "SELECT chunk FROM checkpoint_write WHERE thread = ?", (thread,)))
    alive = references(connection, roots)
    stored = [row[0] for row in fetch(connection, "SELECT id FROM checkpoint_chunk WHERE thread = ?", (thread,))]
    connection.executemany(
        "DELETE FROM checkpoint_chunk WHERE id = ?", ((chunk,) for chunk in stored if chunk not in alive)
    )
    connection.execute("UPDATE checkpoint_thread SET epoch = epoch + 1 WHERE id = ?", (thread,))


def copy_thread(connection: apsw.Connection, source_id: str, target_id: str) -> None:
    """Copy all checkpoints, their writes and their parent chain; a missing source copies nothing."""
    source = find_thread(connection, source_id)
    if source is None or source_id == target_id:
        return
    target = get_or_create_thread(connection, target_id)
    writer = ChunkWriter(connection, target.id)
    moved: dict[int, int] = {}
    rows = fetch(
        connection,
        "SELECT ns, checkpoint_id, parent_id, run_id, channels, state_kind, state, metadata_kind, metadata"
        " FROM checkpoint WHERE thread = ?",
        (source.id,),
    )
    for ns, checkpoint_id, parent_id, run_id, channels, *rest in rows:
        carried = {
            name: (version, transplant(connection, chunk, writer, moved))
            for name, (version, chunk) in json.loads(channels).items()
        }
        connection.execute(
            "INSERT OR REPLACE INTO checkpoint(thread, ns, checkpoint_id, parent_id, run_id, channels,"
            " state_kind, state, metadata_kind, metadata) VALUES(?,?,?,?,?,?,?,?,?,?)",
            (target.id, ns, checkpoint_id, parent_id, run_id, json.dumps(carried, separators=(",", ":")), *rest),
        )
    writes = fetch(
        connection,
        "SELECT ns, checkpoint_id, task_path, task_id, idx, channel, chunk FROM checkpoint_write WHERE thread = ?",
        (source.id,),
    )
    for ns, checkpoint_id, task_path, task_id, idx, channel, chunk in writes:
        connection.execute(
            "INSERT OR REPLACE INTO checkpoint_write"
            "(thread, ns, checkpoint_id, task_path, task_id, idx, channel, chunk) VALUES(?,?,?,?,?,?,?,?)",
            (
                target.id,
                ns,
                checkpoint_id,
                task_path,
                task_id,
                idx,
                channel,
                transplant(connection, chunk, writer, moved),
            ),
        )
