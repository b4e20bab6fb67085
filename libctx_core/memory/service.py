"""`MemoryService`: the seed's asynchronous operations on memories."""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from libctx_core.artifacts.values import AnyArtifact, ArtifactRef
from libctx_core.errors import (
    ArtifactNotFoundError,
    CapabilityNotSupportedError,
    InvalidInputError,
    InvalidMemoryCandidateError,
    InvalidMemoryCitationError,
    RevisionConflictError,
)
from libctx_core.memory.backend import MemoryBackend
from libctx_core.memory.canonical import entry_content_hash
from libctx_core.memory.embedding import EmbeddingModel
from libctx_core.memory.evidence import (
    ArtifactResolver,
    DefaultMemoryEvidenceProjector,
    Evidence,
    EvidenceResolver,
    MemoryEvidenceProjector,
    SourceResolver,
)
from libctx_core.memory.extraction import CandidatePipeline, MemoryCandidateRequest
from libctx_core.memory.ledger import default_id
from libctx_core.memory.plan import IdFactory, OrganizeMode, plan_entries, plan_organize, plan_states
from libctx_core.memory.rerank import DEFAULT_RERANK_POOL, MAX_RERANK_POOL, MemoryReranker, reranked
from libctx_core.memory.search import MemoryQuery
from libctx_core.memory.search_values import MemoryCapabilities, MemoryHit, MemorySearchMode, MemorySearchResult
from libctx_core.memory.sqlite import SQLiteMemoryBackend
from libctx_core.memory.stores import BackendStore, Joined, LedgerStore, MemoryPlan, MemoryStore
from libctx_core.memory.values import (
    Memory,
    MemoryCitation,
    MemoryEntryInput,
    MemoryEntryVersion,
    MemoryRevisionChanges,
)
from libctx_core.models import canonical_json
from libctx_core.sources.values import Source

RememberMode: TypeAlias = Literal["auto", "append", "extract"]

MAX_RELEVANT_ENTRIES = 64
"""Current entries that are looked up for an extraction; the pipeline's budget may take fewer."""


