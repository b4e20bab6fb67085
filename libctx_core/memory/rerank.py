"""Letting a model choose among candidates: it selects ranks, and nothing else."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pydantic import ConfigDict, Field

from libctx_core.errors import InvalidInferenceOutputError, InvalidInputError
from libctx_core.memory.inference import InferenceUsage, StructuredGenerator
from libctx_core.memory.prompts import MEMORY_RERANK_INSTRUCTIONS_VERSION
from libctx_core.memory.search_values import MemoryHit, MemoryRerankTrace
from libctx_core.sources.base import Value

OPERATION = "memory-rerank"
MAX_RERANK_POOL = 100
DEFAULT_RERANK_POOL = 30
"""Candidates a reranker is shown."""


class MemoryRerankMode(StrEnum):
    """Which reranker a deployment uses."""

    NONE = "none"
    LLM = "llm"


class _StrictValue(Value):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class MemoryRerankCandidate(_StrictValue):
    """A candidate as a model sees it."""

    rank: int = Field(ge=1)
    text: str = Field(min_length=1)


class MemoryRerankInput(_StrictValue):
    """A question and the candidates for it.

    Attributes:
        query: The question.
        max_results: Candidates to choose at most.
        candidates: The candidates, best first.
    """

    query: str = Field(min_length=1)
    max_results: int = Field(ge=1)
    candidates: tuple[MemoryRerankCandidate, ...]


class MemoryRerankOutput(_StrictValue):
    """The ranks a model chose, most useful first."""

    selected_ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MemoryRerankDecision:
    """A checked choice.

    Attributes:
        selected_ranks: Ranks chosen, from 1, each once.
        usage: What the choice cost.
        discarded_rank_count: Ranks that were repeated or out of range.
        used_fallback: Nothing usable was chosen, and the first ranks are taken.
    """

    selected_ranks: tuple[int, ...]
    usage: InferenceUsage
    discarded_rank_count: int = 0
    used_fallback: bool = False


class MemoryReranker(Protocol):
    """Chooses from candidates that are ranked already.

    Attributes:
        policy_id: Name of its policy.
    """

    policy_id: str

    async def rerank(self, query: str, candidates: tuple[MemoryHit, ...], limit: int, /) -> MemoryRerankDecision:
        """Return the ranks to keep."""
        ...


class LLMMemoryReranker:
    """Asks a model once for the useful candidates.

    Args:
        generator: The model, set up with `RERANK_INSTRUCTIONS` or its own.
    """

    policy_id = MEMORY_RERANK_INSTRUCTIONS_VERSION

    def __init__(self, generator: StructuredGenerator[MemoryRerankInput, MemoryRerankOutput], /) -> None:
        self._generator = generator

    async def rerank(self, query: str, candidates: tuple[MemoryHit, ...], limit: int, /) -> MemoryRerankDecision:
        """Return the model's choice; if nothing of it is usable, the first ranks.

        Raises:
            InvalidInputError: `limit` is not 1 to the number of candidates, or there are
                over 100 candidates.
            InvalidInferenceOutputError: The output is not in its schema.
        """
        if not 1 <= limit <= len(candidates) <= MAX_RERANK_POOL:
            raise InvalidInputError("limit", f"must be 1 to the number of candidates, which is 1 to {MAX_RERANK_POOL}")
        result = await self._generator.generate(
            MemoryRerankInput(
                query=query,
                max_results=limit,
                candidates=tuple(
                    MemoryRerankCandidate(rank=rank, text=hit.text) for rank, hit in enumerate(candidates, start=1)
                ),
            )
        )
        named = _checked_ranks(result.output)
        selected, discarded = _usable_ranks(named, len(candidates), limit)
        if not selected:
            return MemoryRerankDecision(tuple(range(1, limit + 1)), result.usage, discarded, used_fallback=True)
        return MemoryRerankDecision(selected, result.usage, discarded)


def _checked_ranks(output: object) -> tuple[int, ...]:
    ranks = output.selected_ranks if isinstance(output, MemoryRerankOutput) else None
    if ranks is None or not all(type(rank) is int for rank in ranks):
        raise InvalidInferenceOutputError(OPERATION, "the output is not in its schema")
    return tuple(ranks)


def _usable_ranks(ranks: Sequence[int], candidates: int, limit: int) -> tuple[tuple[int, ...], int]:
    """Return ranks in range, each once, up to the limit, and how many were discarded."""
    selected: dict[int, None] = {}
    discarded = 0
    for rank in ranks:
        if len(selected) == limit:
            break
        if 1 <= rank <= candidates and rank not in selected:
            selected[rank] = None
        else:
            discarded += 1
    return tuple(selected), discarded


async def reranked(
    reranker: MemoryReranker, query: str, candidates: tuple[MemoryHit, ...], limit: int
) -> tuple[tuple[MemoryHit, ...], MemoryRerankTrace]:
    """Return the candidates a reranker keeps, and what it saw and chose.

    Args:
        reranker: The reranker; its errors reach the caller.
        query: The question.
        candidates: The candidates, best first; at least one.
        limit: Hits wanted.

    Raises:
        InvalidInferenceOutputError: It named ranks out of range, or one twice.
    """
    started = time.perf_counter()
    wanted = min(limit, len(candidates))
    decision = await reranker.rerank(query, candidates, wanted)
    chosen, discarded = _usable_ranks(decision.selected_ranks, len(candidates), wanted)
    if discarded or chosen != tuple(decision.selected_ranks):
        raise InvalidInferenceOutputError(OPERATION, "the reranker named ranks that are not candidates, or one twice")
    trace = MemoryRerankTrace(
        policy_id=reranker.policy_id,
        candidate_hits=candidates,
        selected_ranks=chosen,
        discarded_rank_count=decision.discarded_rank_count,
        used_fallback=decision.used_fallback,
        latency_ms=(time.perf_counter() - started) * 1000.0,
        usage=decision.usage,
    )
    return tuple(candidates[rank - 1] for rank in chosen), trace
