"""Revisions that load their parts when they are first looked at.

A manifest lists every entry, so building one costs as much as the memory holds. A stored
revision is the same value, equal to one built in full, and pays for the manifest only
when somebody reads it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from pydantic import PrivateAttr

from libctx_core.artifacts.values import ArtifactLineage, ArtifactRef
from libctx_core.memory.values import (
    MEMORY_FAMILY,
    MEMORY_SCHEMA,
    Memory,
    MemoryChange,
    MemoryContent,
    MemoryManifest,
)


class RevisionReader(Protocol):
    """Reads the parts of stored revisions."""

    def read_manifest(self, owner: int, revision: int, /) -> MemoryManifest:
        """Return the manifest of a revision."""
        ...

    def read_changes(self, owner: int, revision: int, /) -> tuple[MemoryChange, ...]:
        """Return the changes of a revision."""
        ...

    def read_lineage(self, owner: int, revision: int, /) -> ArtifactLineage:
        """Return the evidence of a revision."""
        ...


class Origin(NamedTuple):
    """Where a stored revision comes from.

    Attributes:
        reader: The store that holds it.
        owner: Id of the memory's owner object.
        revision: The revision.
    """

    reader: RevisionReader
    owner: int
    revision: int


class StoredContent(MemoryContent):
    """Content of a stored revision; manifest and changes load on first use."""

    _origin: Origin = PrivateAttr()

    def __getattr__(self, name: str) -> Any:
        if name == "manifest":
            reader, owner, revision = self._origin
            self.__dict__[name] = reader.read_manifest(owner, revision)
            return self.__dict__[name]
        if name == "changes":
            reader, owner, revision = self._origin
            self.__dict__[name] = reader.read_changes(owner, revision)
            return self.__dict__[name]
        return _inherited(super(), name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MemoryContent):
            return NotImplemented
        if isinstance(other, StoredContent) and other._origin == self._origin:
            return True
        return self.changes == other.changes and self.manifest == other.manifest

    def __hash__(self) -> int:
        return hash((self.manifest, self.changes))

    def __repr_args__(self) -> Any:
        yield "revision", self._origin.revision

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain_content, (self.manifest, self.changes)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "StoredContent":
        return self

    def model_copy(  # type: ignore[override]  # the copy is no longer the stored content
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> MemoryContent:
        """Return a plain copy."""
        return MemoryContent(**{"manifest": self.manifest, "changes": self.changes, **(update or {})})


class StoredMemory(Memory):
    """A stored revision; content and lineage load on first use."""

    _origin: Origin = PrivateAttr()

    @property
    def origin(self) -> Origin:
        """Where it comes from."""
        return self._origin

    def __getattr__(self, name: str) -> Any:
        if name == "lineage":
            reader, owner, revision = self._origin
            self.__dict__[name] = reader.read_lineage(owner, revision)
            return self.__dict__[name]
        return _inherited(super(), name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Memory):
            return NotImplemented
        if isinstance(other, StoredMemory) and other._origin == self._origin:
            return True
        return (
            (self.artifact_id, self.revision) == (other.artifact_id, other.revision)
            and self.lineage == other.lineage
            and self.content == other.content
        )

    def __hash__(self) -> int:
        return hash((self.artifact_id, self.revision))

    def __repr_args__(self) -> Any:
        yield "artifact_id", self.artifact_id
        yield "revision", self.revision

    def __reduce__(self) -> tuple[Any, ...]:
        return _plain_memory, (self.artifact_id, self.revision, self.content, self.lineage)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> "StoredMemory":
        return self

    def model_copy(  # type: ignore[override]  # the copy is no longer the stored revision
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> Memory:
        """Return a plain copy."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return Memory(**{**fields, **(update or {})})


def stored_memory(artifact_id: str, origin: Origin) -> StoredMemory:
    """Return a revision whose parts load when they are first looked at."""
    content = _shell(StoredContent, origin, {"schema_version": MEMORY_SCHEMA})
    memory: StoredMemory = _shell(
        StoredMemory, origin, {"artifact_id": artifact_id, "revision": origin.revision, "content": content}
    )
    return memory


def _shell(kind: Any, origin: Origin, fields: dict[str, Any]) -> Any:
    """Build an instance whose other fields are missing until somebody asks for them."""
    value = kind.__new__(kind)
    object.__setattr__(value, "__dict__", fields)
    object.__setattr__(value, "__pydantic_fields_set__", set(fields))
    object.__setattr__(value, "__pydantic_extra__", None)
    object.__setattr__(value, "__pydantic_private__", {"_origin": origin})
    return value


def _inherited(parent: Any, name: str) -> Any:
    return parent.__getattr__(name)


def _plain_content(manifest: MemoryManifest, changes: tuple[MemoryChange, ...]) -> MemoryContent:
    return MemoryContent(manifest=manifest, changes=changes)


def _plain_memory(artifact_id: str, revision: int, content: MemoryContent, lineage: ArtifactLineage) -> Memory:
    return Memory(artifact_id=artifact_id, revision=revision, content=content, lineage=lineage)


def memory_ref(artifact_id: str, revision: int) -> ArtifactRef:
    """Return the reference of a stored revision, without checking it again."""
    return ArtifactRef.trusted(family=MEMORY_FAMILY, artifact_id=artifact_id, revision=revision)
