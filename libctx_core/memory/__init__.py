"""Memory: entries in revisions, with evidence, history, search and deletion.

`Memories` is what `library.memory` is; `MemoryService` and the classes around it are the
asynchronous operations object in, object out.
"""

from libctx_core.memory.backend import MemoryBackend, MemoryCommit, MemoryUnitOfWork
from libctx_core.memory.canonical import (
    canonical_bytes,
    embedding_content_hash,
    entry_content_hash,
    memory_content_hash,
)
from libctx_core.memory.embedding import (
    EmbeddingModel,
    EmbeddingProfile,
    EmbeddingResult,
    EmbeddingVector,
    ModelEmbedder,
)
from libctx_core.memory.events import event_proposals, event_ref
from libctx_core.memory.evidence import (
    ArtifactResolver,
    ContentEvidenceProjector,
    DefaultMemoryEvidenceProjector,
    MemoryEvidenceProjector,
    SourceResolver,
)
from libctx_core.memory.extraction import (
    CandidatePipeline,
    LLMMemoryCandidatePipeline,
    MemoryCandidateRequest,
    MemoryExtractionCandidate,
    MemoryExtractionCurrentEntry,
    MemoryExtractionEvidence,
    MemoryExtractionInput,
    MemoryExtractionOutput,
)
from libctx_core.memory.family import ContextComponents, PowerContext
from libctx_core.memory.inference import GenerationResult, InferenceUsage, StructuredGenerator
from libctx_core.memory.memories import Memories
from libctx_core.memory.plan import Proposal
from libctx_core.memory.prompts import (
    RERANK_INSTRUCTIONS,
    MemoryExtractionProfile,
    extraction_instructions,
)
from libctx_core.memory.purge import PurgeReceipt
from libctx_core.memory.rerank import (
    LLMMemoryReranker,
    MemoryRerankCandidate,
    MemoryRerankDecision,
    MemoryReranker,
    MemoryRerankInput,
    MemoryRerankMode,
    MemoryRerankOutput,
)
from libctx_core.memory.search_values import (
    HitReceipt,
    MemoryCapabilities,
    MemoryChannelHit,
    MemoryHit,
    MemoryProjection,
    MemoryRerankTrace,
    MemorySearchChannels,
    MemorySearchRequest,
    MemorySearchResult,
    Omission,
    SearchReceipt,
)
from libctx_core.memory.service import MemoryService
from libctx_core.memory.sqlite import SQLiteMemoryBackend, SQLiteUnitOfWork
from libctx_core.memory.stores import MemoryPlan
from libctx_core.memory.values import (
    EntryContext,
    Memory,
    MemoryChange,
    MemoryCitation,
    MemoryContent,
    MemoryEntryInput,
    MemoryEntryVersion,
    MemoryManifest,
    MemoryManifestEntry,
    MemoryRevisionChanges,
)
from libctx_core.memory.views import EntryView, MemoryStatus, Remembered, RevisionDiff
from libctx_core.memory.windows import SourceWindows, WindowResult

__all__ = [
    "RERANK_INSTRUCTIONS",
    "ArtifactResolver",
    "CandidatePipeline",
    "ContentEvidenceProjector",
    "ContextComponents",
    "DefaultMemoryEvidenceProjector",
    "EmbeddingModel",
    "EmbeddingProfile",
    "EmbeddingResult",
    "EmbeddingVector",
    "EntryContext",
    "EntryView",
    "GenerationResult",
    "HitReceipt",
    "InferenceUsage",
    "LLMMemoryCandidatePipeline",
    "LLMMemoryReranker",
    "Memories",
    "Memory",
    "MemoryBackend",
    "MemoryCandidateRequest",
    "MemoryCapabilities",
    "MemoryChange",
    "MemoryChannelHit",
    "MemoryCitation",
    "MemoryCommit",
    "MemoryContent",
    "MemoryEntryInput",
    "MemoryEntryVersion",
    "MemoryEvidenceProjector",
    "MemoryExtractionCandidate",
    "MemoryExtractionCurrentEntry",
    "MemoryExtractionEvidence",
    "MemoryExtractionInput",
    "MemoryExtractionOutput",
    "MemoryExtractionProfile",
    "MemoryHit",
    "MemoryManifest",
    "MemoryManifestEntry",
    "MemoryPlan",
    "MemoryProjection",
    "MemoryRerankCandidate",
    "MemoryRerankDecision",
    "MemoryRerankInput",
    "MemoryRerankMode",
    "MemoryRerankOutput",
    "MemoryRerankTrace",
    "MemoryReranker",
    "MemoryRevisionChanges",
    "MemorySearchChannels",
    "MemorySearchRequest",
    "MemorySearchResult",
    "MemoryService",
    "MemoryStatus",
    "MemoryUnitOfWork",
    "ModelEmbedder",
    "Omission",
    "PowerContext",
    "Proposal",
    "PurgeReceipt",
    "Remembered",
    "RevisionDiff",
    "SQLiteMemoryBackend",
    "SQLiteUnitOfWork",
    "SearchReceipt",
    "SourceResolver",
    "SourceWindows",
    "StructuredGenerator",
    "WindowResult",
    "canonical_bytes",
    "embedding_content_hash",
    "entry_content_hash",
    "event_proposals",
    "event_ref",
    "extraction_instructions",
    "memory_content_hash",
]
