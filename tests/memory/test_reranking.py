"""Reranking: a model selects ranks; it cannot invent, repeat or rewrite hits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libctx_core.errors import (
    InferenceTimeoutError,
    InvalidInferenceOutputError,
    InvalidInputError,
)
from libctx_core.memory import LLMMemoryReranker, MemoryHit, MemoryRerankDecision, MemoryRerankOutput, Proposal
from libctx_core.memory.inference import InferenceUsage
from libctx_core.memory.rerank import _usable_ranks
from libctx_core.memory.stored import memory_ref
from libctx_core.testing.generators import ScriptedGenerator
from libctx_core.testing.rerankers import RerankerSuite


def hits(count: int) -> tuple[MemoryHit, ...]:
    return tuple(
        MemoryHit(
            memory_ref=memory_ref("memory", 1),
            entry_id=f"e{at}",
            entry_version_id=f"v{at}",
            text=f"text {at}",
            score=1.0 / at,
            matched_by=("fts",),
        )
        for at in range(1, count + 1)
    )


def reranker(ranks) -> LLMMemoryReranker:
    return LLMMemoryReranker(ScriptedGenerator([MemoryRerankOutput(selected_ranks=tuple(ranks))]))


async def test_a_choice_is_kept_in_its_order():
    decision = await reranker([3, 1]).rerank("q", hits(5), 3)
    assert decision == MemoryRerankDecision((3, 1), InferenceUsage(requests=1))


async def test_repeated_and_foreign_ranks_are_discarded():
    decision = await reranker([0, 2, 2, 9, -1, 1, 3]).rerank("q", hits(3), 2)
    assert (decision.selected_ranks, decision.discarded_rank_count, decision.used_fallback) == ((2, 1), 4, False)


async def test_nothing_usable_falls_back_to_the_first_ranks():
    for ranks in ([], [9], [0, -3]):
        decision = await reranker(ranks).rerank("q", hits(3), 2)
        assert (decision.selected_ranks, decision.used_fallback) == ((1, 2), True)


@given(st.lists(st.integers(-3, 12)), st.integers(1, 10))
def test_usable_ranks_are_unique_in_range_and_few_enough(ranks, limit):
    selected, discarded = _usable_ranks(ranks, 10, limit)
    assert len(set(selected)) == len(selected) <= limit
    assert all(1 <= rank <= 10 for rank in selected)
    assert 0 <= discarded <= len(ranks) - len(selected)


@pytest.mark.parametrize(("count", "limit"), [(3, 0), (3, 4), (101, 5), (0, 1)])
async def test_bounds(count, limit):
    with pytest.raises(InvalidInputError):
        await reranker([1]).rerank("q", hits(count), limit)


@pytest.mark.parametrize("answer", [None, {"selected_ranks": [1]}, [1]])
async def test_output_outside_the_schema_fails_closed(answer):
    with pytest.raises(InvalidInferenceOutputError):
        await LLMMemoryReranker(ScriptedGenerator([answer])).rerank("q", hits(3), 2)


@pytest.fixture
def filled(memories):
    memories.remember_many(Proposal(kind="fact", text=f"Deploy number {at} was fine.") for at in range(40))
    return memories


async def test_a_search_shows_what_the_reranker_saw_and_chose(filled):
    generator = ScriptedGenerator([MemoryRerankOutput(selected_ranks=(2, 7, 99))])
    service = filled.service(reranker=LLMMemoryReranker(generator))
    result = await service.search("deploys", memories=[filled.head()], limit=5)
    trace = result.rerank
    assert trace.policy_id == "powercontext.memory.rerank.listwise.v1"
    assert len(trace.candidate_hits) == 30
    assert trace.selected_ranks == (2, 7)
    assert trace.discarded_rank_count == 1
    assert result.hits == (trace.candidate_hits[1], trace.candidate_hits[6])
    assert trace.usage.requests == 1
    (shown,) = generator.inputs
    assert shown.max_results == 5
    assert [candidate.rank for candidate in shown.candidates] == list(range(1, 31))
    assert "mem_ent" not in shown.model_dump_json()


async def test_the_reranker_is_not_asked_about_nothing(memories):
    memories.remember("One.")
    memories.forget(memories.entries()[0].entry_id)
    generator = ScriptedGenerator([MemoryRerankOutput(selected_ranks=(1,))])
    service = memories.service(reranker=LLMMemoryReranker(generator))
    assert (await service.search("one", memories=[memories.head()])).rerank is None
    assert generator.inputs == []


async def test_provider_errors_reach_the_caller(filled):
    service = filled.service(reranker=LLMMemoryReranker(ScriptedGenerator([InferenceTimeoutError("rerank", 30.0)])))
    with pytest.raises(InferenceTimeoutError):
        await service.search("deploys", memories=[filled.head()])


async def test_a_third_party_reranker_cannot_name_other_ranks(filled):
    class Odd:
        policy_id = "odd"

        async def rerank(self, query, candidates, limit, /):
            return MemoryRerankDecision((1, 1, 77), InferenceUsage())

    with pytest.raises(InvalidInferenceOutputError):
        await filled.service(reranker=Odd()).search("deploys", memories=[filled.head()])


@pytest.mark.parametrize("pool", [0, 101])
def test_the_pool_is_bounded(filled, pool):
    from libctx_core.memory import MemoryService

    with pytest.raises(InvalidInputError):
        MemoryService(backend=filled.service()._backend, rerank_candidate_limit=pool)


class TestModelReranker(RerankerSuite):
    """The reranker of the library passes the suite that third parties run."""

    def make_reranker(self):
        return LLMMemoryReranker(ScriptedGenerator([MemoryRerankOutput(selected_ranks=(2, 2, 1, 40))]))
