"""Searching memories with the library's one engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import apsw

from libctx_core.artifacts.values import ArtifactRef
from libctx_core.errors import (
    CapabilityNotSupportedError,
    EmbeddingProfileError,
    InferenceTimeoutError,
    InferenceUnavailableError,
    InvalidInputError,
)
from libctx_core.memory.search_values import (
    HitReceipt,
    MemoryCapabilities,
    MemoryHit,
    MemoryMatchedBy,
    MemorySearchMode,
    MemorySearchResult,
    MemoryUsedSearchMode,
    Omission,
    SearchReceipt,
)
from libctx_core.memory.stored import memory_ref
from libctx_core.search.analysis import analyse_question
from libctx_core.search.request import Mode, RecordHit, SearchRequest
from libctx_core.store import memory as rows
from libctx_core.store.database import Database
from libctx_core.store.memory_pending import entry_slots, has_pending
from libctx_core.store.owners import OwnerRow

if TYPE_CHECKING:
    from libctx_core.memory.indexing import MemoryIndexer
    from libctx_core.search.searcher import Searcher

MIN_POOL = 32
"""Candidates that are ranked at least where a receipt or a reranker looks at them."""

_MODES: Final[dict[str, Mode]] = {"auto": "auto", "fts": "lexical", "vector": "vector", "hybrid": "hybrid"}
_CHANNELS: Final[dict[str, MemoryMatchedBy]] = {"lexical": "fts", "vector": "vector"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuery:
    """A question to the heads of some memories.

    Attributes:
        text: The question; any string is valid.
        limit: Hits wanted.
        mode: ``auto``, ``fts``, ``vector`` or ``hybrid``.
        kinds: Kinds of entry wanted; none means all.
        tags: Tags an entry must have.
        min_relevance: Hits below this relevance, 0 to 1, are left out.
        pool: Candidates to rank at least; what is beyond `limit` is listed as omitted.
        explain: Say why each hit stands where it stands.
    """

    text: str
    limit: int = 10
    mode: MemorySearchMode = "auto"
    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    min_relevance: float = 0.0
    pool: int = 0
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """Candidates of one search, best first.

    Attributes:
        mode: Channels that were used.
        hits: Candidates that are what the head says.
        found: The record of each, for receipts.
        dropped: Candidates that are no hits, and why.
        channels: Place of each entry in each channel that found it, if asked to explain.
    """

    mode: MemoryUsedSearchMode
    hits: tuple[MemoryHit, ...]
    found: tuple[RecordHit, ...]
    dropped: tuple[Omission, ...]
    channels: Mapping[str, Mapping[str, int]]


class MemorySearch:
    """Finds entries of memories.

    Args:
        database: The library.
        searcher: The read door of search.
        indexer: Brings the index in line before a search.
    """

    def __init__(self, database: Database, searcher: "Searcher", indexer: "MemoryIndexer") -> None:
        self._database = database
        self._searcher = searcher
        self._indexer = indexer

    def capabilities(self) -> MemoryCapabilities:
        """Return what can be searched as the library is set up."""
        profile = self._indexer.profile
        has_vectors = profile is not None
        return MemoryCapabilities(fts=True, vector=has_vectors, hybrid=has_vectors, embedding_profile=profile)

    def search(self, owners: Sequence[OwnerRow], query: MemoryQuery) -> MemorySearchResult:
        """Return the best entries of some memories, best first.

        Args:
            owners: Owner objects of the memories; the caller has checked access.
            query: The question.

        Raises:
            CapabilityNotSupportedError: The mode asks for vectors, and there are none.
            InvalidInputError: The mode is unknown or the limit below 1.
        """
        pool = max(query.limit, query.pool, 4 * query.limit if query.explain else 0)
        if query.explain:
            pool = max(pool, MIN_POOL)
        ranking = self.rank(owners, query, pool)
        chosen = ranking.hits[: query.limit]
        receipt = receipt_of(query, ranking, chosen, reason="limit") if query.explain else None
        return MemorySearchResult(mode=ranking.mode, hits=chosen, receipt=receipt)

    def rank(self, owners: Sequence[OwnerRow], query: MemoryQuery, pool: int) -> Ranking:
        """Return up to `pool` candidates; see `search`."""
        used = self._check(query)
        self._catch_up(owners, used, query.mode)
        with self._database.read() as connection:
            heads = {
                owner.id: memory_ref(owner.key, head.revision)
                for owner in owners
                if (head := rows.read_head(connection, owner.id)) is not None
            }
            found: list[RecordHit] = []
            if heads:
                found, used = self._find(connection, list(heads), query, pool, used)
            hits, records, dropped = [], [], []
            for rank, record in enumerate(found, start=1):
                hit = _anchored(connection, heads[record.owner], record)
                if hit is None:
                    dropped.append(Omission(entry_id=record.key, rank=rank, reason="stale"))
                elif record.relevance < query.min_relevance:
                    dropped.append(Omission(entry_id=record.key, rank=rank, reason="relevance"))
                else:
                    hits.append(hit)
                    records.append(record)
            channels = self._places(connection, list(heads), query, pool, used) if query.explain else {}
        return Ranking(used, tuple(hits), tuple(records), tuple(dropped), channels)

    def _places(
        self, connection: apsw.Connection, owners: list[int], query: MemoryQuery, pool: int, used: str
    ) -> dict[str, dict[str, int]]:
        """Return the place of each entry in each channel that finds it, from 1; one search per channel."""
        places: dict[str, dict[str, int]] = {}
        wanted: list[tuple[MemoryMatchedBy, str]] = [("fts", "lexical"), ("vector", "vector")]
        for channel, name in wanted:
            if not owners or used not in ("hybrid", channel):
                continue
            found, _ = self._find(connection, owners, replace(query, mode=channel), pool, channel)
            for place, record in enumerate((record for record in found if name in record.matched_by), start=1):
                places.setdefault(record.key, {})[channel] = place
        return places

    def _check(self, query: MemoryQuery) -> MemoryUsedSearchMode:
        if query.mode not in _MODES:
            raise InvalidInputError("mode", f"must be one of {', '.join(_MODES)}")
        if query.limit < 1:
            raise InvalidInputError("limit", "must be at least 1")
        has_vectors = self._indexer.profile is not None
        if query.mode in ("vector", "hybrid") and not has_vectors:
            raise CapabilityNotSupportedError(query.mode, "the library was opened without an embedder")
        if query.mode == "auto":
            return "hybrid" if has_vectors else "fts"
        if query.mode == "vector":
            return "vector"
        return "hybrid" if query.mode == "hybrid" else "fts"

    def _catch_up(self, owners: Sequence[OwnerRow], used: str, mode: str) -> None:
        with self._database.read() as connection:
            behind = [owner.id for owner in owners if has_pending(connection, owner.id)]
        try:
            for owner in behind:
                self._indexer.catch_up(owner)
        except (InferenceUnavailableError, InferenceTimeoutError) as error:
            if mode in ("vector", "hybrid"):
                raise CapabilityNotSupportedError(used, "the embedding model does not answer") from error

    def _find(
        self, connection: apsw.Connection, owners: list[int], query: MemoryQuery, pool: int, used: MemoryUsedSearchMode
    ) -> tuple[list[RecordHit], MemoryUsedSearchMode]:
        """Return the candidates and the channels that were used: words alone if the model does not answer."""
        where = None
        if query.kinds or query.tags:
            where = [slot for owner in owners for slot in entry_slots(connection, owner, query.kinds, query.tags)]
        request = SearchRequest(
            text=query.text,
            owners=owners,
            k=pool,
            where=where,
            mode=_MODES[query.mode],
            min_relevance=0.0 if query.explain else query.min_relevance,
            explain=query.explain,
        )
        try:
            return self._searcher.search_in(connection, request), used
        except EmbeddingProfileError as error:
            raise CapabilityNotSupportedError(query.mode, str(error)) from error
        except (InferenceUnavailableError, InferenceTimeoutError) as error:
            if query.mode != "auto":
                raise CapabilityNotSupportedError(query.mode, "the embedding model does not answer") from error
            return self._searcher.search_in(connection, replace(request, mode="lexical")), "fts"


def _anchored(connection: apsw.Connection, ref: ArtifactRef, record: RecordHit) -> MemoryHit | None:
    """Return a record as a hit if the head says what it says."""
    said = rows.active_text(connection, record.owner, record.key)
    if said is None or said[0] != record.payload:
        return None
    return MemoryHit.trusted(
        memory_ref=ref,
        entry_id=record.key,
        entry_version_id=said[0],
        text=said[1],
        score=record.score,
        matched_by=tuple(_CHANNELS[name] for name in record.matched_by),
        relevance=record.relevance,
    )


def receipt_of(
    query: MemoryQuery, ranking: Ranking, chosen: Sequence[MemoryHit], *, reason: Literal["limit", "reranker"]
) -> SearchReceipt:
    """Return why hits stand where they stand, and which candidates were left out.

    Args:
        query: The question.
        ranking: What was ranked.
        chosen: The hits that were returned, best first.
        reason: Why the other candidates were left out: ``limit`` or ``reranker``.
    """
    signals = {record.key: dict(record.signals) for record in ranking.found}
    taken = {hit.entry_id for hit in chosen}
    left = [
        Omission.trusted(entry_id=hit.entry_id, rank=rank, reason=reason)
        for rank, hit in enumerate(ranking.hits, start=1)
        if hit.entry_id not in taken
    ]
    terms = dict.fromkeys(term for word in analyse_question(query.text).words for term in word.terms)
    return SearchReceipt(
        terms=tuple(terms),
        candidates=len(ranking.found) + len(ranking.dropped),
        hits=tuple(
            HitReceipt(
                entry_id=hit.entry_id,
                rank=rank,
                channel_ranks=dict(ranking.channels.get(hit.entry_id, {})),
                signals=signals[hit.entry_id],
            )
            for rank, hit in enumerate(chosen, start=1)
        ),
        omitted=(*left, *ranking.dropped),
    )
