"""What `MemoryService` works on: the library's own memories, or any backend of the seed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import apsw

from libctx_core.artifacts.values import ArtifactRef
from libctx_core.concurrency import run_sync
from libctx_core.errors import (
    CapabilityNotSupportedError,
    InferenceTimeoutError,
    InferenceUnavailableError,
    InvalidInputError,
    InvalidMemoryCitationError,
    MemoryBackendConfigurationError,
    RevisionConflictError,
)
from libctx_core.memory.backend import MemoryBackend, MemoryCommit
from libctx_core.memory.canonical import embedding_content_hash
from libctx_core.memory.commits import LoadedHead, build_commit
from libctx_core.memory.embedding import EmbeddingModel, check_vectors
from libctx_core.memory.fusion import fuse
from libctx_core.memory.plan import Delta, HeadView
from libctx_core.memory.search import MIN_POOL, MemoryQuery
from libctx_core.memory.search_values import (
    MemoryHit,
    MemoryProjection,
    MemorySearchRequest,
    MemoryUsedSearchMode,
)
from libctx_core.memory.sqlite import SQLiteMemoryBackend
from libctx_core.memory.values import Memory, MemoryCitation, MemoryEntryVersion
from libctx_core.search.analysis import analyse_question

Planner = Callable[[HeadView], Delta]
Joined = Callable[[apsw.Connection], None]


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A write that is decided and not yet stored.

    Attributes:
        artifact_id: Id of the memory.
        base: The revision it goes by; None for a new memory.
        delta: What it changes.
        commit: The complete commit, where the backend wants one.
    """

    artifact_id: str
    base: Memory | None
    delta: Delta
    commit: MemoryCommit | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, best first, and the channels that were used."""

    mode: MemoryUsedSearchMode
    hits: tuple[MemoryHit, ...]


class MemoryStore(Protocol):
    """Operations of the service that depend on the backend."""

    async def prepare(self, artifact_id: str, base: Memory | None, planner: Planner) -> MemoryPlan:
        """Plan a change against a base that must be the newest revision."""
        ...

    async def apply(self, plan: MemoryPlan, join: Joined | None) -> Memory:
        """Store a plan, if its base is still the newest revision."""
        ...

    async def revisions(self, newest: Memory) -> tuple[Memory, ...]:
        """Return all revisions up to the newest one, oldest first."""
        ...

    async def search(self, refs: tuple[ArtifactRef, ...], query: MemoryQuery, pool: int) -> Found:
        """Return up to `pool` hits of some heads."""
        ...

    async def cite(self, citation: MemoryCitation) -> MemoryEntryVersion:
        """Return the version a citation stands for."""
        ...


class LedgerStore:
    """The library's own memories: every operation costs what it changes.

    Args:
        backend: The memories.
    """

    def __init__(self, backend: SQLiteMemoryBackend) -> None:
        self._ledger = backend.ledger
        self._backend = backend

    async def prepare(self, artifact_id: str, base: Memory | None, planner: Planner) -> MemoryPlan:
        """Plan a change on one snapshot."""

        def run() -> MemoryPlan:
            with self._ledger.database.read() as connection:
                head = self._ledger.open_in(connection, base, artifact_id)
                return MemoryPlan(artifact_id, base, planner(head))

        return await run_sync(run)

    async def apply(self, plan: MemoryPlan, join: Joined | None) -> Memory:
        """Store a plan, and what is joined to it, in one transaction."""

        def run(connection: apsw.Connection) -> Memory:
            head = self._ledger.open_in(connection, plan.base, plan.artifact_id)
            memory = self._ledger.apply_in(connection, head, plan.delta)
            if join is not None:
                join(connection)
            return memory

        return await run_sync(self._ledger.database.write, run)

    async def revisions(self, newest: Memory) -> tuple[Memory, ...]:
        """Return all revisions; each loads its content when it is looked at."""
        return await run_sync(self._ledger.revisions, newest.artifact_id)

    async def search(self, refs: tuple[ArtifactRef, ...], query: MemoryQuery, pool: int) -> Found:
        """Return up to `pool` hits, from the library's one engine."""

        def run() -> Found:
            ranking = self._backend.searching.rank(self._backend.heads_of(refs), query, pool)
            return Found(ranking.mode, ranking.hits)

        return await run_sync(run)

    async def cite(self, citation: MemoryCitation) -> MemoryEntryVersion:
        """Return the version a citation stands for."""
        return await run_sync(self._ledger.cite, citation)


