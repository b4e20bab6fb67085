"""`LibraryStore`: LangGraph's long-term store in a library file."""

import time
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import apsw

from langchain_libctx.extras import extra
from langchain_libctx.guards import StoreGuard
from langchain_libctx.opening import DatabaseSource, Opened, open_database
from langchain_libctx.store.index import ItemIndex
from langchain_libctx.store.items import Clock, ItemTable, Namespace, StoredItem, does_match
from langchain_libctx.store.plan import Embedded, Plan, plan
from langchain_libctx.store.schema import STORE
from langchain_libctx.store.sweeper import Sweeper
from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.errors.access import Operation
from libctx_core.models import check_identifier

with extra("langgraph", "the LangGraph store"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        IndexConfig,
        Item,
        ListNamespacesOp,
        Op,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
    )

DEFAULT_NAME = "default"


class LibraryStore(BaseStore):
    """Key-value store with namespaces, filters, time to live and search by meaning.

    Namespaces are compared label by label, filters follow the one definition in
    `langchain_libctx.filters`, and a batch is one snapshot for its reads and one
    transaction for its writes: reads see the state before the batch.

    Args:
        library: An open `LibraryOfContext`, or a path that this object then owns.
        name: Name of the store within the library; several may share a file.
        index: LangGraph's `IndexConfig`, to search by meaning. ``distance_type`` may be
            ``"cosine"`` (default), ``"l2"`` or ``"inner_product"``.
        ttl: LangGraph's `TTLConfig`; times are minutes. Reading extends an item's time only
            where ``refresh_on_read`` is set, as in LangGraph's SQLite store.
        scope: Held for every call; the store is one resource to it.
        clock: Seconds since the epoch, for tests.
    """

    supports_ttl = True

    def __init__(
        self,
        library: DatabaseSource,
        *,
        name: str = DEFAULT_NAME,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        scope: Scope | None = None,
        clock: Clock = time.time,
    ) -> None:
        super().__init__()
        self.name = check_identifier("name", name)
        self.index_config = index
        self.ttl_config = ttl
        self._index = ItemIndex(index) if index is not None else None
        self.embeddings = self._index.embeddings if self._index is not None else None
        self._clock = clock
        self._file = open_database(library, scope)
        self._database = self._file.database
        self._guard = StoreGuard(self._file, self.name)
        self._database.ensure(STORE)
        self._sweeper = Sweeper(self.sweep_ttl, (ttl or {}).get("sweep_interval_minutes"))

    @classmethod
    def from_conn_string(
        cls, conn_string: str, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> "Opened[LibraryStore, Any]":
        """Open a store on a path: ``with`` gives a `LibraryStore`, ``async with`` an `AsyncLibraryStore`."""
        from langchain_libctx.store.aio import AsyncLibraryStore

        def build() -> LibraryStore:
            return cls(conn_string, index=index, ttl=ttl)

        async def abuild() -> AsyncLibraryStore:
            return AsyncLibraryStore(await run_sync(build))

        return Opened(build, abuild)

    def setup(self) -> None:
        """Create or upgrade the tables; opening did so already."""
        self._database.ensure(STORE)

    def close(self) -> None:
        """Stop the sweeper, and close the file if this object opened it."""
        self._sweeper.stop()
        self._file.close()

    # -- operations -----------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations and return their results in order.

        Raises:
            InvalidNamespaceError: A label is empty, no text, or holds a dot or NUL.
            InvalidFilterError: A filter cannot be meant.
            InvalidInputError: A value is not JSON.
            EmbeddingDimensionError: A vector does not have the index's dimensions.
            ContextAccessDenied: The scope does not permit an operation; nothing was done.
        """
        todo = plan(ops, self._index)
        embedded = Embedded()
        if self.embeddings is not None and self._index is not None:
            texts = todo.texts()
            embedded = Embedded(
                {query: self.embeddings.embed_query(query) for query in todo.queries(self._index)},
                dict(zip(texts, self._index.pack(self.embeddings.embed_documents(texts)), strict=True))
                if texts
                else {},
            )
        return self._run(todo, embedded)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations; embeddings are awaited, the file is touched in one thread hop."""
        todo = plan(ops, self._index)
        embedded = Embedded()
        if self.embeddings is not None and self._index is not None:
            texts = todo.texts()
            embedded = Embedded(
                {query: await self.embeddings.aembed_query(query) for query in todo.queries(self._index)},
                dict(zip(texts, self._index.pack(await self.embeddings.aembed_documents(texts)), strict=True))
                if texts
                else {},
            )
        return await run_sync(self._run, todo, embedded)

    def _run(self, todo: Plan, embedded: Embedded) -> list[Result]:
        results: list[Result] = [None] * todo.size
        stale: list[int] = []
        for operation in todo.operations():
            self._guard.require(operation)
        refreshing = bool((self.ttl_config or {}).get("refresh_on_read", False))
        if todo.reads:
            with self._database.read() as connection:
                table = self._table(connection)
                for position, op in todo.reads:
                    results[position], seen = self._read(table, op, embedded)
                    if refreshing and not isinstance(op, ListNamespacesOp) and op.refresh_ttl:
                        stale.extend(table.have_ttl(seen))
        if todo.writes or stale:
            self._database.write(lambda connection: self._write(connection, todo, embedded, stale))
        return results

    def _table(self, connection: apsw.Connection) -> ItemTable:
        omit = bool((self.ttl_config or {}).get("omit_expired", False))
        return ItemTable(connection, self.name, omit_expired=omit, clock=self._clock)

    def _read(
        self, table: ItemTable, op: GetOp | SearchOp | ListNamespacesOp, embedded: Embedded
    ) -> tuple[Result, list[int]]:
        """Return the result of a reading operation and the items it touched."""
        if isinstance(op, ListNamespacesOp):
            return self._list(table, op), []
        if isinstance(op, GetOp):
            found = table.get(tuple(op.namespace), op.key)
            return (None, []) if found is None else (Item(**found.fields()), [found.id])
        items, scores = self._search(table, op, embedded)
        return (
            [SearchItem(**item.fields(), score=score) for item, score in zip(items, scores, strict=True)],
            [item.id for item in items],
        )

    def _search(
        self, table: ItemTable, op: SearchOp, embedded: Embedded
    ) -> tuple[list[StoredItem], list[float | None]]:
        prefix, wanted = tuple(op.namespace_prefix), op.filter or {}
        if not op.query or self._index is None:
            items = table.search(prefix, wanted, op.limit, op.offset)
            return items, [None] * len(items)
        ranked = self._index.rank(embedded.queries[op.query], *table.candidates(prefix, wanted))
        page = ranked[op.offset : op.offset + max(op.limit, 0)]
        return table.by_ids([item for item, _ in page]), [score for _, score in page]

    def _list(self, table: ItemTable, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        plain = [tuple(c.path) for c in conditions if c.match_type == "prefix" and "*" not in c.path]
        found = [
            namespace
            for namespace in table.namespaces(max(plain, key=len, default=()))
            if all(does_match(namespace, c.match_type, c.path) for c in conditions)
        ]
        if op.max_depth is not None:
            found = list(dict.fromkeys(namespace[: op.max_depth] for namespace in found))
        return found[op.offset : op.offset + op.limit]

    def _write(self, connection: apsw.Connection, todo: Plan, embedded: Embedded, stale: list[int]) -> None:
        table = self._table(connection)
        for (namespace, key), write in todo.writes.items():
            if write.value is None:
                table.delete(tuple(namespace), key)
            else:
                table.put(tuple(namespace), key, write.value, ttl=write.op.ttl, vectors=embedded.vectors(write))
        table.refresh(stale)

    # -- time to live ---------------------------------------------------------

    def sweep_ttl(self) -> int:
        """Delete expired items now and return how many there were."""
        self._guard.require(Operation.DELETE)
        return self._database.write(lambda connection: self._table(connection).sweep())

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> "Future[None]":
        """Sweep in the background until `stop_ttl_sweeper` or `close`.

        Args:
            sweep_interval_minutes: Time between sweeps; by default the configured one, or 5.

        Returns:
            A future that is done when the sweeper has stopped.
        """
        return self._sweeper.start(sweep_interval_minutes)

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Stop sweeping; False if a running sweep did not end within `timeout` seconds."""
        return self._sweeper.stop(timeout)
