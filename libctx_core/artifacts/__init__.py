"""Artifacts: revisions with lineage, written only on top of the latest one."""

from libctx_core.artifacts.catalog import ArtifactCatalog, Artifacts, ArtifactStore
from libctx_core.artifacts.shelf import ArtifactShelf, SQLiteArtifactStore
from libctx_core.artifacts.values import AnyArtifact, Artifact, ArtifactDraft, ArtifactLineage, ArtifactRef

__all__ = [
    "AnyArtifact",
    "Artifact",
    "ArtifactCatalog",
    "ArtifactDraft",
    "ArtifactLineage",
    "ArtifactRef",
    "ArtifactShelf",
    "ArtifactStore",
    "Artifacts",
    "SQLiteArtifactStore",
]
