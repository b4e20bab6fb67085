"""The seed's asynchronous backend over the stored memories of one collection."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import apsw

from libctx_core.artifacts.values import ArtifactRef
from libctx_core.concurrency import run_sync
from libctx_core.errors import (
    InvalidMemoryCitationError,
    MemoryBackendConfigurationError,
)
from libctx_core.errors.access import Operation
from libctx_core.memory.backend import MemoryCommit
from libctx_core.memory.canonical import embedding_content_hash, entry_content_hash
from libctx_core.memory.commits import check_commit
from libctx_core.memory.decode import version_of
from libctx_core.memory.embedding import EmbeddingModel, EmbeddingProfile, EmbeddingVector
from libctx_core.memory.indexing import MemoryIndexer
from libctx_core.memory.ledger import MemoryLedger
from libctx_core.memory.search import MemoryQuery, MemorySearch
from libctx_core.memory.search_values import (
    MemoryCapabilities,
    MemoryChannelHit,
    MemoryHit,
    MemoryMatchedBy,
    MemoryProjection,
    MemorySearchChannels,
    MemorySearchRequest,
)
from libctx_core.memory.values import Memory, MemoryCitation, MemoryEntryVersion, MemoryRevisionChanges
from libctx_core.store import memory as rows
from libctx_core.store.owners import MEMORY, OwnerRow, owners_of
from libctx_core.store.vectors import unpack_vectors, vector_state


class SQLiteMemoryBackend:
    """Memories of one collection as the seed's `MemoryBackend`.

    Each method is one thread hop onto the synchronous parts, which are public here.

    Args:
        ledger: The memories.
        indexer: Brings search in line with them.
        search: Finds entries.
    """

    def __init__(self, ledger: MemoryLedger, indexer: MemoryIndexer, search: MemorySearch) -> None:
        self.ledger = ledger
        self.indexer = indexer
        self.searching = search

    async def capabilities(self) -> MemoryCapabilities:
        """Return what can be searched as the library is set up."""
        return self.searching.capabilities()

    async def get(self, memory: ArtifactRef, /) -> Memory:
        """Return one exact revision."""
        return await run_sync(self.ledger.revision, memory)

    async def latest(self, artifact_id: str, /) -> Memory:
        """Return the newest revision of one memory."""
        return await run_sync(self.ledger.head, artifact_id)

    async def entries(self, memory: ArtifactRef, /) -> tuple[MemoryEntryVersion, ...]:
        """Return the entry versions of a revision's manifest; purged ones are empty."""
        return await run_sync(self.ledger.entries, memory)

    async def projections(self, memory: ArtifactRef, /) -> tuple[MemoryProjection, ...]:
        """Return what is searched of the active entries of a head."""
        return await run_sync(self._projections, memory)

    async def rebuild_projections(self, embedding_model: EmbeddingModel | None = None, /) -> None:
        """Make what is searched again from the revisions.

        Raises:
            MemoryBackendConfigurationError: The model is not the one the library embeds with.
        """
        self.check_model(embedding_model)
        await run_sync(self._rebuild)

    @asynccontextmanager
    async def begin(self) -> AsyncIterator["SQLiteUnitOfWork"]:
        """Open one atomic write; the transaction itself runs when it commits."""
        yield SQLiteUnitOfWork(self.ledger)

    async def changes(self, memory: ArtifactRef, since_revision: int | None, /) -> tuple[MemoryRevisionChanges, ...]:
        """Return what revisions changed, without the text of entries."""
        return await run_sync(self.ledger.changes, memory, since_revision)

    async def vector_complete(self, memories: tuple[ArtifactRef, ...], profile: EmbeddingProfile, /) -> bool:
        """Tell whether every active entry of some heads has a vector of a profile."""
        return await run_sync(self._vector_complete, memories, profile)

    async def search(self, request: MemorySearchRequest, /) -> MemorySearchChannels:
        """Return the ranking of each channel, best first."""
        return await run_sync(self._channels, request)

    async def expand(self, hits: tuple[MemoryHit, ...], /) -> tuple[MemoryEntryVersion, ...]:
        """Return the exact versions that hits stand for, in their order."""
        return await run_sync(self.expand_now, hits)

    # -- synchronous ----------------------------------------------------------

    def check_model(self, model: EmbeddingModel | None) -> None:
        """Refuse a model that is not the one the library embeds with.

        Raises:
            MemoryBackendConfigurationError: It is another one.
        """
        profile = self.indexer.profile
        if model is not None and (profile is None or model.profile.profile_id != profile.profile_id):
            raise MemoryBackendConfigurationError(
                "the library embeds with another profile; open it with ModelEmbedder(model) as its embedder"
            )

    def expand_now(self, hits: tuple[MemoryHit, ...]) -> tuple[MemoryEntryVersion, ...]:
        """Return the exact versions that hits stand for, each checked against what is stored.

        Raises:
            InvalidMemoryCitationError: A hit does not match its revision (``entry-missing``,
                ``entry-mismatch``), its text is another (``expand-anchor``), or what is
                stored does not have the hash it is stored under (``hash-mismatch``).
        """
        return tuple(self._expanded(hit) for hit in hits)

    def _expanded(self, hit: MemoryHit) -> MemoryEntryVersion:
        version = self.ledger.cite(
            MemoryCitation(memory_ref=hit.memory_ref, entry_id=hit.entry_id, entry_version_id=hit.entry_version_id)
        )
        if version.text != hit.text:
            raise InvalidMemoryCitationError("expand-anchor", "the text of the hit is not that of its version")
        digest = entry_content_hash(version.kind, version.text, version.sources, version.artifacts)
        if digest != version.entry_content_hash:
            raise InvalidMemoryCitationError("hash-mismatch", "the stored version does not have its hash")
        return version

    def heads_of(self, memories: tuple[ArtifactRef, ...]) -> list[OwnerRow]:
        """Return the owner objects of readable heads.

        Raises:
            ArtifactNotFoundError: One does not exist, or is not the newest revision.
            ContextAccessDenied: The active scope may not read one.
        """
        with self.ledger.database.read() as connection:
            return [self.ledger.locate(connection, ref, head=True) for ref in memories]

    def _projections(self, ref: ArtifactRef) -> tuple[MemoryProjection, ...]:
        profile = self.indexer.profile
        with self.ledger.database.read() as connection:
            owner = self.ledger.locate(connection, ref, head=True)
            found = []
            for row in rows.iterate_entries(connection, owner.id, active_only=True):
                version = version_of(rows.read_version(connection, row.version), ref.artifact_id)
                vector = _vector(connection, owner.id, row.slot)
                digest = None
                if vector is not None and profile is not None:
                    digest = embedding_content_hash(profile, version.entry_content_hash)
                found.append(
                    MemoryProjection(
                        entry_version=version,
                        searchable_text=version.text,
                        embedding=vector,
                        embedding_content_hash=digest,
                    )
                )
        found.sort(key=lambda projection: projection.entry_version.entry_id)
        return tuple(found)

    def _rebuild(self) -> None:
        with self.ledger.database.read() as connection:
            owners = owners_of(connection, MEMORY, self.ledger.collection)
        for owner in self.ledger.guard.permitted(Operation.WRITE, owners):
            self.indexer.rebuild(owner.id)

    def _vector_complete(self, memories: tuple[ArtifactRef, ...], profile: EmbeddingProfile) -> bool:
        owners = self.heads_of(memories)
        with self.ledger.database.read() as connection:
            for owner in owners:
                head, state = rows.read_head(connection, owner.id), vector_state(connection, owner.id)
                if head is None or head.active == 0:
                    continue
                if state is None or state.profile != profile.profile_id or state.count != head.active:
                    return False
        return True

    def _channels(self, request: MemorySearchRequest) -> MemorySearchChannels:
        owners = self.heads_of(request.memories)
        rank = self._rank_channel
        return MemorySearchChannels(
            fts=() if request.mode == "vector" else rank(owners, request, "fts"),
            vector=() if request.mode == "fts" else rank(owners, request, "vector"),
        )

    def _rank_channel(
        self, owners: list[OwnerRow], request: MemorySearchRequest, channel: MemoryMatchedBy
    ) -> tuple[MemoryChannelHit, ...]:
        query = MemoryQuery(text=request.query, limit=request.candidate_limit, mode=channel)
        return tuple(
            MemoryChannelHit(
                memory_ref=hit.memory_ref,
                entry_id=hit.entry_id,
                entry_version_id=hit.entry_version_id,
                text=hit.text,
            )
            for hit in self.searching.search(owners, query).hits
            if channel in hit.matched_by
        )


