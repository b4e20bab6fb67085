"""Reciprocal rank fusion of channel rankings, for backends that rank by channel. Pure."""

from collections.abc import Iterable

from libctx_core.memory.search_values import MemoryChannelHit, MemoryHit, MemoryMatchedBy, MemorySearchChannels

RRF_CONSTANT = 60
"""Constant of reciprocal rank fusion, from the seed's family."""


def fuse(channels: MemorySearchChannels, limit: int) -> tuple[MemoryHit, ...]:
    """Return the best candidates of both channels, scored ``sum(1 / (60 + rank))``.

    A candidate counts once per channel; equal scores are ordered by memory, entry and
    version id.

    Args:
        channels: Rankings, best first.
        limit: Hits wanted.
    """
    scores: dict[tuple[str, str, str], float] = {}
    matched: dict[tuple[str, str, str], list[MemoryMatchedBy]] = {}
    hits: dict[tuple[str, str, str], MemoryChannelHit] = {}
    named: tuple[tuple[MemoryMatchedBy, Iterable[MemoryChannelHit]], ...] = (
        ("fts", channels.fts),
        ("vector", channels.vector),
    )
    for name, ranking in named:
        rank = 0
        for hit in ranking:
            key = (hit.memory_ref.artifact_id, hit.entry_id, hit.entry_version_id)
            if name in matched.setdefault(key, []):
                continue
            rank += 1
            matched[key].append(name)
            hits.setdefault(key, hit)
            scores[key] = scores.get(key, 0.0) + 1.0 / (RRF_CONSTANT + rank)
    best = sorted(scores, key=lambda key: (-scores[key], *(part.encode() for part in key)))
    return tuple(
        MemoryHit(
            memory_ref=hits[key].memory_ref,
            entry_id=hits[key].entry_id,
            entry_version_id=hits[key].entry_version_id,
            text=hits[key].text,
            score=scores[key],
            matched_by=tuple(matched[key]),
        )
        for key in best[:limit]
    )
