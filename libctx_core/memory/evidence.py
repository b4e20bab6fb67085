"""Evidence of a write: resolved to canonical values and references, and kept within bounds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pydantic import BaseModel, JsonValue

from libctx_core.artifacts.values import AnyArtifact, ArtifactLineage, ArtifactRef
from libctx_core.errors import InvalidMemoryEvidenceError, SourceAdapterNotFoundError
from libctx_core.memory.canonical import normalise
from libctx_core.memory.plan import Proposal
from libctx_core.memory.values import MemoryEntryInput
from libctx_core.sources.content import ContentSource
from libctx_core.sources.values import Source, SourceRef


class SourceResolver(Protocol):
    """Finds the stored source behind a given one; a `SourceCatalog` is one."""

    async def get(self, source: Source, /) -> Source:
        """Return the stored source that equals `source`."""
        ...

    def as_ref(self, source: Source, /) -> SourceRef:
        """Return its reference."""
        ...


class ArtifactResolver(Protocol):
    """Finds the stored revision behind a given one; an artifact catalog is one."""

    async def get(self, artifact: Any, /) -> Any:
        """Return the stored revision that equals `artifact`."""
        ...


class MemoryEvidenceProjector(Protocol):
    """Says what of a piece of evidence a model gets to see."""

    def project_source(self, source: Source, /) -> JsonValue:
        """Return the JSON a model sees of a source."""
        ...

    def project_artifact(self, artifact: AnyArtifact, /) -> JsonValue:
        """Return the JSON a model sees of an artifact."""
        ...


class DefaultMemoryEvidenceProjector:
    """Shows a model the description of a source, not its content."""

    def project_source(self, source: Source, /) -> JsonValue:
        """Return name, materialization and description."""
        return checked_json(
            {
                "name": source.name,
                "materialization": source.materialization.value,
                "description": source.description,
            }
        )

    def project_artifact(self, artifact: AnyArtifact, /) -> JsonValue:
        """Return identity, family and content."""
        content = artifact.content
        return checked_json(
            {
                "artifact_id": artifact.artifact_id,
                "revision": artifact.revision,
                "family": artifact.family,
                "content": content.model_dump(mode="json") if isinstance(content, BaseModel) else content,
            }
        )


class ContentEvidenceProjector(DefaultMemoryEvidenceProjector):
    """Shows a model the text of captured sources too."""

    def project_source(self, source: Source, /) -> JsonValue:
        """Return the description; for captured text its content and metadata as well."""
        described = super().project_source(source)
        if isinstance(source, ContentSource) and isinstance(described, dict):
            return checked_json({**described, "content": source.content, "metadata": source.metadata})
        return described


def checked_json(value: object) -> JsonValue:
    """Return `value` if it is JSON, in normal form C.

    Raises:
        InvalidMemoryEvidenceError: It is not (``projection``).
    """
    try:
        plain: JsonValue = normalise(value)  # type: ignore[assignment]  # JSON in, JSON out
    except TypeError as error:
        raise InvalidMemoryEvidenceError("projection", "the projection is not JSON") from error
    return plain


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of one operation.

    Attributes:
        sources: Stored sources.
        artifacts: Stored artifacts.
        lineage: References to them, in the order they were given.
    """

    sources: tuple[Source, ...] = ()
    artifacts: tuple[AnyArtifact, ...] = ()
    lineage: ArtifactLineage = field(default_factory=ArtifactLineage)


class EvidenceResolver:
    """Turns given sources and artifacts into stored ones and their references.

    Args:
        sources: Finds sources; without it none may be given.
        artifacts: Finds artifacts; without it none may be given.
    """

    def __init__(self, sources: SourceResolver | None, artifacts: ArtifactResolver | None) -> None:
        self._sources = sources
        self._artifacts = artifacts

    async def resolve(self, sources: Sequence[Source], artifacts: Sequence[AnyArtifact]) -> Evidence:
        """Return the evidence of an operation.

        Raises:
            InvalidMemoryEvidenceError: It is given without a resolver (``source-resolver``,
                ``artifact-resolver``), or no adapter knows a source (``source-adapter``).
            SourceNotFoundError: A source is not stored.
            ArtifactNotFoundError: An artifact is not stored.
        """
        found_sources, source_refs = [], []
        for source in sources:
            if self._sources is None:
                raise InvalidMemoryEvidenceError("source-resolver", "sources were given, and nothing resolves them")
            source_refs.append(self._ref(source))
            found_sources.append(await self._sources.get(source))
        found_artifacts: list[AnyArtifact] = []
        artifact_refs: list[ArtifactRef] = []
        for artifact in artifacts:
            if self._artifacts is None:
                raise InvalidMemoryEvidenceError("artifact-resolver", "artifacts were given, and nothing resolves them")
            found_artifacts.append(await self._artifacts.get(artifact))
            artifact_refs.append(artifact.as_ref())
        lineage = ArtifactLineage(sources=tuple(source_refs), artifacts=tuple(artifact_refs))
        return Evidence(tuple(found_sources), tuple(found_artifacts), lineage)

    def _ref(self, source: Source) -> SourceRef:
        if self._sources is None:
            raise InvalidMemoryEvidenceError("source-resolver", "sources were given, and nothing resolves them")
        try:
            return self._sources.as_ref(source)
        except SourceAdapterNotFoundError as error:
            raise InvalidMemoryEvidenceError("source-adapter", "no adapter knows the class of a source") from error

    def propose(self, entry: MemoryEntryInput, lineage: ArtifactLineage) -> Proposal:
        """Return an entry as a proposal whose evidence lies within that of the operation.

        Raises:
            InvalidMemoryEvidenceError: It cites a source (``source-outside``) or an
                artifact (``artifact-outside``) that the operation does not bring; an
                artifact of the version it revises is fine.
        """
        sources = tuple(self._ref(source) for source in entry.sources)
        if not set(sources) <= set(lineage.sources):
            raise InvalidMemoryEvidenceError("source-outside", "an entry cites a source the operation does not bring")
        artifacts = tuple(artifact.as_ref() for artifact in entry.artifacts)
        known = {*lineage.artifacts, *(entry.entry.artifacts if entry.entry is not None else ())}
        if not set(artifacts) <= known:
            raise InvalidMemoryEvidenceError(
                "artifact-outside", "an entry cites an artifact the operation does not bring"
            )
        return Proposal(
            kind=entry.kind,
            text=entry.text,
            sources=sources,
            artifacts=artifacts,
            entry=entry.entry,
            reason=entry.reason,
            tags=entry.tags or None,
            context=entry.context,
        )
