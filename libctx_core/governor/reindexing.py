"""Embedding and indexing a library again: with another embedder, or after the analysis of text changed."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import apsw

from libctx_core.governor.indexer import checked_rows
from libctx_core.governor.runtime import Runtime
from libctx_core.memory.indexing import MemoryIndexer
from libctx_core.search.analysis import ANALYSIS_VERSION
from libctx_core.store.index import IndexState, drop_index, read_clock, read_state, write_state
from libctx_core.store.index_records import RecordRow, read_record, read_records
from libctx_core.store.owners import MEMORY, VECTOR_COLLECTION
from libctx_core.store.records import embedded_text, owner_and_position
from libctx_core.store.vectors import clear_vectors, fix_profile, pack_vectors, put_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 256
"""Records that are embedded and written in one transaction, so that others can write in between."""

Progress = Callable[[int, int], None]
T = TypeVar("T")


class Reindexing:
    """Makes what is derived anew, owner by owner; the library stays in use meanwhile.

    Until an owner is done, its words and vectors are found as far as they are made. If the
    process is killed, running it again completes the work.

    Args:
        runtime: The library's shared parts.
        progress: Called with records done and records in all.
    """

    def __init__(self, runtime: Runtime, progress: Progress | None = None) -> None:
        self._runtime = runtime
        self._progress = progress
        self._done = 0
        self._total = 0

    def run(self) -> int:
        """Reindex every owner object and return the number of records."""
        with self._runtime.database.read() as connection:
            owners = connection.execute("SELECT id, kind FROM owner ORDER BY id").fetchall()
            self._total = int(connection.execute("SELECT count(*) FROM record").get)
        for owner, kind in owners:
            if kind == MEMORY:
                runtime = self._runtime
                self._advance(MemoryIndexer(runtime.database, runtime.index, runtime.embedder).rebuild(owner))
            else:
                # vectors of a collection were made by its own embedder and cannot be made here
                self._owner(owner, embed=self._runtime.embedder is not None and kind != VECTOR_COLLECTION)
        return self._done

    def _owner(self, owner: int, *, embed: bool) -> None:
        if not self._write(lambda connection: _clear(connection, owner, vectors=embed)):
            return
        start = 0
        while True:
            with self._runtime.database.read() as connection:
                page = list(read_records(connection, owner, start, BATCH))
            if page and embed:
                self._embed(owner, page)
            waiting = self._write(lambda connection: self._runtime.index.catch_up(connection, owner, limit=BATCH))
            self._advance(len(page))
            if len(page) < BATCH:
                break
            start = owner_and_position(page[-1].slot)[1] + 1
        while waiting:
            waiting = self._write(lambda connection: self._runtime.index.catch_up(connection, owner, limit=BATCH))

    def _embed(self, owner: int, page: Sequence[RecordRow]) -> None:
        embedder = self._runtime.embedder
        if embedder is None:
            return
        texts = [embedded_text(row.record) for row in page]
        vectors = checked_rows(embedder.embed_documents(texts), len(page))

        def store(connection: apsw.Connection) -> None:
            fix_profile(connection, owner, embedder.profile_id, int(vectors.shape[1]))
            put_vectors(connection, owner, _unchanged(connection, page, vectors))

        self._write(store)

    def _write(self, work: Callable[[apsw.Connection], T]) -> T:
        return self._runtime.database.write(work, durable=False)

    def _advance(self, count: int) -> None:
        self._done += count
        if self._progress is not None:
            self._progress(self._done, max(self._total, self._done))


def _clear(connection: apsw.Connection, owner: int, *, vectors: bool) -> bool:
    """Drop an owner's postings, and its vectors if asked; its positions stay taken. False if it never had a record."""
    before = read_state(connection, owner)
    if before.positions == 0:
        return False
    if vectors:
        clear_vectors(connection, owner)
    drop_index(connection, owner)
    write_state(
        connection,
        IndexState(owner, positions=before.positions, revision=read_clock(connection) + 1, analysis=ANALYSIS_VERSION),
    )
    return True


def _unchanged(
    connection: apsw.Connection, page: Sequence[RecordRow], vectors: "NDArray[np.float32]"
) -> list[tuple[int, bytes]]:
    """Return the vectors of records that are still what was embedded."""
    packed = pack_vectors(list(vectors))
    return [
        (row.slot, data)
        for row, data in zip(page, packed, strict=True)
        if (current := read_record(connection, row.slot)) is not None and current.record == row.record
    ]