def _vector(connection: apsw.Connection, owner: int, slot: int | None) -> EmbeddingVector | None:
    state = None if slot is None else vector_state(connection, owner)
    data = None if state is None else connection.execute("SELECT data FROM vector WHERE slot = ?", (slot,)).get
    if data is None or state is None:
        return None
    return tuple(unpack_vectors([data], state.dimension)[0].tolist())


class SQLiteUnitOfWork:
    """One atomic write of a complete commit.

    Args:
        ledger: Where it is written.
    """

    def __init__(self, ledger: MemoryLedger) -> None:
        self._ledger = ledger
        self._used = False
        self._joined: list[Callable[[apsw.Connection], None]] = []

    def join(self, work: Callable[[apsw.Connection], None]) -> None:
        """Run `work` in the same transaction, after the revision is written."""
        self._joined.append(work)

    async def commit(self, commit: MemoryCommit, /) -> Memory:
        """Store a revision if its base is the newest one; works once.

        Raises:
            InvalidMemoryCitationError: Parts of the commit do not fit each other, or its
                base is not what is stored (``base-mismatch``).
            RevisionConflictError: The base is no longer the newest revision.
        """
        if self._used:
            raise InvalidMemoryCitationError("base-mismatch", "this unit of work has committed already")
        self._used = True
        return await run_sync(self._commit, commit)

    def _commit(self, commit: MemoryCommit) -> Memory:
        delta = check_commit(commit)
        if commit.base is not None and self._ledger.revision(commit.base.as_ref()) != commit.base:
            raise InvalidMemoryCitationError("base-mismatch", "the base differs from the stored revision")

        def run(connection: apsw.Connection) -> Memory:
            head = self._ledger.open_in(connection, commit.base, commit.memory.artifact_id)
            memory = self._ledger.apply_in(connection, head, delta)
            for work in self._joined:
                work(connection)
            return memory

        return self._ledger.database.write(run)
