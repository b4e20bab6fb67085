"""Complete commits: building one from a plan, and checking one before it is stored. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from libctx_core.errors import InvalidMemoryCandidateError, InvalidMemoryCitationError
from libctx_core.memory.backend import MemoryCommit
from libctx_core.memory.canonical import entry_content_hash, memory_content_hash
from libctx_core.memory.plan import Delta, EntryState
from libctx_core.memory.search_values import MemoryProjection
from libctx_core.memory.values import (
    MEMORY_FAMILY,
    Memory,
    MemoryChange,
    MemoryContent,
    MemoryEntryVersion,
    MemoryManifest,
    MemoryManifestEntry,
)


class LoadedHead:
    """A head whose entries are all at hand.

    Args:
        artifact_id: Id of the memory.
        memory: The head; None for a memory that does not exist yet.
        entries: The entry versions of its manifest.

    Attributes:
        artifact_id: Id of the memory.
        revision: The newest revision; 0 if there is none.
    """

    def __init__(self, artifact_id: str, memory: Memory | None, entries: Iterable[MemoryEntryVersion] = ()) -> None:
        self.artifact_id = artifact_id
        self.revision = 0 if memory is None else memory.revision
        manifest = () if memory is None else memory.content.manifest.entries
        active = {entry.entry_id: entry.state == "active" for entry in manifest}
        self._states = {version.entry_id: EntryState(version, active[version.entry_id]) for version in entries}
        self._by_digest: dict[str, list[MemoryEntryVersion]] = {}
        for version in self.active():
            self._by_digest.setdefault(version.entry_content_hash, []).append(version)

    def entry(self, entry_id: str, /) -> EntryState | None:
        """Return an entry, or None."""
        return self._states.get(entry_id)

    def active_with(self, digest: str, /) -> Sequence[MemoryEntryVersion]:
        """Return the active entries with a content hash, by entry id."""
        return self._by_digest.get(digest, ())

    def active(self) -> Iterable[MemoryEntryVersion]:
        """Return all active entries, by entry id."""
        return [self._states[key].version for key in sorted(self._states) if self._states[key].active]

    def duplicates(self) -> Iterable[Sequence[MemoryEntryVersion]]:
        """Return groups of active entries that share a content hash, each by entry id."""
        return [group for group in self._by_digest.values() if len(group) > 1]


def next_manifest(base: MemoryManifest, changes: Iterable[MemoryChange], digests: Mapping[str, str]) -> MemoryManifest:
    """Return the manifest that changes make of the one before.

    Args:
        base: The manifest before.
        changes: What is changed.
        digests: Content hash by entry id of the versions that are new.

    Raises:
        InvalidMemoryCandidateError: An added id is taken (``id-collision``).
        InvalidMemoryCitationError: A changed entry is missing (``entry-missing``), or a
            new version is (``missing-version``).
    """
    entries = {entry.entry_id: entry for entry in base.entries}
    for change in changes:
        before = entries.get(change.entry_id)
        if change.op == "add" and before is not None:
            raise InvalidMemoryCandidateError("id-collision", "an added entry id is taken")
        if change.op != "add" and before is None:
            raise InvalidMemoryCitationError("entry-missing", "a changed entry is not in the manifest before")
        if before is not None and change.from_entry_version_id not in (None, before.entry_version_id):
            raise InvalidMemoryCitationError("entry-mismatch", "a change names another version than the one before")
        version_id, digest = change.to_entry_version_id, digests.get(change.entry_id)
        if change.op in ("deactivate", "reactivate") and before is not None:
            version_id, digest = before.entry_version_id, before.entry_content_hash
        if version_id is None or digest is None:
            raise InvalidMemoryCitationError("missing-version", "a change brings a version that is not given")
        entries[change.entry_id] = MemoryManifestEntry(
            entry_id=change.entry_id,
            entry_version_id=version_id,
            entry_content_hash=digest,
            state="inactive" if change.op == "deactivate" else "active",
        )
    return MemoryManifest(entries=tuple(entries[key] for key in sorted(entries)))


def build_commit(
    artifact_id: str, base: Memory | None, delta: Delta, projections: tuple[MemoryProjection, ...] = ()
) -> MemoryCommit:
    """Return the complete commit a plan stands for.

    Args:
        artifact_id: Id of the memory.
        base: The revision the plan was made against; None for a new memory.
        delta: The plan.
        projections: What is searched of the entries that are active afterwards.
    """
    manifest = MemoryManifest() if base is None else base.content.manifest
    digests = {entry_id: version.entry_content_hash for entry_id, version in delta.versions.items()}
    content = MemoryContent(manifest=next_manifest(manifest, delta.changes, digests), changes=delta.changes)
    memory = Memory(artifact_id=artifact_id, revision=delta.revision, content=content, lineage=delta.lineage)
    return MemoryCommit(
        base=base,
        memory=memory,
        content_hash=memory_content_hash(content),
        entry_versions=tuple(delta.versions[key] for key in sorted(delta.versions)),
        projections=projections,
    )


def check_commit(commit: MemoryCommit) -> Delta:
    """Return the plan of a complete commit, if every part of it fits the others.

    Raises:
        InvalidMemoryCitationError: The memory does not follow its base
            (``base-mismatch``, ``memory-mismatch``), a hash is wrong
            (``hash-mismatch``), a version is given twice (``duplicate-versions``), is
            missing (``missing-version``) or belongs elsewhere (``cross-identity``), or
            the projections are not those of the active entries (``projection-version``).
    """
    base, memory = commit.base, commit.memory
    following = 1 if base is None else base.revision + 1
    if memory.family != MEMORY_FAMILY or (base is not None and base.artifact_id != memory.artifact_id):
        raise InvalidMemoryCitationError("cross-identity", "the new revision is of another memory than its base")
    if memory.revision != following:
        raise InvalidMemoryCitationError("base-mismatch", f"the revision after the base is {following}")
    if commit.content_hash != memory_content_hash(memory.content):
        raise InvalidMemoryCitationError("hash-mismatch", "the content hash is not that of the content")
    versions = {version.entry_id: version for version in commit.entry_versions}
    if len(versions) != len(commit.entry_versions):
        raise InvalidMemoryCitationError("duplicate-versions", "an entry has two new versions")
    targets = {change.to_entry_version_id for change in memory.content.changes}
    for version in commit.entry_versions:
        _check_version(version, memory, targets)
    digests = {entry_id: version.entry_content_hash for entry_id, version in versions.items()}
    before = MemoryManifest() if base is None else base.content.manifest
    if next_manifest(before, memory.content.changes, digests) != memory.content.manifest:
        raise InvalidMemoryCitationError("memory-mismatch", "the manifest is not what the changes make of the base")
    _check_projections(commit)
    ordered = tuple(sorted(memory.content.changes, key=lambda change: change.entry_id))
    return Delta(memory.revision, ordered, versions, {}, memory.lineage)


def _check_version(version: MemoryEntryVersion, memory: Memory, targets: set[str | None]) -> None:
    if version.memory_artifact_id != memory.artifact_id or version.created_in_revision != memory.revision:
        raise InvalidMemoryCitationError("cross-identity", "a version names another memory or revision")
    digest = entry_content_hash(version.kind, version.text, version.sources, version.artifacts)
    if digest != version.entry_content_hash:
        raise InvalidMemoryCitationError("hash-mismatch", "a version's hash is not that of its content")
    if version.entry_version_id not in targets:
        raise InvalidMemoryCitationError("missing-version", "a version is given that no change brings")


def _check_projections(commit: MemoryCommit) -> None:
    active = {e.entry_version_id for e in commit.memory.content.manifest.entries if e.state == "active"}
    projected = [projection.entry_version.entry_version_id for projection in commit.projections]
    if len(projected) != len(active) or set(projected) != active:
        raise InvalidMemoryCitationError("projection-version", "projections are not one for each active entry")
