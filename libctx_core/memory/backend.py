"""The seed's asynchronous ports: what a memory backend must offer."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from libctx_core.artifacts.values import ArtifactRef
from libctx_core.memory.embedding import EmbeddingModel, EmbeddingProfile
from libctx_core.memory.search_values import (
    MemoryCapabilities,
    MemoryHit,
    MemoryProjection,
    MemorySearchChannels,
    MemorySearchRequest,
)
from libctx_core.memory.values import Memory, MemoryEntryVersion, MemoryRevisionChanges
from libctx_core.sources.base import Value


class MemoryCommit(Value):
    """A complete revision and everything that is stored with it.

    Attributes:
        base: The revision it follows; None for the first one.
        memory: The new revision.
        content_hash: Its canonical content hash.
        entry_versions: The versions it brings.
        projections: What is searched of its active entries, one each.
    """

    base: Memory | None
    memory: Memory
    content_hash: str
    entry_versions: tuple[MemoryEntryVersion, ...]
    projections: tuple[MemoryProjection, ...]


class MemoryUnitOfWork(Protocol):
    """One atomic write."""

    async def commit(self, commit: MemoryCommit, /) -> Memory:
        """Store a revision if its base is the newest one; works once."""
        ...


class MemoryBackend(Protocol):
    """Storage and retrieval that `MemoryService` needs."""

    async def capabilities(self) -> MemoryCapabilities:
        """Return what can be searched as the backend is set up."""
        ...

    async def get(self, memory: ArtifactRef, /) -> Memory:
        """Return one exact revision."""
        ...

    async def latest(self, artifact_id: str, /) -> Memory:
        """Return the newest revision of one memory."""
        ...

    async def entries(self, memory: ArtifactRef, /) -> tuple[MemoryEntryVersion, ...]:
        """Return the entry versions of a revision's manifest."""
        ...

    async def projections(self, memory: ArtifactRef, /) -> tuple[MemoryProjection, ...]:
        """Return what is searched of the active entries of a head."""
        ...

    async def rebuild_projections(self, embedding_model: EmbeddingModel | None = None, /) -> None:
        """Make what is searched again from the revisions."""
        ...

    def begin(self) -> AbstractAsyncContextManager[MemoryUnitOfWork]:
        """Open one atomic write."""
        ...

    async def changes(self, memory: ArtifactRef, since_revision: int | None, /) -> tuple[MemoryRevisionChanges, ...]:
        """Return what revisions changed, without the text of entries."""
        ...

    async def vector_complete(self, memories: tuple[ArtifactRef, ...], profile: EmbeddingProfile, /) -> bool:
        """Tell whether every active entry of some heads has a vector of a profile."""
        ...

    async def search(self, request: MemorySearchRequest, /) -> MemorySearchChannels:
        """Return the ranking of each channel, best first."""
        ...

    async def expand(self, hits: tuple[MemoryHit, ...], /) -> tuple[MemoryEntryVersion, ...]:
        """Return the exact versions that hits stand for, in their order."""
        ...
