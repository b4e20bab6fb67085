"""Reading the memories of one collection, synchronously."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from libctx_core.artifacts.values import ArtifactRef
from libctx_core.concurrency import Portal
from libctx_core.errors import ArtifactNotFoundError, MemoryEntryNotFoundError, PluginNotFoundError
from libctx_core.errors.access import Operation
from libctx_core.memory.decode import context_of, sources_of, tags_of, tombstone_of
from libctx_core.memory.indexing import MemoryIndexer
from libctx_core.memory.ledger import MemoryLedger
from libctx_core.memory.rerank import DEFAULT_RERANK_POOL, MAX_RERANK_POOL, MemoryReranker, reranked
from libctx_core.memory.search import MemoryQuery, MemorySearch, receipt_of
from libctx_core.memory.search_values import MemoryCapabilities, MemoryHit, MemorySearchMode, MemorySearchResult
from libctx_core.memory.sqlite import SQLiteMemoryBackend
from libctx_core.memory.stored import StoredMemory, memory_ref
from libctx_core.memory.values import Memory, MemoryCitation, MemoryEntryVersion, MemoryRevisionChanges
from libctx_core.memory.views import DiffLine, EntryView, MemoryStatus, RevisionDiff
from libctx_core.store import memory as rows
from libctx_core.store.memory_schema import EntryRow
from libctx_core.store.owners import MEMORY, OwnerRow, owners_of

if TYPE_CHECKING:
    import apsw

    from libctx_core.plugins import Plugins
    from libctx_core.search.searcher import Searcher

DEFAULT_MEMORY = "memory"
"""Id of a collection's memory where none is named."""


