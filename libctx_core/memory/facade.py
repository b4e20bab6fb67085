"""Writing the memories of one collection: remember, revise, forget, purge."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import apsw
from pydantic import JsonValue

from libctx_core.artifacts.values import ArtifactLineage, ArtifactRef
from libctx_core.concurrency import Portal
from libctx_core.errors import ArtifactNotFoundError
from libctx_core.errors.access import Operation
from libctx_core.memory.canonical import normalise_refs
from libctx_core.memory.decode import pack_tags, tags_of
from libctx_core.memory.evidence import ArtifactResolver, SourceResolver
from libctx_core.memory.extraction import CandidatePipeline
from libctx_core.memory.indexing import MemoryIndexer
from libctx_core.memory.ledger import Committed, MemoryLedger, Planner
from libctx_core.memory.plan import (
    Delta,
    HeadView,
    IdFactory,
    OrganizeMode,
    Proposal,
    known,
    plan_entries,
    plan_organize,
    plan_states,
)
from libctx_core.memory.purge import MemoryPurge, PurgeReceipt
from libctx_core.memory.reading import DEFAULT_MEMORY, MemoryReading, _existing
from libctx_core.memory.rerank import MemoryReranker
from libctx_core.memory.service import MemoryService
from libctx_core.memory.stored import memory_ref
from libctx_core.memory.values import EntryContext, Memory
from libctx_core.memory.views import EntryView, Remembered, citation_of
from libctx_core.ports import Embedder
from libctx_core.search.index import SearchIndex
from libctx_core.sources.guard import OwnerGuard
from libctx_core.sources.values import Source, SourceRef
from libctx_core.store import memory as rows
from libctx_core.store.database import Database
from libctx_core.store.memory_writes import set_tags

if TYPE_CHECKING:
    from libctx_core.plugins import Plugins
    from libctx_core.search.searcher import Searcher


class MemoryWriting(MemoryReading):
    """Reads and writes the memories of one collection.

    What is remembered is durable when a method returns. It is found by the next search,
    which first brings the index in line; `flush` does that ahead of time.

    Args:
        database: The library.
        index: The write door of search.
        searcher: The read door of search.
        embedder: Turns texts into vectors; None searches by words only.
        guard: Decides what the active scope may do.
        collection: The collection, at most 256 characters.
        portal: Carries calls to a user's asynchronous parts.
        plugins: Bring rerankers and extractors that are asked for by name.
        id_factory: Makes ids; it is given ``memory``, ``entry`` or ``version``.
    """

    def __init__(
        self,
        database: Database,
        index: SearchIndex,
        searcher: "Searcher",
        embedder: Embedder | None = None,
        guard: OwnerGuard | None = None,
        *,
        collection: str = "default",
        portal: Portal | None = None,
        plugins: "Plugins | None" = None,
        id_factory: IdFactory | None = None,
    ) -> None:
        ledger = MemoryLedger(database, collection, guard=guard, id_factory=id_factory)
        super().__init__(ledger, MemoryIndexer(database, index, embedder), searcher, portal, plugins)
        self._purge = MemoryPurge(ledger, self._indexer)

    # -- remembering ----------------------------------------------------------

    def remember(
        self,
        text: str,
        *,
        kind: str = "fact",
        memory: str = DEFAULT_MEMORY,
        sources: Sequence[SourceRef] = (),
        tags: Sequence[str] = (),
        reason: str | None = None,
        speaker: str | None = None,
        session: str | None = None,
        occurred_at: float | None = None,
        metadata: Mapping[str, JsonValue] | None = None,
        expected_revision: int | None = None,
    ) -> Remembered:
        """Add one entry; what is remembered already, with the same evidence, is not added again.

        Args:
            text: What it says, at most 8,192 UTF-8 bytes.
            kind: What it is: ``fact``, ``preference``, ``decision``, ``constraint``,
                ``working_note`` or a word of your own.
            memory: Id of the memory; it is made if it does not exist.
            sources: Sources it stands on.
            tags: Labels.
            reason: Why it is remembered.
            speaker: Who said it.
            session: Name of the session it was said in.
            occurred_at: When it was said, seconds since the epoch, UTC.
            metadata: A JSON object.
            expected_revision: Write only on top of this revision; None writes on top of
                whatever is newest.

        Raises:
            InvalidMemoryCandidateError: The text is blank or too long, or the kind cannot be used.
            RevisionConflictError: `expected_revision` is not the newest one.
            ContextAccessDenied: The active scope may not write.
        """
        context = EntryContext(speaker=speaker, session=session, occurred_at=occurred_at, metadata=dict(metadata or {}))
        proposal = Proposal(
            kind=kind, text=text, sources=tuple(sources), tags=tuple(tags) or None, reason=reason, context=context
        )
        return self.remember_many([proposal], memory=memory, expected_revision=expected_revision)

    def remember_many(
        self,
        proposals: Iterable[Proposal],
        *,
        memory: str = DEFAULT_MEMORY,
        expected_revision: int | None = None,
    ) -> Remembered:
        """Add and revise many entries in one revision.

        Args:
            proposals: The entries; the sources of all of them are the revision's evidence.
            memory: Id of the memory.
            expected_revision: Write only on top of this revision.
        """
        wanted = tuple(proposals)
        lineage = ArtifactLineage(
            sources=normalise_refs(ref for proposal in wanted for ref in proposal.sources),
            artifacts=normalise_refs(ref for proposal in wanted for ref in proposal.artifacts),
        )
        done = self._commit(
            memory, lambda view: plan_entries(view, wanted, self._ledger.ids, lineage), expected_revision
        )
        return self._remembered(done)

    def revise(
        self,
        entry_id: str,
        text: str,
        *,
        kind: str | None = None,
        memory: str = DEFAULT_MEMORY,
        sources: Sequence[SourceRef] = (),
        tags: Sequence[str] | None = None,
        reason: str | None = None,
        expected_version: int | None = None,
    ) -> Remembered:
        """Give an entry a new version; its evidence is kept and added to.

        Args:
            entry_id: The entry.
            text: What it says now.
            kind: What it is now; None leaves it.
            memory: Id of the memory.
            sources: Further sources it stands on.
            tags: Its labels now; None leaves them.
            reason: Why.
            expected_version: State version it must be at, from `EntryView`.

        Raises:
            MemoryEntryNotFoundError: There is no such entry.
            MemoryEntryInactiveError: It was forgotten.
            MemoryEntryConflictError: It is not at `expected_version`.
        """

        def plan(view: HeadView) -> Delta:
            current = known(view, entry_id).version
            proposal = Proposal(
                kind=current.kind if kind is None else kind,
                text=text,
                sources=tuple(sources),
                entry=current,
                reason=reason,
                tags=None if tags is None else tuple(tags),
            )
            return plan_entries(view, [proposal], self._ledger.ids, ArtifactLineage(sources=tuple(sources)))

        expected = None if expected_version is None else {entry_id: expected_version}
        base = self._ledger.head(memory)
        return self._remembered(self._ledger.commit(base.artifact_id, plan, expected=expected))

    def forget(self, *entry_ids: str, memory: str = DEFAULT_MEMORY, reason: str | None = None) -> ArtifactRef:
        """Deactivate entries: they stay in the history and are no longer found.

        Returns:
            The newest revision afterwards.

        Raises:
            MemoryEntryNotFoundError: There is no such entry; nothing was written.
        """
        return self._flip(memory, entry_ids, active=False, reason=reason)

    def reactivate(self, *entry_ids: str, memory: str = DEFAULT_MEMORY, reason: str | None = None) -> ArtifactRef:
        """Make forgotten entries count again; returns the newest revision afterwards.

        Raises:
            MemoryEntryPurgedError: The text of one was deleted.
        """
        return self._flip(memory, entry_ids, active=True, reason=reason)

    def organize(self, *, memory: str = DEFAULT_MEMORY, mode: OrganizeMode = "default") -> ArtifactRef:
        """Deactivate exact duplicates (``dedupe``), rewrite what is not canonical (``normalize``), or both."""
        head = self._ledger.head(memory)
        done = self._ledger.commit(memory, lambda view: plan_organize(view, self._ledger.ids, mode=mode))
        return head.as_ref() if done.memory is None else done.memory.as_ref()

    def tag(
        self, entry_id: str, *, add: Iterable[str] = (), remove: Iterable[str] = (), memory: str = DEFAULT_MEMORY
    ) -> EntryView:
        """Change the labels of an entry; they are no part of its content, so there is no new revision."""
        more, less = set(add), set(remove)

        def run(connection: apsw.Connection) -> None:
            owner = self._ledger.permit(connection, memory, Operation.WRITE)
            row = _existing(connection, owner.id, entry_id)
            tags = (set(tags_of(row.tags)) | more) - less
            set_tags(connection, row.id, pack_tags(sorted(tags)))

        self._ledger.database.write(run)
        return self.entry(entry_id, memory=memory)

    # -- deleting -------------------------------------------------------------

    def purge(self, *entry_ids: str, memory: str = DEFAULT_MEMORY) -> PurgeReceipt:
        """Erase what entries say, in all versions, from the file and from search; see `MemoryPurge`."""
        return self._purge.entries(memory, entry_ids)

    def delete(self, *, memory: str = DEFAULT_MEMORY) -> PurgeReceipt:
        """Delete a whole memory with its history."""
        return self._purge.memory(memory)

    def derived_from(self, sources: Iterable[SourceRef]) -> dict[str, tuple[str, ...]]:
        """Return the entries that stand on any of some sources, by memory; for redaction to follow.

        Memories that the active scope may not read are left out.
        """
        pairs = [(ref.source_type, ref.source_id) for ref in sources]
        names = {owner.id: owner.key for owner in self._permitted(Operation.READ)}
        with self._ledger.database.read() as connection:
            found = rows.entries_from_sources(connection, self.collection, pairs)
        derived: dict[str, list[str]] = {}
        for owner, entry_id in found:
            if owner in names:
                derived.setdefault(names[owner], []).append(entry_id)
        return {name: tuple(entries) for name, entries in derived.items()}

    def purge_derived(self, sources: Iterable[SourceRef]) -> dict[str, PurgeReceipt]:
        """Purge the entries that stand on any of some sources; return a receipt per memory."""
        derived = self.derived_from(sources)
        return {name: self._purge.entries(name, entries) for name, entries in derived.items()}

    # -- search and models ----------------------------------------------------

    def flush(self, *, limit: int | None = None) -> int:
        """Bring search in line with every memory of the library; return how many entries were handled."""
        return self._indexer.catch_up_all(limit=limit)

    def rebuild(self, *, memory: str = DEFAULT_MEMORY) -> int:
        """Make the search records of a memory again from its entries; return how many there are."""
        return self._indexer.rebuild(self._ledger.head(memory).origin.owner)

    def service(
        self,
        *,
        pipeline: CandidatePipeline | str | None = None,
        reranker: MemoryReranker | str | None = None,
        sources: SourceResolver | None = None,
        artifacts: ArtifactResolver | None = None,
        memory: str = DEFAULT_MEMORY,
    ) -> MemoryService:
        """Return the seed's `MemoryService` over these memories.

        Args:
            pipeline: Draws entries from evidence; your own, or the name of an extractor a plugin registers.
            reranker: Chooses among the best candidates of a search; your own, or a plugin's by its name.
            sources: Finds sources that are given as evidence.
            artifacts: Finds artifacts that are given as evidence.
            memory: Id of a memory it starts.
        """
        ids = self._ledger.ids
        return MemoryService(
            backend=self._backend,
            candidate_pipeline=self._part(pipeline, "extractor"),
            reranker=self._part(reranker, "reranker"),
            source_resolver=sources,
            artifact_resolver=artifacts,
            id_factory=lambda kind: memory if kind == "memory" else ids(kind),
        )

    def extract(
        self,
        service: MemoryService,
        *,
        sources: Sequence[Source],
        memory: str = DEFAULT_MEMORY,
    ) -> Memory | None:
        """Let the pipeline of a service propose entries from sources, and write what passes the checks.

        Args:
            service: From `service`, with a pipeline and a source resolver.
            sources: The evidence.
            memory: Id of the memory; if it does not exist yet, the one the service starts.
        """
        try:
            base = self._ledger.head(memory)
        except ArtifactNotFoundError:
            base = None
        return self._portal.call(service.remember, memory=base, sources=sources, mode="extract")

    # -- internals ------------------------------------------------------------

    def _commit(self, memory: str, planner: Planner, expected_revision: int | None) -> Committed:
        base = None if expected_revision in (None, 0) else memory_ref(memory, expected_revision or 0)
        return self._ledger.commit(memory, planner, base=base, fresh=expected_revision == 0)

    def _flip(self, memory: str, entry_ids: tuple[str, ...], *, active: bool, reason: str | None) -> ArtifactRef:
        head = self._ledger.head(memory)
        done = self._ledger.commit(memory, lambda view: plan_states(view, entry_ids, active=active, reason=reason))
        return head.as_ref() if done.memory is None else done.memory.as_ref()

    def _remembered(self, done: Committed) -> Remembered:
        ref = self._stored(done.memory)
        citations = () if ref is None else tuple(citation_of(version, ref) for version in done.delta.settled)
        return Remembered(memory_ref=ref, citations=citations, written=len(done.delta.changes))
