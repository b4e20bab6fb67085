"""What any memory reranker must do: a suite to subclass.

```python
class TestMyReranker(RerankerSuite):
    def make_reranker(self):
        return MyReranker()
```
"""

import asyncio

from libctx_core.memory import MemoryHit, MemoryRerankDecision, MemoryReranker
from libctx_core.memory.stored import memory_ref

POOL = 12


class RerankerSuite:
    """Tests of a reranker; subclass it and say how one is made."""

    query = "when are the deploys?"

    def make_reranker(self) -> MemoryReranker:
        """Return a new reranker."""
        raise NotImplementedError

    def decide(self, candidates: tuple[MemoryHit, ...], limit: int) -> MemoryRerankDecision:
        """Ask for a decision."""

        async def ask() -> MemoryRerankDecision:
            return await self.make_reranker().rerank(self.query, candidates, limit)

        return asyncio.run(ask())

    def test_names_its_policy(self) -> None:
        """The policy id is a name that does not change."""
        first, second = self.make_reranker().policy_id, self.make_reranker().policy_id
        assert first == second
        assert first.strip() == first != ""

    def test_selects_ranks_of_the_candidates(self) -> None:
        """Each at most once, within range, no more than asked for, and at least one."""
        for size in (1, 2, POOL):
            for limit in (1, size):
                ranks = self.decide(hits(size), limit).selected_ranks
                assert 1 <= len(ranks) <= limit
                assert len(set(ranks)) == len(ranks)
                assert all(type(rank) is int and 1 <= rank <= size for rank in ranks)

    def test_leaves_the_candidates_alone(self) -> None:
        """Hits are values: what was shown is what it was."""
        candidates = hits(POOL)
        self.decide(candidates, 3)
        assert candidates == hits(POOL)


def hits(count: int) -> tuple[MemoryHit, ...]:
    """Return made-up candidates, best first."""
    return tuple(
        MemoryHit(
            memory_ref=memory_ref("memory", 1),
            entry_id=f"entry-{at}",
            entry_version_id=f"version-{at}",
            text=f"Statement number {at} about deploys.",
            score=1.0 / at,
            matched_by=("fts",),
        )
        for at in range(1, count + 1)
    )
