"""Bringing the search index in line with the heads of memories."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import apsw

from libctx_core.memory.decode import context_of
from libctx_core.memory.embedding import EmbeddingProfile, profile_of
from libctx_core.models import canonical_json
from libctx_core.ports import Embedder
from libctx_core.search.index import SearchIndex
from libctx_core.store import memory_pending as rows
from libctx_core.store.database import Database
from libctx_core.store.memory_pending import PendingRow
from libctx_core.store.records import RecordInput, embedded_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 256
"""Entries that are embedded and posted in one transaction."""


def record_of(row: PendingRow) -> RecordInput:
    """Return the search record of an entry; its key is the entry, its payload the version."""
    context = context_of(row.context)
    return RecordInput(
        key=row.entry_id,
        kind="entry",
        text=row.text or "",
        caption=context.caption,
        speaker=context.speaker,
        session=context.session,
        occurred_at=context.occurred_at,
        metadata=canonical_json(context.metadata) if context.metadata else None,
        payload=row.version_id,
    )


class MemoryIndexer:
    """Works off the outbox of memories.

    Args:
        database: The library.
        index: The write door of search.
        embedder: Turns texts into vectors; None searches by words only.

    Attributes:
        profile: What makes the vectors, or None without an embedder.
    """

    def __init__(self, database: Database, index: SearchIndex, embedder: Embedder | None = None) -> None:
        self._database = database
        self._index = index
        self._embedder = embedder
        self.profile: EmbeddingProfile | None = None if embedder is None else profile_of(embedder)

    def catch_up(self, owner: int, *, limit: int | None = None) -> int:
        """Bring the records of one memory in line; return how many entries were handled.

        Args:
            owner: Id of the memory's owner object.
            limit: Entries to handle at most; None means all.
        """
        handled = 0
        while limit is None or handled < limit:
            with self._database.read() as connection:
                waiting = rows.read_pending(connection, owner, BATCH if limit is None else min(BATCH, limit - handled))
            if not waiting:
                break
            handled += self._post(owner, waiting)
        return handled

    def catch_up_all(self, *, limit: int | None = None) -> int:
        """Bring the records of every memory in line; return how many entries were handled.

        Args:
            limit: Entries to handle at most; None means all.
        """
        with self._database.read() as connection:
            owners = rows.owners_with_pending(connection)
        handled = 0
        for owner in owners:
            handled += self.catch_up(owner, limit=None if limit is None else limit - handled)
        return handled

    def backlog(self) -> int:
        """Return how many entries of the library wait for the index."""
        with self._database.read() as connection:
            return rows.count_pending(connection)

    def rebuild(self, owner: int) -> int:
        """Make all records of one memory again; return how many there are."""

        def clear(connection: apsw.Connection) -> None:
            self._index.remove_owner(connection, owner)
            rows.queue_everything(connection, owner)

        self._database.write(clear, durable=False)
        return self.catch_up(owner)

    def drop_in(self, connection: apsw.Connection, entries: Sequence[int]) -> None:
        """Remove the records of some entries within the caller's write transaction."""
        self._index.remove(connection, rows.slots_of_entries(connection, entries))
        rows.settle(connection, [(None, entry) for entry in entries])

    def drop_owner_in(self, connection: apsw.Connection, owner: int) -> None:
        """Remove all records of a memory within the caller's write transaction."""
        self._index.remove_owner(connection, owner)

    def _post(self, owner: int, waiting: Sequence[PendingRow]) -> int:
        wanted = [row for row in waiting if row.active and row.text is not None]
        records = {row.entry: record_of(row) for row in wanted}
        vectors = self._embed([embedded_text(records[row.entry]) for row in wanted])
        place = {row.entry: at for at, row in enumerate(wanted)}
        profile = "" if self._embedder is None else self._embedder.profile_id

        def run(connection: apsw.Connection) -> int:
            current = [row for row in waiting if rows.still_pending(connection, row)]
            placed: list[tuple[int | None, int]] = []
            self._index.remove(
                connection, [row.slot for row in current if row.slot is not None and row.entry not in records]
            )
            placed += [(None, row.entry) for row in current if row.entry not in records]
            for row in current:
                if row.entry in records and row.slot is not None:
                    vector = None if vectors is None else vectors[place[row.entry]]
                    self._index.update(connection, row.slot, records[row.entry], vector, profile=profile)
                    placed.append((row.slot, row.entry))
            new = [row for row in current if row.entry in records and row.slot is None]
            if new:
                rows_wanted = [place[row.entry] for row in new]
                slots = self._index.add(
                    connection,
                    owner,
                    [records[row.entry] for row in new],
                    None if vectors is None else vectors[rows_wanted],
                    profile=profile,
                )
                placed += [(slot, row.entry) for slot, row in zip(slots, new, strict=True)]
            rows.settle(connection, placed)
            return len(placed)

        return self._database.write(run, durable=False)

    def _embed(self, texts: Sequence[str]) -> "NDArray[np.float32] | None":
        if self._embedder is None or not texts:
            return None
        return self._embedder.embed_documents(texts)
