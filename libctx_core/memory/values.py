"""Values of the memory family: revisions, manifests, changes, entries, citations."""

from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from libctx_core.artifacts.values import AnyArtifact, Artifact, ArtifactRef
from libctx_core.sources.base import Value
from libctx_core.sources.values import Source, SourceRef

MemoryEntryState: TypeAlias = Literal["active", "inactive"]
MemoryChangeOp: TypeAlias = Literal["add", "revise", "deactivate", "reactivate"]
KnownMemoryEntryKind: TypeAlias = Literal["fact", "preference", "decision", "constraint", "working_note"]
"""Kinds a model may propose; callers may use any other."""

MEMORY_SCHEMA: Literal["powercontext.memory.v1"] = "powercontext.memory.v1"
MEMORY_FAMILY = "memory"


class MemoryManifestEntry(Value):
    """One logical entry in one revision.

    Attributes:
        entry_id: The entry.
        entry_version_id: Its version in this revision.
        entry_content_hash: Content hash of that version.
        state: Whether it counts: ``active`` or ``inactive``.
    """

    entry_id: str
    entry_version_id: str
    entry_content_hash: str
    state: MemoryEntryState


class MemoryManifest(Value):
    """The authoritative directory of one revision.

    Attributes:
        entries: Every entry, forgotten ones included, sorted by the bytes of its id.
        format: Version of this layout.
    """

    entries: tuple[MemoryManifestEntry, ...] = ()
    format: Literal["flat-v1"] = "flat-v1"


class MemoryChange(Value):
    """What one revision did to one entry.

    Attributes:
        op: ``add``, ``revise``, ``deactivate`` or ``reactivate``.
        entry_id: The entry.
        from_entry_version_id: Version before a ``revise`` or ``deactivate``.
        to_entry_version_id: Version after an ``add``, ``revise`` or ``reactivate``.
        reason: Why, if the writer said so.
    """

    op: MemoryChangeOp
    entry_id: str
    from_entry_version_id: str | None
    to_entry_version_id: str | None
    reason: str | None = None


class MemoryContent(Value):
    """The complete canonical content of one revision.

    Attributes:
        manifest: Every entry of the revision.
        changes: What the revision did, sorted by the bytes of the entry ids.
        schema_version: Version of this layout; ``schema`` on the wire.
    """

    model_config = ConfigDict(populate_by_name=True)

    manifest: MemoryManifest
    changes: tuple[MemoryChange, ...] = ()
    schema_version: Literal["powercontext.memory.v1"] = Field(default=MEMORY_SCHEMA, alias="schema")

    def __hash__(self) -> int:
        return hash((self.manifest, self.changes))

    @model_serializer(mode="wrap")
    def _complete(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # a stored revision loads its parts when they are first looked at
        _ = self.manifest, self.changes
        plain: dict[str, Any] = handler(self)
        return plain


class Memory(Artifact[MemoryContent]):
    """An immutable snapshot of one memory."""

    family: ClassVar[str] = MEMORY_FAMILY

    def __hash__(self) -> int:
        return hash((self.artifact_id, self.revision))

    @model_serializer(mode="wrap")
    def _complete(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        _ = self.content, self.lineage
        plain: dict[str, Any] = handler(self)
        return plain


class MemoryEntryVersion(Value):
    """One immutable version of one entry.

    Attributes:
        memory_artifact_id: The memory.
        entry_id: The entry.
        entry_version_id: This version.
        version: Which version, from 1.
        previous_version_id: The version it replaced.
        kind: What it is, e.g. ``fact``.
        text: What it says.
        entry_content_hash: Content hash of kind, text and references.
        created_in_revision: Revision that brought it.
        sources: Sources it stands on.
        artifacts: Artifact revisions it stands on.
    """

    memory_artifact_id: str
    entry_id: str
    entry_version_id: str
    version: int
    previous_version_id: str | None
    kind: str
    text: str
    entry_content_hash: str
    created_in_revision: int
    sources: tuple[SourceRef, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()


class EntryContext(Value):
    """Where an entry was said: what search ranks by, outside the canonical content.

    Attributes:
        speaker: Who said it.
        session: Name of the session; neighbours count within one session.
        occurred_at: When it was said, seconds since the epoch, UTC.
        caption: Text of attachments; searched, not shown.
        metadata: A JSON object, filterable in search.
    """

    speaker: str | None = None
    session: str | None = None
    occurred_at: float | None = None
    caption: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class MemoryEntryInput(Value):
    """A proposed entry, or a proposed revision of one.

    Attributes:
        kind: What it is, e.g. ``fact``.
        text: What it says, at most 8,192 UTF-8 bytes.
        entry: The version it revises; None adds an entry.
        sources: Sources it stands on.
        artifacts: Artifacts it stands on.
        reason: Why, at most 512 characters.
        tags: Labels of the entry; not part of the canonical content.
        context: Where it was said; not part of the canonical content.
    """

    kind: str
    text: str
    entry: MemoryEntryVersion | None = None
    sources: tuple[Source, ...] = ()
    artifacts: tuple[AnyArtifact, ...] = ()
    reason: str | None = None
    tags: tuple[str, ...] = ()
    context: EntryContext | None = None


class MemoryCitation(Value):
    """A stable anchor for one exact entry version.

    Attributes:
        memory_ref: A revision whose manifest holds it.
        entry_id: The entry.
        entry_version_id: The version.
    """

    memory_ref: ArtifactRef
    entry_id: str
    entry_version_id: str


class MemoryRevisionChanges(Value):
    """What one revision did.

    Attributes:
        memory_ref: The revision.
        changes: Its changes, sorted by the bytes of the entry ids.
    """

    memory_ref: ArtifactRef
    changes: tuple[MemoryChange, ...]
