"""The naive model: every revision with its complete manifest, everything in dicts."""

from contextlib import asynccontextmanager

from libctx_core.artifacts import ArtifactRef
from libctx_core.errors import ArtifactNotFoundError, InvalidMemoryCitationError, RevisionConflictError
from libctx_core.memory import (
    Memory,
    MemoryCapabilities,
    MemoryChannelHit,
    MemoryCommit,
    MemoryEntryVersion,
    MemoryHit,
    MemoryProjection,
    MemoryRevisionChanges,
    MemorySearchChannels,
    MemorySearchRequest,
    canonical_bytes,
    memory_content_hash,
)


class NaiveBackend:
    """The seed's `MemoryBackend` as simply as it can be written."""

    def __init__(self) -> None:
        self.revisions: dict[str, list[Memory]] = {}
        self.hashes: dict[str, list[str]] = {}
        self.versions: dict[str, MemoryEntryVersion] = {}
        self.searchable: dict[str, tuple[MemoryProjection, ...]] = {}

    async def capabilities(self) -> MemoryCapabilities:
        return MemoryCapabilities(fts=True)

    async def get(self, memory: ArtifactRef, /) -> Memory:
        history = self.revisions.get(memory.artifact_id, [])
        if not 1 <= memory.revision <= len(history) or memory.family != "memory":
            raise ArtifactNotFoundError(memory)
        return history[memory.revision - 1]

    async def latest(self, artifact_id: str, /) -> Memory:
        if artifact_id not in self.revisions:
            raise ArtifactNotFoundError(artifact_id)
        return self.revisions[artifact_id][-1]

    async def entries(self, memory: ArtifactRef, /) -> tuple[MemoryEntryVersion, ...]:
        stored = await self.get(memory)
        return tuple(self.versions[entry.entry_version_id] for entry in stored.content.manifest.entries)

    async def projections(self, memory: ArtifactRef, /) -> tuple[MemoryProjection, ...]:
        await self.get(memory)
        return self.searchable[memory.artifact_id]

    async def rebuild_projections(self, embedding_model=None, /) -> None:
        return None

    @asynccontextmanager
    async def begin(self):
        yield self

    async def commit(self, commit: MemoryCommit, /) -> Memory:
        memory = commit.memory
        history = self.revisions.setdefault(memory.artifact_id, [])
        if len(history) != memory.revision - 1:
            current = history[-1] if history else None
            raise RevisionConflictError(commit.base, current)
        assert commit.content_hash == memory_content_hash(memory.content)
        assert canonical_bytes(memory.content.model_dump(mode="json", by_alias=True))
        active = {e.entry_version_id for e in memory.content.manifest.entries if e.state == "active"}
        assert {p.entry_version.entry_version_id for p in commit.projections} == active
        self.versions.update((version.entry_version_id, version) for version in commit.entry_versions)
        history.append(memory)
        self.hashes.setdefault(memory.artifact_id, []).append(commit.content_hash)
        self.searchable[memory.artifact_id] = commit.projections
        return memory

    async def changes(self, memory: ArtifactRef, since_revision: int | None, /):
        first = memory.revision if since_revision is None else since_revision + 1
        history = self.revisions[memory.artifact_id]
        return tuple(
            MemoryRevisionChanges(memory_ref=history[at - 1].as_ref(), changes=history[at - 1].content.changes)
            for at in range(first, memory.revision + 1)
        )

    async def vector_complete(self, memories, profile, /) -> bool:
        return False

    async def search(self, request: MemorySearchRequest, /) -> MemorySearchChannels:
        wanted = set(request.analyzed_query.split())
        found = []
        for ref in request.memories:
            for projection in self.searchable[ref.artifact_id]:
                words = projection.searchable_text.casefold().replace(".", " ").split()
                score = sum(any(word.startswith(term[:4]) for word in words) for term in wanted)
                if score:
                    found.append((score, ref, projection.entry_version))
        found.sort(key=lambda item: (-item[0], item[2].entry_id))
        return MemorySearchChannels(
            fts=tuple(
                MemoryChannelHit(memory_ref=ref, entry_id=v.entry_id, entry_version_id=v.entry_version_id, text=v.text)
                for _, ref, v in found[: request.candidate_limit]
            )
        )

    async def expand(self, hits: tuple[MemoryHit, ...], /) -> tuple[MemoryEntryVersion, ...]:
        found = []
        for hit in hits:
            stored = await self.get(hit.memory_ref)
            placed = {e.entry_id: e.entry_version_id for e in stored.content.manifest.entries}
            if placed.get(hit.entry_id) != hit.entry_version_id:
                raise InvalidMemoryCitationError("entry-mismatch", "the revision holds another version")
            found.append(self.versions[hit.entry_version_id])
        return tuple(found)
