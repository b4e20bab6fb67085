"""`LibrarySaver`: LangGraph's checkpoints in a library file, the same bytes per step at any length."""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import apsw
from langchain_core.runnables import RunnableConfig

from langchain_libctx.checkpoint import upkeep
from langchain_libctx.checkpoint.chunks import ChunkWriter, Draft, ListDraft, draft
from langchain_libctx.checkpoint.memo import ListMemo, MemoCache
from langchain_libctx.checkpoint.reading import CheckpointReader, Listing
from langchain_libctx.checkpoint.rows import (
    Channels,
    CheckpointRow,
    ThreadRow,
    channels_of,
    find_thread,
    get_or_create_thread,
    insert_checkpoint,
    insert_writes,
)
from langchain_libctx.checkpoint.schema import CHECKPOINTS
from langchain_libctx.checkpoint.serde import LibrarySerializer
from langchain_libctx.extras import extra
from langchain_libctx.guards import ThreadGuard
from langchain_libctx.opening import DatabaseSource, Opened, open_database
from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.errors import InvalidInputError
from libctx_core.errors.access import Operation

with extra("langgraph", "the LangGraph checkpointer"):
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        get_checkpoint_metadata,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol

if TYPE_CHECKING:
    from langgraph.checkpoint.base import DeltaChannelHistory

_DELTA_COUNTERS = "counters_since_delta_snapshot"


class _StaleError(Exception):
    """Chunks that a put meant to reuse were deleted meanwhile by another writer."""


