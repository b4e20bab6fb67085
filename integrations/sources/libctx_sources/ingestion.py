"""Taking sources into a library: stored, cut into chunks, and searchable, in one transaction each."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import apsw

from libctx_core.errors import SourceError, SourceUnreadableError
from libctx_core.ports import Embedder
from libctx_core.search.index import SearchIndex
from libctx_core.sources import (
    AnySourceAdapter,
    AuthorityGuard,
    DirectSourceAdapter,
    Source,
    SourceEntry,
    SourceRef,
    SourceShelf,
    payload_of,
)
from libctx_core.store.database import Database
from libctx_core.store.owners import OwnerRow
from libctx_core.store.records import RecordInput, embedded_text, slot_range
from libctx_core.store.sources import other_versions, source_by_owner
from libctx_sources.adapters import ADAPTERS, default_adapters
from libctx_sources.chunking import CHUNK_CHARACTERS, chunks
from libctx_sources.material import Readable


class Ingested(NamedTuple):
    """What became of one input.

    Attributes:
        origin: Where the material was found.
        ref: The source it is now; None if it was refused.
        chunks: Chunks that are searchable; 0 if it was refused or known already.
        known: Whether the same material was taken in before.
        superseded: Older versions whose chunks were removed.
        error: Why it was refused.
    """

    origin: str
    ref: SourceRef | None = None
    chunks: int = 0
    known: bool = False
    superseded: int = 0
    error: SourceError | None = None


class Ingestion:
    """Takes material into one collection of a library.

    Args:
        database: The library.
        index: The write door of search.
        embedder: Turns chunks into vectors; None searches by words only.
        collection: The collection.
        guard: Decides what the active scope may do.
        adapters: Adapters besides those of this package.
        size: Characters of a chunk at most.
    """

    def __init__(
        self,
        database: Database,
        index: SearchIndex,
        embedder: Embedder | None,
        collection: str,
        *,
        guard: AuthorityGuard | None = None,
        adapters: Iterable[AnySourceAdapter] = (),
        size: int = CHUNK_CHARACTERS,
    ) -> None:
        self._database = database
        self._index = index
        self._embedder = embedder
        self._size = size
        known = (*default_adapters(), *adapters)
        self.shelf = SourceShelf(database, collection, known, guard=guard, on_delete=self._forget)

    @classmethod
    def into(cls, library: Any, collection: str | None = None, *, size: int = CHUNK_CHARACTERS) -> "Ingestion":
        """Return an ingestion into an open library, under its authority, with the adapters its plugins bring.

        Args:
            library: A `LibraryOfContext` or a view of one.
            collection: The collection; the library's own by default.
            size: Characters of a chunk at most.
        """
        plugins = library.plugins
        names = plugins.names("register_source_adapters")
        return cls(
            library.database,
            library.index,
            library.embedder,
            library.namespace if collection is None else collection,
            guard=AuthorityGuard(library.authority),
            adapters=[plugins.source_adapter(name) for name in names if name.rpartition(":")[2] not in ADAPTERS],
            size=size,
        )

    def _forget(self, connection: apsw.Connection, owner: OwnerRow) -> None:
        self._index.remove_owner(connection, owner.id)

    # -- taking in ------------------------------------------------------------

    def ingest(self, value: object) -> Ingested:
        """Store the source of a native value and make its chunks searchable.

        Everything is read, cut and embedded first; then the source and all of its chunks
        are stored in one transaction, and the chunks of older versions removed.

        Raises:
            SourceError: The material was refused; nothing was stored.
            ContextAccessDenied: The active scope may not create the source.
        """
        return self.ingest_source(self.shelf.resolve(value))

    def ingest_source(self, source: Source) -> Ingested:
        """Store a resolved source and make its chunks searchable; see `ingest`."""
        ref = self.shelf.router.as_ref(source)
        records = list(self._records(source, ref))
        vectors = None
        if self._embedder is not None and records:
            vectors = self._embedder.embed_documents([embedded_text(record) for record in records])
        profile = "" if self._embedder is None else self._embedder.profile_id
        payload = payload_of(source)

        def run(connection: apsw.Connection) -> tuple[SourceEntry, int, bool]:
            entry = self.shelf.add_in(connection, ref, source, payload)
            if _has_records(connection, entry.owner_id):
                return entry, 0, True
            self._index.add(connection, entry.owner_id, records, vectors, profile=profile)
            stored = source_by_owner(connection, entry.owner_id)
            old = [] if stored is None else other_versions(connection, stored)
            outdated = [owner for owner in old if _has_records(connection, owner)]
            for owner in outdated:
                self._index.remove_owner(connection, owner)
            return entry, len(outdated), False

        _, superseded, known = self._database.write(run)
        origin = getattr(source, "origin", source.name)
        return Ingested(origin, ref, 0 if known else len(records), known, superseded)

    def ingest_all(self, values: Iterable[object], *, origins: Iterable[str] = ()) -> Iterator[Ingested]:
        """Take in many values; one that is refused is reported and does not stop the others.

        Args:
            values: The values.
            origins: What to call them in reports, where they are refused.
        """
        names = iter(origins)
        for value in values:
            name = next(names, "")
            try:
                yield self.ingest(value)
            except SourceError as error:
                yield Ingested(getattr(error, "origin", name) or name, error=error)

    def _records(self, source: Source, ref: SourceRef) -> Iterator[RecordInput]:
        adapter = self.shelf.router.for_source(source)
        if not isinstance(adapter, Readable) or not isinstance(adapter, DirectSourceAdapter):
            return
        origin = getattr(source, "origin", source.name)
        seen: set[str] = set()
        for number, passage in enumerate(adapter.passages(source, adapter.load(source))):
            for chunk in chunks(passage, size=self._size):
                place = chunk.place if chunk.place not in seen else f"{number}:{chunk.place}"
                seen.add(place)
                yield RecordInput(
                    key=place,
                    kind="chunk",
                    text=chunk.text,
                    caption=passage.caption,
                    speaker=passage.speaker,
                    session=passage.session,
                    occurred_at=passage.occurred_at,
                    metadata=json.dumps(
                        {
                            "origin": origin,
                            "source_type": ref.source_type,
                            "source_id": ref.source_id,
                            "place": place,
                        },
                        ensure_ascii=False,
                        sort_keys=True,
                    ),
                )
        if not seen:
            raise SourceUnreadableError(origin, "holds no text to search")


def _has_records(connection: apsw.Connection, owner: int) -> bool:
    found = connection.execute("SELECT EXISTS (SELECT 1 FROM record WHERE slot BETWEEN ? AND ?)", slot_range(owner)).get
    return bool(found)