class BackendStore:
    """Any `MemoryBackend`: complete manifests are read and written.

    Args:
        backend: The backend.
        model: Makes vectors of entries and questions; None searches by words only.
    """

    def __init__(self, backend: MemoryBackend, model: EmbeddingModel | None) -> None:
        self._backend = backend
        self._model = model

    async def prepare(self, artifact_id: str, base: Memory | None, planner: Planner) -> MemoryPlan:
        """Plan a change against the complete head and build its commit."""
        entries: tuple[MemoryEntryVersion, ...] = ()
        if base is not None:
            latest = await self._backend.latest(artifact_id)
            if latest.revision != base.revision:
                raise RevisionConflictError(base, latest)
            entries = await self._backend.entries(base.as_ref())
        delta = planner(LoadedHead(artifact_id, base, entries))
        if not delta:
            return MemoryPlan(artifact_id, base, delta)
        bare = build_commit(artifact_id, base, delta)
        known = {version.entry_version_id: version for version in (*entries, *delta.versions.values())}
        active = [
            known[entry.entry_version_id] for entry in bare.memory.content.manifest.entries if entry.state == "active"
        ]
        projections = await self._project(base, active)
        return MemoryPlan(artifact_id, base, delta, bare.model_copy(update={"projections": projections}))

    async def _project(self, base: Memory | None, active: list[MemoryEntryVersion]) -> tuple[MemoryProjection, ...]:
        known: dict[str, MemoryProjection] = {}
        if base is not None:
            known = {p.entry_version.entry_version_id: p for p in await self._backend.projections(base.as_ref())}
        new = [version for version in active if version.entry_version_id not in known]
        if self._model is None or not new:
            made = [MemoryProjection(entry_version=version, searchable_text=version.text) for version in new]
        else:
            profile = self._model.profile
            result = await self._model.embed(tuple(version.text for version in new))
            made = [
                MemoryProjection(
                    entry_version=version,
                    searchable_text=version.text,
                    embedding=vector,
                    embedding_content_hash=embedding_content_hash(profile, version.entry_content_hash),
                )
                for version, vector in zip(new, check_vectors(profile, len(new), result.vectors), strict=True)
            ]
        known.update((projection.entry_version.entry_version_id, projection) for projection in made)
        return tuple(known[version.entry_version_id] for version in active)

    async def apply(self, plan: MemoryPlan, join: Joined | None) -> Memory:
        """Store the complete commit of a plan."""
        if plan.commit is None:
            raise InvalidMemoryCitationError("base-mismatch", "the plan was not made by this service")
        if join is not None:
            raise MemoryBackendConfigurationError("only the library's own memories share a transaction with a cursor")
        async with self._backend.begin() as unit:
            return await unit.commit(plan.commit)

    async def revisions(self, newest: Memory) -> tuple[Memory, ...]:
        """Return all revisions, loaded one by one."""
        refs = [newest.as_ref().model_copy(update={"revision": number}) for number in range(1, newest.revision)]
        return (*[await self._backend.get(ref) for ref in refs], newest)

    async def search(self, refs: tuple[ArtifactRef, ...], query: MemoryQuery, pool: int) -> Found:
        """Return up to `pool` hits, fused from the channels of the backend."""
        mode, vector = await self._mode(refs, query)
        terms = dict.fromkeys(term for word in analyse_question(query.text).words for term in word.terms)
        channels = await self._backend.search(
            MemorySearchRequest(
                query=query.text,
                analyzed_query=" ".join(terms),
                memories=refs,
                candidate_limit=max(4 * pool, MIN_POOL),
                mode=mode,
                query_vector=vector,
                embedding_profile=None if vector is None or self._model is None else self._model.profile,
            )
        )
        return Found(mode, fuse(channels, pool))

    async def _mode(
        self, refs: tuple[ArtifactRef, ...], query: MemoryQuery
    ) -> tuple[MemoryUsedSearchMode, tuple[float, ...] | None]:
        """Return the channels to use and the vector of the question."""
        if query.mode not in ("auto", "fts", "vector", "hybrid"):
            raise InvalidInputError("mode", "must be one of auto, fts, vector, hybrid")
        if query.mode == "fts":
            return "fts", None
        wanted: MemoryUsedSearchMode = "vector" if query.mode == "vector" else "hybrid"
        able = await self._backend.capabilities()
        complete = (
            self._model is not None
            and able.embedding_profile == self._model.profile
            and (able.hybrid if wanted == "hybrid" else able.vector)
            and await self._backend.vector_complete(refs, self._model.profile)
        )
        if self._model is None or not complete:
            if query.mode == "auto":
                return "fts", None
            raise CapabilityNotSupportedError(query.mode, "not every active entry has a vector of the profile")
        try:
            result = await self._model.embed((query.text,))
        except (InferenceUnavailableError, InferenceTimeoutError) as error:
            if query.mode == "auto":
                return "fts", None
            raise CapabilityNotSupportedError(query.mode, "the embedding model does not answer") from error
        return wanted, check_vectors(self._model.profile, 1, result.vectors)[0]

    async def cite(self, citation: MemoryCitation) -> MemoryEntryVersion:
        """Return the version a citation stands for, from the complete entries of its revision."""
        for version in await self._backend.entries(citation.memory_ref):
            if version.entry_id == citation.entry_id:
                if version.entry_version_id != citation.entry_version_id:
                    raise InvalidMemoryCitationError("entry-mismatch", "the revision holds another version")
                return version
        raise InvalidMemoryCitationError("entry-missing", "the revision does not hold the entry")
