"""The asynchronous ports of artifacts and the group that composes them."""

from typing import Protocol, TypeVar, runtime_checkable

from libctx_core.artifacts.values import Artifact, ArtifactDraft
from libctx_core.errors import ArtifactFamilyMismatchError
from libctx_core.sources.values import ComponentGroup

ArtifactT = TypeVar("ArtifactT")
DraftT_contra = TypeVar("DraftT_contra", contravariant=True)


@runtime_checkable
class ArtifactCatalog(Protocol[ArtifactT]):
    """Reads revisions without owning their writes."""

    async def get(self, artifact: ArtifactT, /) -> ArtifactT:
        """Return the canonical revision that equals `artifact`."""
        ...

    async def latest(self, artifact: ArtifactT, /) -> ArtifactT:
        """Return the latest visible revision of `artifact`."""
        ...

    async def revisions(self, artifact: ArtifactT, /) -> tuple[ArtifactT, ...]:
        """Return the visible history of `artifact`, by rising revision."""
        ...


@runtime_checkable
class ArtifactStore(Protocol[DraftT_contra, ArtifactT]):
    """Commits revisions."""

    async def add(self, draft: DraftT_contra, /) -> ArtifactT:
        """Commit the first revision of a new artifact."""
        ...

    async def revise(self, artifact: ArtifactT, draft: DraftT_contra, /) -> ArtifactT:
        """Commit the next revision, only if `artifact` is still the latest."""
        ...


class Artifacts(ComponentGroup):
    """Storage and reading of artifacts under one name."""

    catalog: ArtifactCatalog[Artifact[object]]
    store: ArtifactStore[ArtifactDraft[object], Artifact[object]]

    async def add(self, draft: ArtifactDraft[object], /) -> Artifact[object]:
        """Commit the first revision of a new artifact; nothing is generated."""
        return await self.store.add(draft)

    async def revise(self, artifact: Artifact[object], draft: ArtifactDraft[object], /) -> Artifact[object]:
        """Commit the next revision, with `artifact` as its optimistic base.

        Raises:
            ArtifactFamilyMismatchError: The draft is of another family; the store is not touched.
            RevisionConflictError: `artifact` is no longer the latest.
        """
        if artifact.family != draft.family:
            raise ArtifactFamilyMismatchError(artifact, draft)
        return await self.store.revise(artifact, draft)

    async def get(self, artifact: Artifact[object], /) -> Artifact[object]:
        """Return the canonical revision that equals `artifact`."""
        return await self.catalog.get(artifact)

    async def latest(self, artifact: Artifact[object], /) -> Artifact[object]:
        """Return the latest visible revision of `artifact`."""
        return await self.catalog.latest(artifact)

    async def revisions(self, artifact: Artifact[object], /) -> tuple[Artifact[object], ...]:
        """Return the visible history of `artifact`, by rising revision."""
        return await self.catalog.revisions(artifact)
