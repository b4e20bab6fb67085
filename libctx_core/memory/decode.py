"""Between the rows of the store and the values of the memory family."""

import json
from collections.abc import Sequence

from libctx_core.artifacts.values import ArtifactLineage, ArtifactRef
from libctx_core.errors import InvalidInputError, MemoryEntryPurgedError
from libctx_core.memory.plan import Delta, Note
from libctx_core.memory.values import (
    EntryContext,
    MemoryChange,
    MemoryEntryVersion,
    MemoryManifestEntry,
)
from libctx_core.models import is_storable
from libctx_core.sources.values import SourceRef
from libctx_core.store.memory_schema import OPS, ChangeRow, ManifestRow, VersionRow
from libctx_core.store.memory_writes import NewVersion, Step

MAX_TAG_LENGTH = 128
MAX_TAGS = 64


def sources_of(packed: str | None) -> tuple[SourceRef, ...]:
    """Return source references from their stored form."""
    if packed is None:
        return ()
    return tuple(SourceRef.trusted(source_type=name, source_id=key) for name, key in json.loads(packed))


def artifacts_of(packed: str | None) -> tuple[ArtifactRef, ...]:
    """Return artifact references from their stored form."""
    if packed is None:
        return ()
    return tuple(
        ArtifactRef.trusted(family=family, artifact_id=key, revision=revision)
        for family, key, revision in json.loads(packed)
    )


def source_pairs(refs: Sequence[SourceRef]) -> list[tuple[str, str]]:
    """Return source references in the form they are stored in."""
    return [(ref.source_type, ref.source_id) for ref in refs]


def artifact_triples(refs: Sequence[ArtifactRef]) -> list[tuple[str, str, int]]:
    """Return artifact references in the form they are stored in."""
    return [(ref.family, ref.artifact_id, ref.revision) for ref in refs]


def version_of(row: VersionRow, artifact_id: str) -> MemoryEntryVersion:
    """Return an entry version from its row.

    Raises:
        MemoryEntryPurgedError: Its text was deleted.
    """
    if row.text is None or row.kind is None:
        raise MemoryEntryPurgedError(row.entry_id)
    return MemoryEntryVersion.trusted(
        memory_artifact_id=artifact_id,
        entry_id=row.entry_id,
        entry_version_id=row.version_id,
        version=row.version,
        previous_version_id=row.previous_id,
        kind=row.kind,
        text=row.text,
        entry_content_hash=row.digest.hex(),
        created_in_revision=row.revision,
        sources=sources_of(row.sources),
        artifacts=artifacts_of(row.artifacts),
    )


def tombstone_of(row: VersionRow, artifact_id: str) -> MemoryEntryVersion:
    """Return what is left of a version: the text and kind of a purged one are empty."""
    return version_of(row if row.text is not None else row._replace(text="", kind=""), artifact_id)


def change_of(row: ChangeRow) -> MemoryChange:
    """Return a change from its row."""
    return MemoryChange.trusted(
        op=OPS[row.op],
        entry_id=row.entry_id,
        from_entry_version_id=row.before_id,
        to_entry_version_id=row.after_id,
        reason=row.reason,
    )


def manifest_entry_of(row: ManifestRow) -> MemoryManifestEntry:
    """Return a manifest line from its row."""
    return MemoryManifestEntry.trusted(
        entry_id=row.entry_id,
        entry_version_id=row.version_id,
        entry_content_hash=row.digest.hex(),
        state="active" if row.active else "inactive",
    )


def lineage_of(sources: str | None, artifacts: str | None) -> ArtifactLineage:
    """Return the evidence of a revision from its stored form."""
    return ArtifactLineage.trusted(sources=sources_of(sources), artifacts=artifacts_of(artifacts))


def pack_tags(tags: Sequence[str] | None) -> str | None:
    """Return tags as they are stored: sorted, each once; None for None.

    Raises:
        InvalidInputError: One is blank, over 128 characters or not storable, or there are over 64.
    """
    if tags is None:
        return None
    unique = sorted({tag.strip() for tag in tags})
    if len(unique) > MAX_TAGS:
        raise InvalidInputError("tags", f"at most {MAX_TAGS} are allowed, these are {len(unique)}")
    for tag in unique:
        if not tag or len(tag) > MAX_TAG_LENGTH or not is_storable(tag):
            raise InvalidInputError("tags", f"a tag is 1 to {MAX_TAG_LENGTH} storable characters")
    return json.dumps(unique, ensure_ascii=False)


def tags_of(packed: str | None) -> tuple[str, ...]:
    """Return tags from their stored form."""
    return tuple(json.loads(packed)) if packed else ()


def context_of(packed: str | None) -> EntryContext:
    """Return the context of an entry from its stored form."""
    return EntryContext.model_validate_json(packed) if packed else EntryContext()


def _pack_context(context: EntryContext | None) -> str | None:
    return None if context is None else context.model_dump_json(exclude_defaults=True)


_NOTHING = Note()


def steps_of(delta: Delta) -> list[Step]:
    """Return a plan in the form the store writes, in the order the entries were given.

    Order matters: what was said together is stored, and found, side by side.
    """
    steps = []
    given = {entry_id: at for at, entry_id in enumerate(delta.versions)}
    for change in sorted(delta.changes, key=lambda change: given.get(change.entry_id, -1)):
        version = delta.versions.get(change.entry_id)
        note = delta.notes.get(change.entry_id, _NOTHING)
        steps.append(
            Step(
                change.op,
                change.entry_id,
                change.reason,
                None if version is None else _new_version(version),
                pack_tags(note.tags),
                _pack_context(note.context),
            )
        )
    return steps


def _new_version(version: MemoryEntryVersion) -> NewVersion:
    return NewVersion(
        version.version,
        version.entry_version_id,
        version.kind,
        version.text,
        bytes.fromhex(version.entry_content_hash),
        source_pairs(version.sources),
        artifact_triples(version.artifacts),
    )
