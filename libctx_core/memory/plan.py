"""Deciding what a write changes: pure functions over a view of the head.

A plan says which versions come and what happens to which entry; it holds nothing of the
entries it leaves alone, so its size is that of the change.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from libctx_core.artifacts.values import ArtifactLineage, ArtifactRef
from libctx_core.errors import (
    InvalidMemoryCandidateError,
    InvalidMemoryCitationError,
    MemoryEntryConflictError,
    MemoryEntryInactiveError,
    MemoryEntryNotFoundError,
    MemoryEntryPurgedError,
)
from libctx_core.memory.canonical import (
    check_memory_id,
    digest_entry,
    entry_bytes,
    normalise_kind,
    normalise_reason,
    normalise_refs,
    normalise_text,
)
from libctx_core.memory.values import EntryContext, MemoryChange, MemoryEntryVersion
from libctx_core.sources.values import SourceRef

IdKind: TypeAlias = Literal["memory", "entry", "version"]
IdFactory: TypeAlias = Callable[[str], str]
OrganizeMode: TypeAlias = Literal["default", "dedupe", "normalize"]


@dataclass(frozen=True, slots=True)
class EntryState:
    """An entry as it stands in the head.

    Attributes:
        version: Its current version.
        active: Whether it counts.
        state_version: Rises with every change of the entry.
        purged: Whether its text was deleted.
    """

    version: MemoryEntryVersion
    active: bool
    state_version: int = 1
    purged: bool = False


class HeadView(Protocol):
    """The revision a plan is based on, looked at entry by entry.

    Attributes:
        artifact_id: Id of the memory.
        revision: The revision; 0 for a memory that does not exist yet.
    """

    artifact_id: str
    revision: int

    def entry(self, entry_id: str, /) -> EntryState | None:
        """Return an entry, or None."""
        ...

    def active_with(self, digest: str, /) -> Sequence[MemoryEntryVersion]:
        """Return the active entries with a content hash, by entry id."""
        ...

    def active(self) -> Iterable[MemoryEntryVersion]:
        """Return all active entries, by entry id."""
        ...

    def duplicates(self) -> Iterable[Sequence[MemoryEntryVersion]]:
        """Return groups of active entries that share a content hash, each by entry id."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """An entry to be added or revised, its evidence resolved to references.

    Attributes:
        kind: What it is.
        text: What it says.
        sources: Sources it stands on.
        artifacts: Artifact revisions it stands on.
        entry: The version it revises; None adds an entry.
        reason: Why.
        tags: Its labels; None leaves them as they are.
        context: Where it was said; None leaves it as it is.
    """

    kind: str
    text: str
    sources: tuple[SourceRef, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    entry: MemoryEntryVersion | None = None
    reason: str | None = None
    tags: tuple[str, ...] | None = None
    context: EntryContext | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """What is kept about an entry beside its canonical content."""

    tags: tuple[str, ...] | None = None
    context: EntryContext | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """What one revision changes.

    Attributes:
        revision: Number of the new revision.
        changes: What happens to each entry, sorted by the bytes of its id.
        versions: Versions that are new, by entry id.
        notes: Tags and context of added and revised entries, by entry id.
        lineage: Evidence of the revision.
        settled: The version each proposal ended at, in the order they were given: a new
            one, or the equal one that was there already.
    """

    revision: int
    changes: tuple[MemoryChange, ...]
    versions: Mapping[str, MemoryEntryVersion] = field(default_factory=dict)
    notes: Mapping[str, Note] = field(default_factory=dict)
    lineage: ArtifactLineage = field(default_factory=ArtifactLineage)
    settled: tuple[MemoryEntryVersion, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes)


class _Draft:
    """A plan in the making: each entry at most once."""

    def __init__(self, view: HeadView, ids: IdFactory) -> None:
        self.view = view
        self.revision = view.revision + 1
        self.changes: list[MemoryChange] = []
        self.versions: dict[str, MemoryEntryVersion] = {}
        self.notes: dict[str, Note] = {}
        self.settled: list[MemoryEntryVersion] = []
        self._ids = ids
        self._used: set[str] = set()

    def fresh(self, kind: IdKind) -> str:
        identifier = check_memory_id(self._ids(kind))
        if identifier in self._used:
            raise InvalidMemoryCandidateError("id-collision", f"the id factory gave one {kind} id twice")
        self._used.add(identifier)
        return identifier

    def bring(
        self, proposal: Proposal, digest: str, before: MemoryEntryVersion | None, text: str, kind: str
    ) -> MemoryEntryVersion:
        entry_id = self.fresh("entry") if before is None else before.entry_id
        version = MemoryEntryVersion.trusted(
            memory_artifact_id=self.view.artifact_id,
            entry_id=entry_id,
            entry_version_id=self.fresh("version"),
            version=1 if before is None else before.version + 1,
            previous_version_id=None if before is None else before.entry_version_id,
            kind=kind,
            text=text,
            entry_content_hash=digest,
            created_in_revision=self.revision,
            sources=proposal.sources,
            artifacts=proposal.artifacts,
        )
        self.versions[entry_id] = version
        self.notes[entry_id] = Note(proposal.tags, proposal.context)
        self.changes.append(
            MemoryChange.trusted(
                op="add" if before is None else "revise",
                entry_id=entry_id,
                from_entry_version_id=version.previous_version_id,
                to_entry_version_id=version.entry_version_id,
                reason=normalise_reason(proposal.reason),
            )
        )
        return version

    def flip(self, version: MemoryEntryVersion, *, active: bool, reason: str | None) -> None:
        self.changes.append(
            MemoryChange.trusted(
                op="reactivate" if active else "deactivate",
                entry_id=version.entry_id,
                from_entry_version_id=None if active else version.entry_version_id,
                to_entry_version_id=version.entry_version_id if active else None,
                reason=normalise_reason(reason),
            )
        )

    def finish(self, lineage: ArtifactLineage) -> Delta:
        ordered = tuple(sorted(self.changes, key=lambda change: change.entry_id))
        return Delta(self.revision, ordered, self.versions, self.notes, lineage, tuple(self.settled))


def plan_entries(
    view: HeadView,
    proposals: Iterable[Proposal],
    ids: IdFactory,
    lineage: ArtifactLineage | None = None,
) -> Delta:
    """Plan additions and revisions.

    An addition equal to an active entry, or to an earlier one of the batch, is skipped. A
    revision keeps the evidence of its predecessor and is skipped if nothing changes.

    Args:
        view: The head.
        proposals: What is proposed; each entry may be revised once.
        ids: Makes ids of kinds ``entry`` and ``version``.
        lineage: Evidence of the operation.

    Raises:
        InvalidMemoryCandidateError: A proposal has no canonical form (``canonical``,
            ``identity-kind``), an entry is revised twice (``duplicate-target``), or an id
            is taken (``id-collision``).
        InvalidMemoryCitationError: A revised version is not the current one (``entry-mismatch``).
        MemoryEntryNotFoundError: A revised entry does not exist.
        MemoryEntryInactiveError: A revised entry was forgotten.
    """
    draft = _Draft(view, ids)
    seen: dict[bytes, MemoryEntryVersion] = {}
    targets: set[str] = set()
    for given in proposals:
        before = None
        if given.entry is not None:
            if given.entry.entry_id in targets:
                raise InvalidMemoryCandidateError("duplicate-target", "one entry is revised twice in one call")
            targets.add(given.entry.entry_id)
            before = revisable(view, given.entry)
        proposal = _settled(given, before)
        kind, text = normalise_kind(proposal.kind), normalise_text(proposal.text)
        encoded = entry_bytes(kind, text, proposal.sources, proposal.artifacts)
        digest = digest_entry(encoded)
        if before is None:
            equal = seen.get(encoded) or _equal(view.active_with(digest), encoded)
        else:
            equal = _equal([before], encoded)
        if equal is None:
            equal = seen[encoded] = draft.bring(proposal, digest, before, text, kind)
        draft.settled.append(equal)
    return draft.finish(lineage or ArtifactLineage())


def revisable(view: HeadView, given: MemoryEntryVersion) -> MemoryEntryVersion:
    """Return the current version of an entry that is to be revised.

    Raises:
        MemoryEntryNotFoundError: There is no such entry.
        InvalidMemoryCitationError: `given` is not its current version (``entry-mismatch``).
        MemoryEntryInactiveError: It was forgotten.
    """
    state = known(view, given.entry_id)
    if state.version != given:
        raise InvalidMemoryCitationError("entry-mismatch", "the version to revise is not the current one")
    if not state.active:
        raise MemoryEntryInactiveError(given.entry_id)
    return state.version


def known(view: HeadView, entry_id: str) -> EntryState:
    """Return an entry that exists and still says something.

    Raises:
        MemoryEntryNotFoundError: There is no such entry.
        MemoryEntryPurgedError: Its text was deleted.
    """
    state = view.entry(entry_id)
    if state is None:
        raise MemoryEntryNotFoundError(entry_id)
    if state.purged:
        raise MemoryEntryPurgedError(entry_id)
    return state


def check_state(view: HeadView, expected: Mapping[str, int]) -> None:
    """Refuse a plan whose caller went by an older state of an entry.

    Args:
        view: The head.
        expected: State version by entry id.

    Raises:
        MemoryEntryConflictError: An entry has changed since.
    """
    for entry_id, version in expected.items():
        current = known(view, entry_id).state_version
        if current != version:
            raise MemoryEntryConflictError(entry_id, version, current)


def _settled(proposal: Proposal, before: MemoryEntryVersion | None) -> Proposal:
    """Return the proposal with its evidence, and that of its predecessor, in canonical order."""
    sources, artifacts = proposal.sources, proposal.artifacts
    if before is not None:
        sources, artifacts = (*before.sources, *sources), (*before.artifacts, *artifacts)
    elif len(sources) < 2 and len(artifacts) < 2:
        return proposal
    return replace(proposal, sources=normalise_refs(sources), artifacts=normalise_refs(artifacts))


def _equal(versions: Sequence[MemoryEntryVersion], encoded: bytes) -> MemoryEntryVersion | None:
    """Return the version with this canonical content; equal hashes are confirmed byte by byte."""
    return next((version for version in versions if _encoded(version) == encoded), None)


def _encoded(version: MemoryEntryVersion) -> bytes:
    return entry_bytes(version.kind, version.text, version.sources, version.artifacts)


def plan_states(
    view: HeadView, entries: Iterable[MemoryEntryVersion | str], *, active: bool, reason: str | None = None
) -> Delta:
    """Plan forgetting or reactivating entries; those already in the wanted state are left alone.

    Args:
        view: The head.
        entries: Entry ids, or versions that must be the current ones.
        active: The wanted state.
        reason: Why.

    Raises:
        InvalidMemoryCitationError: A version is not the current one (``entry-mismatch``).
        MemoryEntryNotFoundError: There is no such entry.
        MemoryEntryPurgedError: Its text was deleted.
    """
    draft = _Draft(view, _no_ids)
    flipped: set[str] = set()
    for given in entries:
        entry_id = given if isinstance(given, str) else given.entry_id
        state = known(view, entry_id)
        if not isinstance(given, str) and given != state.version:
            raise InvalidMemoryCitationError("entry-mismatch", "a version is not the current one")
        if state.active != active and entry_id not in flipped:
            flipped.add(entry_id)
            draft.flip(state.version, active=active, reason=reason)
    return draft.finish(ArtifactLineage())


def _no_ids(kind: str) -> str:
    raise InvalidMemoryCandidateError("id-collision", f"a change of state makes no {kind} id")


def plan_organize(view: HeadView, ids: IdFactory, *, mode: str = "default") -> Delta:
    """Plan tidying up: nothing is merged by meaning.

    ``dedupe`` keeps, of active entries with equal content, the one with the smallest id;
    ``normalize`` writes entries again whose stored text is not in canonical form;
    ``default`` does both, the latter first.

    Raises:
        InvalidMemoryCandidateError: The mode is unknown (``organize-mode``).
    """
    if mode not in ("default", "dedupe", "normalize"):
        raise InvalidMemoryCandidateError("organize-mode", "must be default, dedupe or normalize")
    draft = _Draft(view, ids)
    if mode != "dedupe":
        for version in view.active():
            kind, text = normalise_kind(version.kind), normalise_text(version.text)
            if (kind, text) != (version.kind, version.text):
                again = Proposal(kind=kind, text=text, sources=version.sources, artifacts=version.artifacts,
                                 entry=version, reason="normalize")  # fmt: skip
                draft.bring(again, digest_entry(_encoded(version)), version, text, kind)
    if mode != "normalize":
        for group in view.duplicates():
            first: dict[bytes, MemoryEntryVersion] = {}
            for version in group:
                if first.setdefault(_encoded(version), version) is not version and version.entry_id not in draft.notes:
                    draft.flip(version, active=False, reason="dedupe")
    return draft.finish(ArtifactLineage())