class MemoryService:
    """Writes, reads and searches memories, object in and object out.

    Over `SQLiteMemoryBackend` every operation costs what it changes; over any other
    backend complete manifests are read and written.

    Args:
        backend: Where memories are kept.
        candidate_pipeline: Draws entries from evidence.
        embedding_model: Makes vectors; over the library's own memories it must be the one
            the library embeds with.
        reranker: Chooses among the best candidates of a search.
        rerank_candidate_limit: Candidates it is shown, 1 to 100.
        source_resolver: Finds sources that are given as evidence.
        artifact_resolver: Finds artifacts that are given as evidence.
        id_factory: Makes ids; it is given ``memory``, ``entry`` or ``version``.

    Raises:
        MemoryBackendConfigurationError: The embedding model does not fit the backend.
    """

    def __init__(
        self,
        *,
        backend: MemoryBackend,
        candidate_pipeline: CandidatePipeline | None = None,
        embedding_model: EmbeddingModel | None = None,
        reranker: MemoryReranker | None = None,
        rerank_candidate_limit: int = DEFAULT_RERANK_POOL,
        source_resolver: SourceResolver | None = None,
        artifact_resolver: ArtifactResolver | None = None,
        id_factory: IdFactory | None = None,
    ) -> None:
        if not 1 <= rerank_candidate_limit <= MAX_RERANK_POOL:
            raise InvalidInputError("rerank_candidate_limit", f"must be 1 to {MAX_RERANK_POOL}")
        self._backend = backend
        self._store: MemoryStore
        if isinstance(backend, SQLiteMemoryBackend):
            backend.check_model(embedding_model)
            self._store = LedgerStore(backend)
        else:
            self._store = BackendStore(backend, embedding_model)
        self._pipeline = candidate_pipeline
        self._reranker = reranker
        self._rerank_pool = rerank_candidate_limit
        self._evidence = EvidenceResolver(source_resolver, artifact_resolver)
        self._ids: IdFactory = id_factory or default_id

    # -- reading --------------------------------------------------------------

    async def capabilities(self) -> MemoryCapabilities:
        """Return what can be searched as the backend is set up."""
        return await self._backend.capabilities()

    async def get(self, memory: Memory, /) -> Memory:
        """Return the stored revision that equals `memory`.

        Raises:
            InvalidMemoryCitationError: It differs from what is stored (``memory-mismatch``).
        """
        return await self._verified(memory, "memory-mismatch")

    async def latest(self, memory: Memory, /) -> Memory:
        """Return the newest revision of a memory."""
        await self.get(memory)
        return await self.head(memory.artifact_id)

    async def head(self, artifact_id: str, /) -> Memory:
        """Return the newest revision of the memory with this id."""
        return await self._backend.latest(artifact_id)

    async def revision(self, ref: ArtifactRef, /) -> Memory:
        """Return one exact revision."""
        return await self._backend.get(ref)

    async def revisions(self, memory: Memory, /) -> tuple[Memory, ...]:
        """Return all revisions of a memory, oldest first."""
        return await self._store.revisions(await self.latest(memory))

    async def entries(self, memory: Memory, /) -> tuple[MemoryEntryVersion, ...]:
        """Return the entry versions of a revision, forgotten ones included, by entry id."""
        return await self._backend.entries((await self.get(memory)).as_ref())

    async def changes(
        self, memory: Memory, /, *, since_revision: int | None = None
    ) -> tuple[MemoryRevisionChanges, ...]:
        """Return what revisions changed.

        Args:
            memory: The revision to end at.
            since_revision: Revision to start behind; None returns the changes of `memory` alone.
        """
        if since_revision is not None and not 0 <= since_revision <= memory.revision:
            raise InvalidInputError("since_revision", f"must be 0 to {memory.revision}, the revision asked about")
        return await self._backend.changes((await self.get(memory)).as_ref(), since_revision)

    async def validate_citation(self, citation: MemoryCitation, /) -> MemoryEntryVersion:
        """Return the exact version a citation stands for; older revisions are fine.

        Raises:
            InvalidMemoryCitationError: The revision does not hold it (``entry-missing``,
                ``entry-mismatch``), or its hash is wrong (``hash-mismatch``).
        """
        version = await self._store.cite(citation)
        digest = entry_content_hash(version.kind, version.text, version.sources, version.artifacts)
        if digest != version.entry_content_hash:
            raise InvalidMemoryCitationError("hash-mismatch", "the stored version does not have its hash")
        return version

    async def expand(self, hits: Iterable[MemoryHit], /, *, layer: str = "full") -> tuple[MemoryEntryVersion, ...]:
        """Return the exact versions that hits stand for, in their order.

        Raises:
            CapabilityNotSupportedError: The layer is not ``full``.
            InvalidMemoryCitationError: A hit does not match what is stored
                (``expand-anchor``, ``expand-count``, ``hash-mismatch``, ``entry-missing``,
                ``entry-mismatch``).
        """
        if layer != "full":
            raise CapabilityNotSupportedError("layer", "only full entries are kept")
        wanted = tuple(hits)
        versions = await self._backend.expand(wanted)
        if len(versions) != len(wanted):
            raise InvalidMemoryCitationError("expand-count", "the backend returned more or fewer versions than hits")
        for hit, version in zip(wanted, versions, strict=True):
            if (hit.entry_id, hit.entry_version_id, hit.text) != (
                version.entry_id,
                version.entry_version_id,
                version.text,
            ):
                raise InvalidMemoryCitationError("expand-anchor", "a version is not the one its hit is anchored to")
        return versions

    # -- writing --------------------------------------------------------------

    async def remember(
        self,
        *,
        memory: Memory | None,
        sources: Sequence[Source] = (),
        artifacts: Sequence[AnyArtifact] = (),
        entries: Sequence[MemoryEntryInput] = (),
        mode: RememberMode = "auto",
    ) -> Memory | None:
        """Add and revise entries, given or drawn from evidence.

        Args:
            memory: The newest revision; None starts a memory if there is something to write.
            sources: Evidence of the operation.
            artifacts: Evidence of the operation.
            entries: What is to be added or revised; its evidence lies within that of the
                operation.
            mode: ``append`` writes entries, ``extract`` lets the pipeline propose them,
                ``auto`` appends if entries are given and extracts otherwise.

        Returns:
            The new revision; `memory` itself if nothing changed.
        """
        plan = await self.plan_remember(memory=memory, sources=sources, artifacts=artifacts, entries=entries, mode=mode)
        return memory if plan is None else await self.apply(plan)

    async def plan_remember(
        self,
        *,
        memory: Memory | None,
        sources: Sequence[Source] = (),
        artifacts: Sequence[AnyArtifact] = (),
        entries: Sequence[MemoryEntryInput] = (),
        mode: RememberMode = "auto",
    ) -> MemoryPlan | None:
        """Decide what `remember` would write, without writing; None for nothing.

        Takes and raises what `remember` does.

        Raises:
            InvalidMemoryCandidateError: The mode does not fit what is given (``remember-mode``).
            CapabilityNotSupportedError: There is no pipeline to extract with.
            RevisionConflictError: `memory` is no longer the newest revision.
            InvalidMemoryCitationError: `memory` differs from what is stored (``base-mismatch``).
        """
        has_evidence = bool(sources or artifacts)
        extract = _wants_extraction(mode, has_entries=bool(entries), has_evidence=has_evidence)
        if extract and self._pipeline is None:
            raise CapabilityNotSupportedError("extract", "the service has no candidate pipeline")
        base = None if memory is None else await self._base(memory)
        evidence = await self._evidence.resolve(sources, artifacts)
        proposed = await self._extract(base, evidence) if extract else tuple(entries)
        proposals = [self._evidence.propose(entry, evidence.lineage) for entry in proposed]
        artifact_id = self._ids("memory") if base is None else base.artifact_id
        plan = await self._store.prepare(
            artifact_id, base, lambda view: plan_entries(view, proposals, self._ids, evidence.lineage)
        )
        return plan if plan.delta else None

    async def apply(self, plan: MemoryPlan, /, *, join: Joined | None = None) -> Memory:
        """Store a plan.

        Args:
            plan: What `plan_remember` returned.
            join: Runs in the same transaction, on the library's own memories: a cursor
                moves together with what it stands for.

        Raises:
            RevisionConflictError: The memory has moved on since; nothing was written.
        """
        return await self._store.apply(plan, join)

    async def forget(
        self, memory: Memory, /, *, entries: Sequence[MemoryEntryVersion | str], reason: str | None = None
    ) -> Memory:
        """Deactivate entries; those inactive already are left alone."""
        return await self._flip(memory, entries, active=False, reason=reason)

    async def reactivate(
        self, memory: Memory, /, *, entries: Sequence[MemoryEntryVersion | str], reason: str | None = None
    ) -> Memory:
        """Make forgotten entries count again; those active already are left alone."""
        return await self._flip(memory, entries, active=True, reason=reason)

    async def organize(self, memory: Memory, /, *, mode: OrganizeMode = "default") -> Memory:
        """Deactivate exact duplicates (``dedupe``), rewrite what is not canonical (``normalize``), or both."""
        base = await self._base(memory)
        plan = await self._store.prepare(base.artifact_id, base, lambda view: plan_organize(view, self._ids, mode=mode))
        return await self.apply(plan) if plan.delta else memory

    async def rebuild_projections(self, embedding_model: EmbeddingModel | None = None, /) -> None:
        """Make what is searched again from the revisions."""
        await self._backend.rebuild_projections(embedding_model)

    # -- searching ------------------------------------------------------------

    async def search(
        self, query: str, /, *, memories: Sequence[Memory], limit: int = 10, mode: MemorySearchMode = "auto"
    ) -> MemorySearchResult:
        """Return the entries of some heads that answer a question, best first.

        Args:
            query: The question; any string.
            memories: Newest revisions.
            limit: Hits wanted.
            mode: ``fts``, ``vector``, ``hybrid``, or ``auto`` for the most that is possible.

        Raises:
            CapabilityNotSupportedError: A memory is not the newest revision (``head``), or
                the mode needs vectors that are not there.
        """
        if not memories:
            raise InvalidInputError("memories", "name at least one memory to search")
        if limit < 1:
            raise InvalidInputError("limit", "must be at least 1")
        for memory in memories:
            await self._check_head(memory)
        pool = limit if self._reranker is None else max(limit, self._rerank_pool)
        refs = tuple(dict.fromkeys(memory.as_ref() for memory in memories))
        try:
            found = await self._store.search(refs, MemoryQuery(text=query, limit=limit, mode=mode), pool)
        except ArtifactNotFoundError as error:
            raise CapabilityNotSupportedError("head", "a memory moved on while it was searched") from error
        if self._reranker is None or not found.hits:
            return MemorySearchResult(mode=found.mode, hits=found.hits[:limit])
        pool_hits = found.hits[: self._rerank_pool]
        chosen, trace = await reranked(self._reranker, query, pool_hits, limit)
        return MemorySearchResult(mode=found.mode, hits=chosen, rerank=trace)

    # -- internals ------------------------------------------------------------

    async def _verified(self, memory: Memory, code: str) -> Memory:
        stored = await self._backend.get(memory.as_ref())
        if stored != memory:
            raise InvalidMemoryCitationError(code, "the memory differs from the stored revision")
        return stored

    async def _base(self, memory: Memory) -> Memory:
        stored = await self._verified(memory, "base-mismatch")
        latest = await self._backend.latest(memory.artifact_id)
        if latest.revision != stored.revision:
            raise RevisionConflictError(memory, latest)
        return stored

    async def _check_head(self, memory: Memory) -> None:
        stored = await self._verified(memory, "memory-mismatch")
        if (await self._backend.latest(memory.artifact_id)).revision != stored.revision:
            raise CapabilityNotSupportedError("head", "only the newest revision of a memory can be searched")

    async def _flip(
        self, memory: Memory, entries: Sequence[MemoryEntryVersion | str], *, active: bool, reason: str | None
    ) -> Memory:
        base = await self._base(memory)
        plan = await self._store.prepare(
            base.artifact_id,
            base,
            lambda view: plan_states(view, entries, active=active, reason=reason),
        )
        return await self.apply(plan) if plan.delta else memory

    async def _extract(self, base: Memory | None, evidence: Evidence) -> tuple[MemoryEntryInput, ...]:
        if self._pipeline is None:
            raise CapabilityNotSupportedError("extract", "the service has no candidate pipeline")
        projector: MemoryEvidenceProjector = getattr(
            self._pipeline, "evidence_projector", DefaultMemoryEvidenceProjector()
        )
        relevant = () if base is None else await self._relevant(base, evidence, projector)
        request = MemoryCandidateRequest(
            sources=evidence.sources, artifacts=evidence.artifacts, current_entries=relevant
        )
        return await self._pipeline.extract(request)

    async def _relevant(
        self, base: Memory, evidence: Evidence, projector: MemoryEvidenceProjector
    ) -> tuple[MemoryEntryVersion, ...]:
        """Return the active entries that have to do with the evidence, most relevant first."""
        shown = [projector.project_source(source) for source in evidence.sources]
        shown += [projector.project_artifact(artifact) for artifact in evidence.artifacts]
        query = MemoryQuery(text=" ".join(canonical_json(piece) for piece in shown), limit=MAX_RELEVANT_ENTRIES)
        found = await self._store.search((base.as_ref(),), query, MAX_RELEVANT_ENTRIES)
        return await self._backend.expand(found.hits)


def _wants_extraction(mode: str, *, has_entries: bool, has_evidence: bool) -> bool:
    """Decide between appending and extracting.

    Raises:
        InvalidMemoryCandidateError: The mode is unknown or does not fit what is given (``remember-mode``).
    """
    if mode not in ("auto", "append", "extract"):
        raise InvalidMemoryCandidateError("remember-mode", "must be auto, append or extract")
    if mode == "append" and not has_entries:
        raise InvalidMemoryCandidateError("remember-mode", "append needs entries")
    if mode == "extract" and (has_entries or not has_evidence):
        raise InvalidMemoryCandidateError("remember-mode", "extract needs evidence and takes no entries")
    if not has_entries and not has_evidence:
        raise InvalidMemoryCandidateError("remember-mode", "neither entries nor evidence were given")
    return not has_entries
