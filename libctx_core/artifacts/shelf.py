"""The stored artifacts of one collection: first revisions, optimistic next ones, history."""

from collections.abc import Callable, Iterable
from typing import Any

import apsw
from pydantic import BaseModel

from libctx_core.artifacts.values import (
    MAX_ARTIFACT_ID_LENGTH,
    AnyArtifact,
    Artifact,
    ArtifactDraft,
    ArtifactLineage,
    ArtifactRef,
    check_part,
)
from libctx_core.concurrency import run_sync
from libctx_core.errors import (
    ArtifactFamilyMismatchError,
    ArtifactNotFoundError,
    InvalidInputError,
    RevisionConflictError,
)
from libctx_core.errors.access import Operation
from libctx_core.models import new_id
from libctx_core.sources.guard import Enrolment, OpenGuard, OwnerGuard
from libctx_core.sources.values import SourceRef, check_scope_id
from libctx_core.store import artifacts as rows
from libctx_core.store.database import Database
from libctx_core.store.owners import ARTIFACT, OWNERS, create_owner, find_owner

AnyDraft = ArtifactDraft[Any]


class ArtifactShelf:
    """Artifacts of one collection, in a library file; each family is one resource.

    Args:
        database: The library.
        collection: The collection, at most 256 characters.
        families: The artifact class of each family; its content must be a pydantic model.
        guard: Decides what the active scope may do.
        id_factory: Makes the id of a new artifact.
    """

    def __init__(
        self,
        database: Database,
        collection: str,
        families: Iterable[type[Artifact[Any]]],
        *,
        guard: OwnerGuard | None = None,
        id_factory: Callable[[], str] = lambda: new_id("art"),
    ) -> None:
        self.collection = check_scope_id(collection)
        self._classes = {family.family: family for family in families}
        self._database = database
        self._guard: OwnerGuard = guard or OpenGuard()
        self._id_factory = id_factory
        database.ensure(OWNERS)
        database.ensure(rows.ARTIFACTS)

    def add(self, draft: AnyDraft) -> AnyArtifact:
        """Commit the first revision of a new artifact.

        Raises:
            InvalidInputError: The family is not registered here, or its content is no model.
            ContextAccessDenied: The active scope may not write the family.
        """
        artifact_id = self._id_factory()
        check_part("artifact_id", artifact_id, MAX_ARTIFACT_ID_LENGTH)
        return self._commit(draft, artifact_id, base=None)

    def revise(self, artifact: AnyArtifact, draft: AnyDraft) -> AnyArtifact:
        """Commit the next revision, only if `artifact` is still the latest.

        Raises:
            ArtifactFamilyMismatchError: The draft is of another family.
            ArtifactNotFoundError: `artifact` is not what is stored under its reference.
            RevisionConflictError: A later revision exists.
        """
        if artifact.family != draft.family:
            raise ArtifactFamilyMismatchError(artifact, draft)
        self.get(artifact)
        return self._commit(draft, artifact.artifact_id, base=artifact)

    def get(self, artifact: AnyArtifact) -> AnyArtifact:
        """Return the canonical revision that equals `artifact`.

        Raises:
            ArtifactNotFoundError: None does.
        """
        stored = self.revision(artifact.as_ref())
        if type(stored) is not type(artifact) or stored != artifact:
            raise ArtifactNotFoundError(artifact)
        return stored

    def revision(self, ref: ArtifactRef) -> AnyArtifact:
        """Return one exact revision.

        Raises:
            ArtifactNotFoundError: It is not stored.
        """
        with self._database.read() as connection:
            self._require(connection, Operation.READ, ref.family)
            found = rows.read_artifacts(connection, self.collection, ref.family, ref.artifact_id, revision=ref.revision)
        if not found:
            raise ArtifactNotFoundError(ref)
        return self._decode(ref.family, found[0])

    def latest(self, artifact: AnyArtifact) -> AnyArtifact:
        """Return the latest revision of an artifact.

        Raises:
            ArtifactNotFoundError: It has none.
        """
        with self._database.read() as connection:
            self._require(connection, Operation.READ, artifact.family)
            head = rows.head_revision(connection, self.collection, artifact.family, artifact.artifact_id)
            found = rows.read_artifacts(
                connection, self.collection, artifact.family, artifact.artifact_id, revision=head
            )
        if not found:
            raise ArtifactNotFoundError(artifact)
        return self._decode(artifact.family, found[0])

    def revisions(self, artifact: AnyArtifact) -> tuple[AnyArtifact, ...]:
        """Return the history of an artifact, by rising revision.

        Raises:
            ArtifactNotFoundError: It has none.
        """
        with self._database.read() as connection:
            self._require(connection, Operation.READ, artifact.family)
            found = rows.read_artifacts(connection, self.collection, artifact.family, artifact.artifact_id)
        if not found:
            raise ArtifactNotFoundError(artifact)
        return tuple(self._decode(artifact.family, row) for row in found)

    def _commit(self, draft: AnyDraft, artifact_id: str, *, base: AnyArtifact | None) -> AnyArtifact:
        kind = self._class_of(draft.family)
        if not isinstance(draft.content, BaseModel):
            raise InvalidInputError("content", f"must be a pydantic model, not {type(draft.content).__name__}")
        content = draft.content.model_dump_json(by_alias=True)
        evidence = [rows.EvidenceRow(ref.source_type, ref.source_id) for ref in draft.sources]
        evidence += [rows.EvidenceRow(ref.family, ref.artifact_id, ref.revision) for ref in draft.artifacts]
        revision = 0 if base is None else base.revision

        def store(connection: apsw.Connection) -> bool:
            if find_owner(connection, ARTIFACT, self.collection, draft.family) is None:
                enrolment = self._require(connection, Operation.CREATE, draft.family)
                resource_id, boundary_id = enrolment or (None, None)
                create_owner(
                    connection,
                    ARTIFACT,
                    self.collection,
                    draft.family,
                    resource_id=resource_id,
                    boundary_id=boundary_id,
                )
            else:
                self._require(connection, Operation.WRITE, draft.family)
            return rows.insert_revision(
                connection,
                self.collection,
                draft.family,
                artifact_id,
                base=revision,
                content=content,
                evidence=evidence,
            )

        stored = self._database.write(store)
        lineage = ArtifactLineage(sources=draft.sources, artifacts=draft.artifacts)
        result = kind(artifact_id=artifact_id, revision=revision + 1, content=draft.content, lineage=lineage)
        if not stored:
            raise RevisionConflictError(draft if base is None else base, self.latest(result))
        return result

    def _require(self, connection: apsw.Connection, operation: Operation, family: str) -> Enrolment | None:
        owner = find_owner(connection, ARTIFACT, self.collection, family)
        return self._guard.require(operation, ARTIFACT, self.collection, family, owner)

    def _class_of(self, family: str) -> type[Artifact[Any]]:
        try:
            return self._classes[family]
        except KeyError:
            raise InvalidInputError("family", f"none of the registered ones: {', '.join(self._classes)}") from None

    def _decode(self, family: str, row: rows.ArtifactRow) -> AnyArtifact:
        kind = self._class_of(family)
        content_class = kind.model_fields["content"].annotation
        if not (isinstance(content_class, type) and issubclass(content_class, BaseModel)):
            raise InvalidInputError("content", f"the class of family {family!r} does not name a pydantic model")
        sources = [SourceRef(source_type=e.name, source_id=e.key) for e in row.evidence if e.revision is None]
        artifacts = [
            ArtifactRef(family=e.name, artifact_id=e.key, revision=e.revision)
            for e in row.evidence
            if e.revision is not None
        ]
        return kind(
            artifact_id=row.artifact_id,
            revision=row.revision,
            content=content_class.model_validate_json(row.content),
            lineage=ArtifactLineage(sources=tuple(sources), artifacts=tuple(artifacts)),
        )


class SQLiteArtifactStore:
    """The seed's asynchronous catalog and store, over an `ArtifactShelf`."""

    def __init__(self, shelf: ArtifactShelf) -> None:
        self._shelf = shelf

    async def add(self, draft: AnyDraft, /) -> AnyArtifact:
        """Commit the first revision of a new artifact."""
        return await run_sync(self._shelf.add, draft)

    async def revise(self, artifact: AnyArtifact, draft: AnyDraft, /) -> AnyArtifact:
        """Commit the next revision, only if `artifact` is still the latest."""
        return await run_sync(self._shelf.revise, artifact, draft)

    async def get(self, artifact: AnyArtifact, /) -> AnyArtifact:
        """Return the canonical revision that equals `artifact`."""
        return await run_sync(self._shelf.get, artifact)

    async def latest(self, artifact: AnyArtifact, /) -> AnyArtifact:
        """Return the latest revision of `artifact`."""
        return await run_sync(self._shelf.latest, artifact)

    async def revisions(self, artifact: AnyArtifact, /) -> tuple[AnyArtifact, ...]:
        """Return the history of `artifact`, by rising revision."""
        return await run_sync(self._shelf.revisions, artifact)
