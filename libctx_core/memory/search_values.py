"""Values of memory search: requests, channel rankings, hits, receipts."""

from typing import Any, Literal, TypeAlias

from pydantic import Field

from libctx_core.artifacts.values import ArtifactRef
from libctx_core.display import Html, table_html
from libctx_core.memory.embedding import EmbeddingProfile, EmbeddingVector
from libctx_core.memory.inference import InferenceUsage
from libctx_core.memory.values import MemoryCitation, MemoryEntryVersion
from libctx_core.sources.base import Value

MemorySearchMode: TypeAlias = Literal["auto", "fts", "vector", "hybrid"]
MemoryUsedSearchMode: TypeAlias = Literal["fts", "vector", "hybrid"]
MemoryMatchedBy: TypeAlias = Literal["fts", "vector"]


class MemoryCapabilities(Value):
    """What a backend can do as it is set up.

    Attributes:
        fts: Search by words.
        vector: Search by vectors.
        hybrid: Search by both.
        embedding_profile: What makes its vectors.
    """

    fts: bool
    vector: bool = False
    hybrid: bool = False
    embedding_profile: EmbeddingProfile | None = None


class MemoryProjection(Value):
    """What is searched of one active entry; it can be made again from the entry.

    Attributes:
        entry_version: The version.
        searchable_text: The text that is searched.
        embedding: Its vector.
        embedding_content_hash: Hash under which the vector is valid.
    """

    entry_version: MemoryEntryVersion
    searchable_text: str
    embedding: EmbeddingVector | None = None
    embedding_content_hash: str | None = None


class MemorySearchRequest(Value):
    """A checked request to a backend, for explicit heads.

    Attributes:
        query: The question.
        analyzed_query: Its terms, separated by blanks.
        memories: Heads to search.
        candidate_limit: Hits wanted per channel.
        mode: Channels to use.
        query_vector: Vector of the question.
        embedding_profile: What made it.
    """

    query: str
    analyzed_query: str
    memories: tuple[ArtifactRef, ...]
    candidate_limit: int
    mode: MemoryUsedSearchMode
    query_vector: EmbeddingVector | None = None
    embedding_profile: EmbeddingProfile | None = None


class MemoryChannelHit(Value):
    """A candidate of one channel.

    Attributes:
        memory_ref: The head it was found in.
        entry_id: The entry.
        entry_version_id: Its version.
        text: What it says.
        distance: Distance of its vector, for the vector channel.
    """

    memory_ref: ArtifactRef
    entry_id: str
    entry_version_id: str
    text: str
    distance: float | None = Field(default=None, ge=0.0, allow_inf_nan=False)


class MemorySearchChannels(Value):
    """Rankings of both channels, best first."""

    fts: tuple[MemoryChannelHit, ...] = ()
    vector: tuple[MemoryChannelHit, ...] = ()


class MemoryHit(Value):
    """A result, anchored to exact content.

    Attributes:
        memory_ref: The head it was found in.
        entry_id: The entry.
        entry_version_id: Its version.
        text: What it says.
        score: What it was ranked by; comparable within one result only.
        matched_by: Channels that found it.
        relevance: Calibrated, 0 to 1; comparable across searches.
    """

    memory_ref: ArtifactRef
    entry_id: str
    entry_version_id: str
    text: str
    score: float
    matched_by: tuple[MemoryMatchedBy, ...]
    relevance: float = 0.0

    @property
    def citation(self) -> MemoryCitation:
        """The anchor of the version that was found."""
        return MemoryCitation(
            memory_ref=self.memory_ref, entry_id=self.entry_id, entry_version_id=self.entry_version_id
        )


class MemoryRerankTrace(Value):
    """What a reranker saw and chose.

    Attributes:
        policy_id: Name of its policy.
        candidate_hits: What it was shown, best first.
        selected_ranks: Places it chose, from 1.
        discarded_rank_count: Places it named that were repeated or out of range.
        used_fallback: It chose nothing usable, and the first places were taken.
        latency_ms: How long it took, milliseconds.
        usage: What it cost.
    """

    policy_id: str = Field(min_length=1)
    candidate_hits: tuple[MemoryHit, ...]
    selected_ranks: tuple[int, ...]
    discarded_rank_count: int = 0
    used_fallback: bool = False
    latency_ms: float = Field(ge=0.0, allow_inf_nan=False)
    usage: InferenceUsage


class HitReceipt(Value):
    """Why a hit stands where it stands.

    Attributes:
        entry_id: The entry.
        rank: Its place in the result, from 1.
        channel_ranks: Its place in each channel that found it, from 1.
        signals: Each signal's part of the score.
    """

    entry_id: str
    rank: int
    channel_ranks: dict[str, int]
    signals: dict[str, float]


class Omission(Value):
    """A candidate that is not in the result.

    Attributes:
        entry_id: The entry.
        rank: Its place among the candidates, from 1.
        reason: ``limit`` (better ones filled the result), ``relevance`` (below the
            minimum), ``stale`` (it changed while being searched) or ``reranker``.
    """

    entry_id: str
    rank: int
    reason: Literal["limit", "relevance", "stale", "reranker"]


class SearchReceipt(Value):
    """How a result came about.

    Attributes:
        terms: The words of the question that were looked up.
        candidates: Candidates that were ranked.
        hits: One receipt per hit, in order.
        omitted: Candidates that are not in the result, best first.
    """

    terms: tuple[str, ...]
    candidates: int
    hits: tuple[HitReceipt, ...]
    omitted: tuple[Omission, ...]


class MemorySearchResult(Value):
    """Hits and how they were found.

    Attributes:
        mode: Channels that were used.
        hits: What was found, best first.
        rerank: What the reranker did, if there is one.
        receipt: How the result came about, if asked for.
    """

    mode: MemoryUsedSearchMode
    hits: tuple[MemoryHit, ...] = ()
    rerank: MemoryRerankTrace | None = None
    receipt: SearchReceipt | None = None

    def to_records(self) -> list[dict[str, Any]]:
        """Return one dict per hit."""
        return [
            {
                "rank": rank,
                "text": hit.text,
                "matched by": "+".join(hit.matched_by),
                "relevance": round(hit.relevance, 3),
                "score": round(hit.score, 3),
                "entry": hit.entry_id,
            }
            for rank, hit in enumerate(self.hits, start=1)
        ]

    def _repr_html_(self) -> Html:
        return table_html(f"{len(self.hits)} entries ({self.mode})", self.to_records())
