"""`AsyncLibraryStore`: the store for programs that live on an event loop."""

from collections.abc import Iterable
from concurrent.futures import Future

from langchain_libctx.extras import extra
from langchain_libctx.opening import Opened
from langchain_libctx.store.store import LibraryStore
from libctx_core.concurrency import run_sync

with extra("langgraph", "the LangGraph store"):
    from langgraph.store.base import IndexConfig, Op, Result, TTLConfig
    from langgraph.store.base.batch import AsyncBatchedBaseStore


class AsyncLibraryStore(AsyncBatchedBaseStore):
    """A `LibraryStore` that merges the operations of one tick of the loop into one batch.

    Synchronous methods raise `asyncio.InvalidStateError` on the loop's own thread instead of
    blocking it. Create it while the loop runs, most easily by
    ``async with LibraryStore.from_conn_string(path) as store``.

    Args:
        store: The store that does the work; closed together with this one.
    """

    supports_ttl = True

    def __init__(self, store: LibraryStore) -> None:
        super().__init__()
        self._store = store
        self.index_config = store.index_config
        self.ttl_config = store.ttl_config
        self.embeddings = store.embeddings

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> "Opened[LibraryStore, AsyncLibraryStore]":
        """Open a store on a path, for ``async with``."""
        return LibraryStore.from_conn_string(conn_string, index=index, ttl=ttl)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """See `LibraryStore.abatch`."""
        return await self._store.abatch(ops)

    async def setup(self) -> None:
        """See `LibraryStore.setup`."""
        await run_sync(self._store.setup)

    async def sweep_ttl(self) -> int:
        """See `LibraryStore.sweep_ttl`."""
        return await run_sync(self._store.sweep_ttl)

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> "Future[None]":
        """See `LibraryStore.start_ttl_sweeper`."""
        return self._store.start_ttl_sweeper(sweep_interval_minutes)

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """See `LibraryStore.stop_ttl_sweeper`."""
        return await run_sync(self._store.stop_ttl_sweeper, timeout)

    def close(self) -> None:
        """Stop the sweeper, and close the file if the store opened it."""
        self._store.close()
