"""A vector collection: items with text, vector and metadata, stored and found as one.

The engine under every vector store and document store of the adapters. Many collections
share a file; each is an owner object, so it can be enrolled, scoped and deleted as one.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, Unpack

import apsw

from libctx_core.concurrency import run_sync
from libctx_core.errors import InvalidInputError
from libctx_core.errors.access import Operation
from libctx_core.models import check_identifier
from libctx_core.search.collection_guard import Guard, OpenGuard
from libctx_core.search.collection_items import (
    CollectionHit,
    CollectionItem,
    PreparedItem,
    dimension_of,
    prepare_items,
    with_and_without_vectors,
)
from libctx_core.search.collection_query import (
    CollectionQuery,
    QueryOptions,
    answer,
    permitted_slots,
    read_items,
)
from libctx_core.search.filters import Filter, prune
from libctx_core.search.filters_sql import matching
from libctx_core.search.index import SearchIndex
from libctx_core.search.neighbours import VectorSearch
from libctx_core.search.slots import SlotSet, slot_array
from libctx_core.search.vectors import VectorIndex
from libctx_core.store.database import Database
from libctx_core.store.index import read_state
from libctx_core.store.owners import VECTOR_COLLECTION, OwnerRow, create_owner, find_owner
from libctx_core.store.records import count_records, slots_of_keys, slots_of_refs
from libctx_core.store.vectors import check_profile, fix_profile, vector_state

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from libctx_core.search.searcher import Searcher

DEFAULT_COLLECTION = "default"
WORDS_AT_ONCE = 500
"""Records whose words are indexed in one transaction: about 150 ms of the write lock."""

Also: TypeAlias = Callable[[apsw.Connection], object]
"""Further statements for a transaction that changes a collection."""


class VectorCollection:
    """One named collection in a library file; safe to share between threads and processes.

    Args:
        database: The library file.
        name: Name of the collection among the vector collections of `collection`.
        collection: Namespace it lives in.
        profile: Identity of the embedder; compared with the stored one on every use. None
            leaves it unchecked.
        dimension: Length of the vectors; None lets the first one fix it.
        index: Vector index to search with; share one per file.
        guard: Authority that is asked before anything is touched.
        user: User it belongs to.
    """

    def __init__(
        self,
        database: Database,
        name: str,
        *,
        collection: str = DEFAULT_COLLECTION,
        profile: str | None = None,
        dimension: int | None = None,
        index: VectorSearch | None = None,
        guard: Guard | None = None,
        user: str | None = None,
    ) -> None:
        self.name = check_identifier("name", name)
        self.collection = check_identifier("collection", collection)
        self.profile = profile
        self.dimension = dimension
        self._database = database
        self._index: VectorSearch = index or VectorIndex()
        self._searcher: Searcher | None = None
        self._guard: Guard = guard or OpenGuard()
        self._user = user
        self._records = SearchIndex(database)

    # -- writing --------------------------------------------------------------

    def upsert(
        self, items: Sequence[CollectionItem], *, replacing: Sequence[str] = (), also: Also | None = None
    ) -> list[str]:
        """Store items in one transaction, replacing those whose key exists; return their keys in order.

        Args:
            items: What to store.
            replacing: Documents whose items go first.
            also: Further statements for the same transaction.

        Raises:
            ContextAccessDenied: WRITE, or CREATE for a new collection, is not allowed; with
                `replacing`, DELETE too.
            EmbeddingDimensionError: A vector has another length than the collection's.
            EmbeddingProfileError: The collection was filled with another embedder.
            InvalidInputError: A key, text, vector or metadata cannot be stored.
        """
        prepared = prepare_items(items)
        dimension = dimension_of(prepared, self.dimension)

        def work(connection: apsw.Connection) -> None:
            row = self._row(connection)
            if row is not None:
                self._guard.require(Operation.WRITE, row)
            if row is not None and replacing:
                self._guard.require(Operation.DELETE, row)
                self._records.remove(connection, slots_of_refs(connection, row.id, replacing))
            if prepared:
                self._store(connection, self._create(connection) if row is None else row.id, prepared, dimension)
            if also is not None:
                also(connection)

        if prepared or replacing or also is not None:
            self._database.write(work)
        return [item.key for item in items]

    def _store(
        self, connection: apsw.Connection, owner: int, prepared: list[PreparedItem], dimension: int | None
    ) -> None:
        if dimension is not None:
            fix_profile(connection, owner, self.profile, dimension)
        old = slots_of_keys(connection, owner, [item.record.key for item in prepared])
        self._records.remove(connection, list(old.values()))
        for batch, vectors in with_and_without_vectors(prepared):
            self._records.add_pending(connection, owner, batch, vectors, profile=self.profile or "")

    def _create(self, connection: apsw.Connection) -> int:
        enrolled = self._guard.require(Operation.CREATE, None)
        return create_owner(
            connection,
            VECTOR_COLLECTION,
            self.collection,
            self.name,
            user=self._user,
            resource_id=None if enrolled is None else enrolled.resource_id,
            boundary_id=None if enrolled is None else enrolled.boundary_id,
        ).id

    def delete(
        self,
        keys: Sequence[str] | None = None,
        *,
        where: Filter | None = None,
        refs: Sequence[str] | None = None,
        also: Also | None = None,
    ) -> int:
        """Delete what meets every given condition; return how many items that were.

        Args:
            keys: Only items with these keys.
            where: Only items that pass this filter.
            refs: Only items cut from these documents.
            also: Further statements for the same transaction.

        Raises:
            InvalidInputError: No condition is given; `clear` removes everything.
            ContextAccessDenied: DELETE is not allowed.
        """
        where = prune(where)
        if keys is None and where is None and refs is None:
            raise InvalidInputError("delete", "name keys, documents or a filter; clear() removes everything")

        def work(connection: apsw.Connection) -> int:
            row = self._row(connection)
            self._guard.require(Operation.DELETE, row)
            if also is not None:
                also(connection)
            if row is None:
                return 0
            permitted = permitted_slots(connection, row.id, keys, where, refs)
            assert permitted is not None, "one condition is given"
            slots = [int(slot) for slot in permitted.resolve(connection, row.id)]
            return self._records.remove(connection, slots)

        return self._database.write(work)

    def clear(self, *, also: Also | None = None) -> None:
        """Delete every item; the next one may come from another embedder.

        Args:
            also: Further statements for the same transaction.

        Raises:
            ContextAccessDenied: DELETE is not allowed.
        """

        def work(connection: apsw.Connection) -> None:
            row = self._row(connection)
            self._guard.require(Operation.DELETE, row)
            if also is not None:
                also(connection)
            if row is not None:
                self._records.remove_owner(connection, row.id)

        self._database.write(work)

    # -- reading --------------------------------------------------------------

    def get(
        self,
        keys: Sequence[str] | None = None,
        *,
        where: Filter | None = None,
        refs: Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        with_vectors: bool = False,
    ) -> list[CollectionItem]:
        """Return copies of the items that meet every given condition, by order of last write.

        An empty list of keys or documents meets nothing; without conditions all items are
        returned. Unknown keys are left out.

        Raises:
            ContextAccessDenied: READ is not allowed.
        """
        with self._database.read() as connection:
            owner = self._readable(connection)
            if owner is None:
                return []
            permitted = permitted_slots(connection, owner, keys, where, refs) or SlotSet(slot_array(()), negated=True)
            slots = permitted.resolve(connection, owner)[offset : None if limit is None else offset + limit]
            found = read_items(connection, owner, slots, with_vectors=with_vectors)
        return [found[int(slot)] for slot in slots]

    def stored_profile(self) -> str | None:
        """Return the profile of the stored vectors, None where it is not known.

        Raises:
            ContextAccessDenied: READ is not allowed.
        """
        with self._database.read() as connection:
            owner = self._readable(connection)
            state = None if owner is None else vector_state(connection, owner)
        return (state.profile or None) if state is not None else None

    def count(self, where: Filter | None = None) -> int:
        """Return how many items pass a filter, or how many there are.

        Raises:
            ContextAccessDenied: READ is not allowed.
        """
        with self._database.read() as connection:
            owner = self._readable(connection)
            if owner is None:
                return 0
            found = matching(connection, owner, where)
            return count_records(connection, owner) - len(found.slots) if found.negated else len(found.slots)

    def query(
        self,
        vector: "Sequence[float] | NDArray[np.float32] | None" = None,
        text: str | None = None,
        k: int = 4,
        **options: Unpack[QueryOptions],
    ) -> list[CollectionHit]:
        """Return the `k` best items among exactly those that meet every given condition.

        The arguments are the attributes of `CollectionQuery`. Words are indexed when they
        are first asked for.

        Raises:
            ContextAccessDenied: READ is not allowed.
            EmbeddingDimensionError: The vector has another length than the collection's.
            EmbeddingProfileError: The collection was filled with another embedder.
            InvalidInputError: The mode lacks what it needs.
        """
        query = CollectionQuery(vector=vector, text=text, k=k, **options)
        if query.uses_words:
            self._index_words()
        with self._database.read() as connection:
            owner = self._readable(connection)
            if owner is None:
                return []
            check_profile(vector_state(connection, owner), self.profile if query.uses_vector else None, None)
            hits = answer(connection, owner, query, self._index, self._words)
        self._index.save_codes(self._database, owner)
        return hits

    def _words(self) -> "Searcher":
        if self._searcher is None:
            from libctx_core.search.searcher import Searcher

            self._searcher = Searcher(self._database, vectors=self._index)
        return self._searcher

    def _index_words(self) -> None:
        """Post the words of what was stored since the last text query, in short transactions."""
        with self._database.read() as connection:
            owner = self._readable(connection)
            state = None if owner is None else read_state(connection, owner)
        if owner is None or state is None or state.positions == state.posted or self._database.read_only:
            return

        def work(connection: apsw.Connection) -> int:
            return self._records.catch_up(connection, owner, limit=WORDS_AT_ONCE)

        while self._database.write(work, durable=False):
            pass

    def _row(self, connection: apsw.Connection) -> OwnerRow | None:
        return find_owner(connection, VECTOR_COLLECTION, self.collection, self.name)

    def _readable(self, connection: apsw.Connection) -> int | None:
        """Return the collection's id once reading it is allowed, None where it does not exist."""
        row = self._row(connection)
        self._guard.require(Operation.READ, row)
        return None if row is None else row.id

    # -- async twins ----------------------------------------------------------

    async def aupsert(self, items: Sequence[CollectionItem]) -> list[str]:
        """Async twin of `upsert`."""
        return await run_sync(self.upsert, items)

    async def adelete(
        self,
        keys: Sequence[str] | None = None,
        *,
        where: Filter | None = None,
        refs: Sequence[str] | None = None,
    ) -> int:
        """Async twin of `delete`."""
        return await run_sync(self.delete, keys, where=where, refs=refs)

    async def aclear(self) -> None:
        """Async twin of `clear`."""
        await run_sync(self.clear)

    async def aget(
        self,
        keys: Sequence[str] | None = None,
        *,
        where: Filter | None = None,
        refs: Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        with_vectors: bool = False,
    ) -> list[CollectionItem]:
        """Async twin of `get`."""
        return await run_sync(
            self.get, keys, where=where, refs=refs, limit=limit, offset=offset, with_vectors=with_vectors
        )

    async def acount(self, where: Filter | None = None) -> int:
        """Async twin of `count`."""
        return await run_sync(self.count, where)

    async def aquery(
        self,
        vector: "Sequence[float] | NDArray[np.float32] | None" = None,
        text: str | None = None,
        k: int = 4,
        **options: Unpack[QueryOptions],
    ) -> list[CollectionHit]:
        """Async twin of `query`."""
        return await run_sync(self.query, vector, text, k, **options)
