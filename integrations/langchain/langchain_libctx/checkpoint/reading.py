"""Reading checkpoints back: one, a page of a listing, or the history of delta channels."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import apsw
from langchain_core.runnables import RunnableConfig

from langchain_libctx.checkpoint.chunks import ChunkReader, Serializer
from langchain_libctx.checkpoint.memo import ListMemo, MemoCache
from langchain_libctx.checkpoint.rows import CheckpointRow, ThreadRow, find_thread, select_checkpoints, select_writes
from langchain_libctx.extras import extra
from langchain_libctx.filters import check_filter, matches
from langchain_libctx.fingerprints import fingerprint
from langchain_libctx.guards import ThreadGuard
from libctx_core.errors.access import Operation
from libctx_core.store.database import Database

with extra("langgraph", "the LangGraph checkpointer"):
    from langgraph.checkpoint.base import Checkpoint, CheckpointTuple, PendingWrite, get_checkpoint_id

if TYPE_CHECKING:
    from langgraph.checkpoint.base import DeltaChannelHistory

PAGE = 16
"""Checkpoints that a listing loads at a time."""


def named_checkpoint(config: RunnableConfig) -> str | None:
    """Return the checkpoint that a configuration names; an empty name is none."""
    return get_checkpoint_id(config) or None


class Listing:
    """A listing of checkpoints and how far it has come.

    Args:
        config: Thread, and where given namespace and checkpoint; None for all threads.
        wanted: Filter over the metadata, see `langchain_libctx.filters`.
        before: Only checkpoints older than this one.
        limit: At most so many.
    """

    def __init__(
        self,
        config: RunnableConfig | None,
        wanted: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        settings = config["configurable"] if config else {}
        thread_id = settings.get("thread_id")
        self.thread_id = None if thread_id is None else str(thread_id)
        self.ns = settings.get("checkpoint_ns")
        self.checkpoint_id = named_checkpoint(config) if config else None
        self.before = named_checkpoint(before) if before else None
        self.wanted = wanted or {}
        check_filter(self.wanted)
        self.left = limit
        self.after: tuple[str, int, str] | None = None
        self.finished = limit is not None and limit <= 0

    def advance(self, read: Sequence[CheckpointRow], asked: int, found: int) -> None:
        """Note what a page brought."""
        if self.left is not None:
            self.left -= found
        self.finished = len(read) < asked or self.left == 0
        if read:
            self.after = read[-1].place


class CheckpointReader:
    """Reads checkpoints of one library file.

    Args:
        database: The open file.
        serde: Serialiser of the values.
        memos: Where lists that were read are remembered, so that the next put need not
            serialise them again.
        guard: Decides which threads may be read.
    """

    def __init__(self, database: Database, serde: Serializer, memos: MemoCache, guard: ThreadGuard) -> None:
        self._database = database
        self._serde = serde
        self._memos = memos
        self._guard = guard

    def newest(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, or the newest of its thread and namespace."""
        settings = config["configurable"]
        with self._database.read() as connection:
            self._guard.require(Operation.READ, connection, [str(settings["thread_id"])])
            rows = select_checkpoints(
                connection,
                thread_id=str(settings["thread_id"]),
                ns=settings.get("checkpoint_ns", ""),
                checkpoint_id=named_checkpoint(config),
                limit=1,
            )
            return self._load(connection, rows[0]) if rows else None

    def page(self, listing: Listing) -> list[CheckpointTuple]:
        """Return the next checkpoints of a listing and advance it."""
        size = PAGE if listing.left is None else min(listing.left, PAGE)
        with self._database.read() as connection:
            if listing.thread_id is not None:
                self._guard.require(Operation.READ, connection, [listing.thread_id])
            rows = select_checkpoints(
                connection,
                thread_id=listing.thread_id,
                ns=listing.ns,
                checkpoint_id=listing.checkpoint_id,
                before=listing.before,
                after=listing.after,
                limit=size,
            )
            found = [
                self._load(connection, row)
                for row in rows
                if self._matches(row, listing.wanted)
                and (listing.thread_id is not None or self._guard.allows(Operation.READ, connection, row.thread_id))
            ]
        listing.advance(rows, size, len(found))
        return found

    def _matches(self, row: CheckpointRow, wanted: Mapping[str, Any]) -> bool:
        return not wanted or matches(self._serde.loads_typed(row.metadata), wanted)

    def _load(self, connection: apsw.Connection, row: CheckpointRow) -> CheckpointTuple:
        reader = ChunkReader(connection, self._serde)
        thread = find_thread(connection, row.thread_id)
        values: dict[str, Any] = {}
        for channel, (_version, chunk) in row.channels.items():
            values[channel], entries = reader.load_with_entries(chunk)
            if entries and thread is not None:
                self._remember(row, channel, thread, values[channel], entries)
        place = {"thread_id": row.thread_id, "checkpoint_ns": row.ns}
        return CheckpointTuple(
            config={"configurable": {**place, "checkpoint_id": row.checkpoint_id}},
            checkpoint=cast("Checkpoint", {**self._serde.loads_typed(row.state), "channel_values": values}),
            metadata=self._serde.loads_typed(row.metadata),
            parent_config={"configurable": {**place, "checkpoint_id": row.parent_id}} if row.parent_id else None,
            pending_writes=[
                (task, channel, reader.load(chunk))
                for task, channel, chunk in select_writes(connection, row.thread, row.ns, row.checkpoint_id)
            ],
        )

    def _remember(
        self, row: CheckpointRow, channel: str, thread: ThreadRow, value: Any, entries: Sequence[int]
    ) -> None:
        if isinstance(value, list):
            memo = ListMemo(thread.era, tuple(fingerprint(item) for item in value), tuple(entries))
            self._memos.put((row.thread_id, row.ns, channel), memo)

    def delta_history(self, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, "DeltaChannelHistory"]:
        """Return, per channel, the writes since its nearest stored value, and that value as seed.

        Walks the parent chain once for all channels and loads nothing else of the state.
        """
        settings = config["configurable"]
        thread_id, ns = str(settings["thread_id"]), settings.get("checkpoint_ns", "")
        writes: dict[str, list[PendingWrite]] = {channel: [] for channel in channels}
        seeds: dict[str, Any] = {}
        waiting = set(channels)
        with self._database.read() as connection:
            self._guard.require(Operation.READ, connection, [thread_id])
            reader = ChunkReader(connection, self._serde)
            target = select_checkpoints(
                connection, thread_id=thread_id, ns=ns, checkpoint_id=named_checkpoint(config), limit=1
            )
            parent = target[0].parent_id if target else None
            seen: set[str] = set()
            while waiting and parent is not None and parent not in seen:
                seen.add(parent)
                rows = select_checkpoints(connection, thread_id=thread_id, ns=ns, checkpoint_id=parent, limit=1)
                if not rows:
                    break
                row = rows[0]
                stored = select_writes(connection, row.thread, row.ns, row.checkpoint_id, tuple(waiting))
                for task, channel, chunk in reversed(stored):
                    writes[channel].append((task, channel, reader.load(chunk)))
                for channel in waiting & row.channels.keys():
                    seeds[channel] = reader.load(row.channels[channel][1])
                waiting -= row.channels.keys()
                parent = row.parent_id
        return {
            channel: cast(
                "DeltaChannelHistory",
                {"writes": writes[channel][::-1], **({"seed": seeds[channel]} if channel in seeds else {})},
            )
            for channel in channels
        }