class MemoryReading:
    """Reads the memories of one collection.

    Args:
        ledger: The memories.
        indexer: Brings search in line with them.
        searcher: The read door of search.
        portal: Carries calls to a user's asynchronous parts.
        plugins: Bring parts that are asked for by name.
    """

    def __init__(
        self,
        ledger: MemoryLedger,
        indexer: MemoryIndexer,
        searcher: "Searcher",
        portal: Portal | None = None,
        plugins: "Plugins | None" = None,
    ) -> None:
        self._portal = portal or Portal()
        self._plugins = plugins
        self._ledger = ledger
        self._indexer = indexer
        self._search = MemorySearch(ledger.database, searcher, indexer)
        self._backend = SQLiteMemoryBackend(ledger, indexer, self._search)

    @property
    def collection(self) -> str:
        """The collection the memories belong to."""
        return self._ledger.collection

    @property
    def capabilities(self) -> MemoryCapabilities:
        """What can be searched as the library is set up."""
        return self._search.capabilities()

    def names(self) -> tuple[str, ...]:
        """Return the ids of the memories the active scope may list."""
        return tuple(owner.key for owner in self._permitted(Operation.ENUMERATE))

    def status(self, *, memory: str = DEFAULT_MEMORY) -> MemoryStatus:
        """Return the size of a memory and how far search is behind."""
        pending = self._indexer.backlog()
        with self._ledger.database.read() as connection:
            try:
                owner = self._ledger.permit(connection, memory, Operation.READ)
            except ArtifactNotFoundError:
                return MemoryStatus(memory_ref=None, entries=0, active=0, pending=pending)
            head = rows.read_head(connection, owner.id)
        if head is None:
            return MemoryStatus(memory_ref=None, entries=0, active=0, pending=pending)
        ref = memory_ref(memory, head.revision)
        return MemoryStatus(memory_ref=ref, entries=head.entries, active=head.active, pending=pending)

    def head(self, *, memory: str = DEFAULT_MEMORY) -> Memory:
        """Return the newest revision of a memory.

        Raises:
            ArtifactNotFoundError: Nothing was remembered in it yet.
        """
        return self._ledger.head(memory)

    def revision(self, number: int, *, memory: str = DEFAULT_MEMORY) -> Memory:
        """Return one revision of a memory.

        Raises:
            ArtifactNotFoundError: There is no such revision.
        """
        return self._ledger.revision(ArtifactRef(family="memory", artifact_id=memory, revision=number))

    def content_hash(self, number: int, *, memory: str = DEFAULT_MEMORY) -> str:
        """Return the canonical content hash of a revision.

        Where reasons of its changes were purged, it is the hash of before.
        """
        return self._ledger.content_hash(ArtifactRef(family="memory", artifact_id=memory, revision=number))

    def entries(self, *, memory: str = DEFAULT_MEMORY, include_inactive: bool = False) -> tuple[EntryView, ...]:
        """Return the entries of the newest revision, in the order they were added."""
        with self._ledger.database.read() as connection:
            owner = self._ledger.permit(connection, memory, Operation.READ)
            ref = memory_ref(memory, _newest(connection, owner))
            found = rows.iterate_entries(connection, owner.id, active_only=not include_inactive)
            return tuple(_view(connection, ref, row) for row in found)

    def entry(self, entry_id: str, *, memory: str = DEFAULT_MEMORY) -> EntryView:
        """Return one entry of the newest revision.

        Raises:
            MemoryEntryNotFoundError: There is no such entry.
        """
        with self._ledger.database.read() as connection:
            owner = self._ledger.permit(connection, memory, Operation.READ)
            row = _existing(connection, owner.id, entry_id)
            return _view(connection, memory_ref(memory, _newest(connection, owner)), row)

    def history(self, entry_id: str, *, memory: str = DEFAULT_MEMORY) -> tuple[MemoryEntryVersion, ...]:
        """Return all versions of an entry, oldest first; purged ones are empty."""
        with self._ledger.database.read() as connection:
            owner = self._ledger.permit(connection, memory, Operation.READ)
            row = _existing(connection, owner.id, entry_id)
            return tuple(tombstone_of(version, memory) for version in rows.versions_of_entry(connection, row.id))

    def changes(
        self, since_revision: int | None = None, *, memory: str = DEFAULT_MEMORY
    ) -> tuple[MemoryRevisionChanges, ...]:
        """Return what revisions changed, up to the newest one.

        Args:
            since_revision: Revision to start behind; None returns the newest alone.
            memory: Id of the memory.
        """
        return self._ledger.changes(self._ledger.head(memory).as_ref(), since_revision)

    def diff(self, before: int, after: int | None = None, *, memory: str = DEFAULT_MEMORY) -> RevisionDiff:
        """Return what changed between two revisions, with the words of the entries.

        Args:
            before: Revision to start behind; 0 for the beginning.
            after: Revision to end at; None means the newest.
            memory: Id of the memory.
        """
        newest = self._ledger.head(memory)
        ref = newest.as_ref() if after is None else memory_ref(memory, after)
        changed = self._ledger.changes(ref, before)
        owner = newest.origin.owner
        with self._ledger.database.read() as connection:
            lines = tuple(
                DiffLine(
                    revision=group.memory_ref.revision,
                    change=change,
                    before=_words(connection, owner, change.from_entry_version_id),
                    after=_words(connection, owner, change.to_entry_version_id),
                )
                for group in changed
                for change in group.changes
            )
            redacted = tuple(
                row.revision
                for row in rows.read_revisions(connection, owner)
                if row.redacted and before < row.revision <= ref.revision
            )
        return RevisionDiff(artifact_id=memory, before=before, after=ref.revision, redacted=redacted, lines=lines)

    def search(
        self,
        query: str,
        *,
        memories: Sequence[str] | None = None,
        limit: int = 10,
        mode: MemorySearchMode = "auto",
        kinds: Sequence[str] = (),
        tags: Sequence[str] = (),
        min_relevance: float = 0.0,
        reranker: MemoryReranker | str | None = None,
        explain: bool = False,
    ) -> MemorySearchResult:
        """Return the entries that answer a question, best first.

        Args:
            query: The question; any string is valid.
            memories: Ids of the memories to search; None means all the active scope may read.
            limit: Hits wanted.
            mode: ``fts``, ``vector``, ``hybrid``, or ``auto`` for the most that is possible.
            kinds: Kinds of entry wanted; none means all.
            tags: Tags an entry must have.
            min_relevance: Hits below this relevance, 0 to 1, are left out.
            reranker: Chooses among the best 30 to 100 candidates; one that a plugin registers, by
                its name, or your own.
            explain: Add a receipt: which channel, which rank, what was left out and why.

        Raises:
            ArtifactNotFoundError: A named memory does not exist.
            CapabilityNotSupportedError: The mode needs vectors that are not there.
            ContextAccessDenied: The active scope may not read a named memory.
            PluginNotFoundError: No plugin registers a reranker of that name.
        """
        asked = MemoryQuery(
            text=query,
            limit=limit,
            mode=mode,
            kinds=tuple(kinds),
            tags=tuple(tags),
            min_relevance=min_relevance,
            explain=explain,
        )
        owners = self._searched(memories)
        return self._search.search(owners, asked) if reranker is None else self._reranked(owners, asked, reranker)

    def _reranked(
        self, owners: list[OwnerRow], asked: MemoryQuery, reranker: MemoryReranker | str
    ) -> MemorySearchResult:
        chosen_by = self._part(reranker, "reranker")
        ranking = self._search.rank(owners, asked, min(max(asked.limit, DEFAULT_RERANK_POOL), MAX_RERANK_POOL))
        if not ranking.hits:
            return MemorySearchResult(mode=ranking.mode)
        chosen, trace = self._portal.call(reranked, chosen_by, asked.text, ranking.hits, asked.limit)
        receipt = receipt_of(asked, ranking, chosen, reason="reranker") if asked.explain else None
        return MemorySearchResult(mode=ranking.mode, hits=chosen, rerank=trace, receipt=receipt)

    def _part(self, part: Any, kind: Literal["reranker", "extractor"]) -> Any:
        """Return a part, built by the plugin that registers its name if it is one."""
        if not isinstance(part, str):
            return part
        if self._plugins is None:
            raise PluginNotFoundError(part, f"no plugins are loaded here that could bring a {kind}")
        return self._plugins.reranker(part) if kind == "reranker" else self._plugins.extractor(part)

    def expand(self, hits: Iterable[MemoryHit]) -> tuple[MemoryEntryVersion, ...]:
        """Return the exact versions that hits stand for, each checked against what is stored."""
        return self._backend.expand_now(tuple(hits))

    def cite(self, citation: MemoryCitation) -> MemoryEntryVersion:
        """Return the exact version a citation stands for; older revisions are fine."""
        return self._ledger.cite(citation)

    def _searched(self, memories: Sequence[str] | None) -> list[OwnerRow]:
        if memories is None:
            return self._permitted(Operation.READ)
        with self._ledger.database.read() as connection:
            return [self._ledger.permit(connection, name, Operation.READ) for name in dict.fromkeys(memories)]

    def _permitted(self, operation: Operation) -> list[OwnerRow]:
        with self._ledger.database.read() as connection:
            owners = owners_of(connection, MEMORY, self.collection)
        return self._ledger.guard.permitted(operation, owners)

    def _stored(self, memory: StoredMemory | None) -> ArtifactRef | None:
        return None if memory is None else memory.as_ref()


def _newest(connection: "apsw.Connection", owner: OwnerRow) -> int:
    head = rows.read_head(connection, owner.id)
    return 1 if head is None else head.revision


def _existing(connection: "apsw.Connection", owner: int, entry_id: str) -> EntryRow:
    row = rows.read_entry(connection, owner, entry_id)
    if row is None:
        raise MemoryEntryNotFoundError(entry_id)
    return row


def _view(connection: "apsw.Connection", ref: ArtifactRef, row: EntryRow) -> EntryView:
    version = rows.read_version(connection, row.version)
    return EntryView(
        citation=MemoryCitation(memory_ref=ref, entry_id=row.entry_id, entry_version_id=version.version_id),
        kind=version.kind or "",
        text=version.text or "",
        state="active" if row.active else "inactive",
        state_version=row.state_version,
        version=version.version,
        purged=row.purged_at is not None,
        tags=tags_of(row.tags),
        context=context_of(row.context),
        sources=sources_of(version.sources),
    )


def _words(connection: "apsw.Connection", owner: int, version_id: str | None) -> str:
    if version_id is None:
        return ""
    version = rows.find_version(connection, owner, version_id)
    return "" if version is None or version.text is None else version.text