class LibrarySaver(BaseCheckpointSaver[int]):
    """Checkpointer that stores only what a step changed.

    Messages and other long lists are kept as chunks shared by all checkpoints of a
    thread, so a step costs the same on disk after ten messages and after ten thousand.
    All optional capabilities are there: `delete_for_runs`, `copy_thread`, `prune` and the
    history of delta channels. Synchronous methods may be called from anywhere, a running
    event loop included; the asynchronous ones never block the loop with a commit.

    Args:
        library: An open `LibraryOfContext`, or a path that this object then owns.
        serde: Another serialiser, for instance LangGraph's `EncryptedSerializer`. The
            default rebuilds data classes only and never uses pickle.
        scope: Held for every call; a thread's checkpoints are judged as the thread is.
    """

    def __init__(
        self, library: DatabaseSource, *, serde: SerializerProtocol | None = None, scope: Scope | None = None
    ) -> None:
        super().__init__(serde=serde or LibrarySerializer())
        self._file = open_database(library, scope)
        self._database = self._file.database
        self._guard = ThreadGuard(self._file)
        self._memos = MemoCache()
        self._database.ensure(CHECKPOINTS)

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, serde: SerializerProtocol | None = None
    ) -> "Opened[LibrarySaver, LibrarySaver]":
        """Open a checkpointer on a path, for ``with`` or ``async with``."""

        def build() -> LibrarySaver:
            return cls(conn_string, serde=serde)

        async def abuild() -> LibrarySaver:
            return await run_sync(build)

        return Opened(build, abuild)

    def setup(self) -> None:
        """Create or upgrade the tables; opening did so already."""
        self._database.ensure(CHECKPOINTS)

    def close(self) -> None:
        """Close the file if this object opened it."""
        self._file.close()

    # -- reading --------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names, or the newest of its thread and namespace."""
        return self._reader().newest(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name is the interface's
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Iterate over checkpoints, newest first, loading a page at a time.

        Args:
            config: Thread, and where given namespace and checkpoint; None for all threads.
            filter: Filter over the metadata, see `langchain_libctx.filters`.
            before: Only checkpoints older than this one.
            limit: At most so many.
        """
        listing = Listing(config, filter, before, limit)
        while not listing.finished:
            yield from self._reader().page(listing)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, "DeltaChannelHistory"]:
        """Return, per channel, the writes since its nearest stored value, and that value as seed."""
        return self._reader().delta_history(config, channels)

    def _reader(self) -> CheckpointReader:
        return CheckpointReader(self._database, self.serde, self._memos, self._guard)

    # -- writing --------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; channels that did not change since its parent are only referred to.

        Raises:
            TypeError: A value that the serialiser cannot express.
        """
        for attempt in range(3):
            try:
                return self._put(config, checkpoint, metadata, new_versions, reuse=attempt < 2)
            except _StaleError:
                self._memos.forget(str(config["configurable"]["thread_id"]))
        raise AssertionError("a put that reuses nothing cannot be stale")

    def _put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        *,
        reuse: bool,
    ) -> RunnableConfig:
        settings = config["configurable"]
        thread_id, ns = str(settings["thread_id"]), settings.get("checkpoint_ns", "")
        parent_id = settings.get("checkpoint_id") or None
        known, parent = self._parent(thread_id, ns, parent_id) if reuse else (None, {})
        carried, changed = _split(checkpoint, new_versions, parent)
        drafts: dict[str, Draft] = {}
        for channel in changed:
            memo = self._memos.get((thread_id, ns, channel))
            usable = memo if known is not None and memo is not None and memo.epoch == known.era else None
            drafts[channel] = draft(checkpoint["channel_values"][channel], self.serde, usable)
        reused = bool(carried) or any(_holds_ids(item) for item in drafts.values())
        state = self.serde.dumps_typed({key: value for key, value in checkpoint.items() if key != "channel_values"})
        details = get_checkpoint_metadata(config, metadata)
        versions = checkpoint["channel_versions"]

        def work(connection: apsw.Connection) -> tuple[ThreadRow, dict[str, Sequence[int]]]:
            self._guard.require(Operation.WRITE, connection, [thread_id])
            thread = get_or_create_thread(connection, thread_id)
            if reused and (known is None or thread.era != known.era):
                raise _StaleError
            writer = ChunkWriter(connection, thread.id)
            roots = {channel: writer.store(item) for channel, item in drafts.items()}
            insert_checkpoint(
                connection,
                thread.id,
                ns=ns,
                checkpoint_id=checkpoint["id"],
                parent_id=parent_id,
                run_id=details.get("run_id"),
                channels=carried | {channel: (versions.get(channel), root) for channel, root in roots.items()},
                state=state,
                metadata=self.serde.dumps_typed(details),
            )
            return thread, {channel: writer.lists[root] for channel, root in roots.items() if root in writer.lists}

        thread, lists = self._database.write(work)
        for channel, ids in lists.items():
            item = drafts[channel]
            if isinstance(item, ListDraft) and item.marks:
                self._memos.put((thread_id, ns, channel), ListMemo(thread.era, item.marks, tuple(ids)))
        return {
            "configurable": {
                "thread_id": settings["thread_id"],
                "checkpoint_ns": ns,
                "checkpoint_id": checkpoint["id"],
            }
        }

    def _parent(self, thread_id: str, ns: str, parent_id: str | None) -> tuple[ThreadRow | None, Channels]:
        with self._database.read() as connection:
            thread = find_thread(connection, thread_id)
            if thread is None:
                return None, {}
            return thread, channels_of(connection, thread.id, ns, parent_id)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of one task beside the checkpoint it started from; repeating a call changes nothing."""
        settings = config["configurable"]
        drafts = [
            (WRITES_IDX_MAP.get(channel, idx), channel, draft(value, self.serde))
            for idx, (channel, value) in enumerate(writes)
        ]

        def work(connection: apsw.Connection) -> None:
            self._guard.require(Operation.WRITE, connection, [str(settings["thread_id"])])
            thread = get_or_create_thread(connection, str(settings["thread_id"]))
            writer = ChunkWriter(connection, thread.id)
            insert_writes(
                connection,
                thread.id,
                ns=settings.get("checkpoint_ns", ""),
                checkpoint_id=settings["checkpoint_id"],
                task_path=task_path,
                task_id=task_id,
                writes=[(idx, channel, writer.store(item)) for idx, channel, item in drafts],
            )

        self._database.write(work)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with everything stored for it."""
        self._change([str(thread_id)], lambda connection: upkeep.delete_thread(connection, str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that these runs wrote, with their writes."""

        def work(connection: apsw.Connection) -> None:
            touched = upkeep.threads_of_runs(connection, run_ids)
            self._guard.require(Operation.DELETE, connection, touched)
            upkeep.delete_runs(connection, run_ids)
            for thread_id in touched:
                self._memos.forget(thread_id)

        self._database.write(work)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread, its whole parent chain included; a missing source copies nothing."""
        source, target = str(source_thread_id), str(target_thread_id)

        def work(connection: apsw.Connection) -> None:
            self._guard.require(Operation.READ, connection, [source])
            self._guard.require(Operation.WRITE, connection, [target])
            upkeep.copy_thread(connection, source, target)

        self._database.write(work)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Thin out threads.

        ``"keep_latest"`` keeps the newest checkpoint of each namespace, together with the
        ancestors from which its delta channels are rebuilt; ``"delete"`` keeps nothing.

        Raises:
            InvalidInputError: Any other strategy.
        """
        if strategy not in ("keep_latest", "delete"):
            raise InvalidInputError("strategy", "must be 'keep_latest' or 'delete'")
        names = [str(thread_id) for thread_id in thread_ids]

        def work(connection: apsw.Connection) -> None:
            for name in names:
                if strategy == "delete":
                    upkeep.delete_thread(connection, name)
                else:
                    upkeep.keep_latest(connection, name, self._delta_channels)

        self._change(names, work)

    def _delta_channels(self, row: CheckpointRow) -> set[str]:
        counters = self.serde.loads_typed(row.metadata).get(_DELTA_COUNTERS) or {}
        return set(counters) - row.channels.keys()

    def _change(self, thread_ids: Sequence[str], work: Callable[[apsw.Connection], None]) -> None:
        def guarded(connection: apsw.Connection) -> None:
            self._guard.require(Operation.DELETE, connection, thread_ids)
            work(connection)

        self._database.write(guarded)
        for thread_id in thread_ids:
            self._memos.forget(thread_id)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return the version after `current`; threads that began with text versions go on with them."""
        if isinstance(current, str):
            return f"{int(current.split('.')[0]) + 1:032}"
        return 1 if current is None else current + 1

    # -- async twins ----------------------------------------------------------

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See `get_tuple`."""
        return await run_sync(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name is the interface's
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See `list`; each page is one hop."""
        listing = Listing(config, filter, before, limit)
        while not listing.finished:
            for item in await run_sync(self._reader().page, listing):
                yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See `put`."""
        return await run_sync(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """See `put_writes`."""
        await run_sync(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """See `delete_thread`."""
        await run_sync(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See `delete_for_runs`."""
        await run_sync(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See `copy_thread`."""
        await run_sync(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """See `prune`."""
        await run_sync(self.prune, thread_ids, strategy=strategy)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, "DeltaChannelHistory"]:
        """See `get_delta_channel_history`."""
        return await run_sync(self.get_delta_channel_history, config=config, channels=channels)


def _split(checkpoint: Checkpoint, new_versions: ChannelVersions, parent: Channels) -> tuple[Channels, list[str]]:
    """Tell the channels whose stored value still holds from those to be serialised."""
    versions = checkpoint["channel_versions"]
    carried: Channels = {
        channel: (version, chunk)
        for channel, (version, chunk) in parent.items()
        if channel not in new_versions and channel in versions and versions[channel] == version
    }
    return carried, [channel for channel in checkpoint["channel_values"] if channel not in carried]


def _holds_ids(item: Draft) -> bool:
    return isinstance(item, ListDraft) and any(isinstance(entry, int) for entry in item.entries)
