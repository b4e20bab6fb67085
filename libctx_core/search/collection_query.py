"""How a collection answers a question: permitted slots first, then vectors, words, or both."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

import apsw

from libctx_core.errors import InvalidInputError
from libctx_core.search.collection_items import CollectionHit, CollectionItem, decode_metadata
from libctx_core.search.filters import Filter, prune
from libctx_core.search.filters_sql import matching
from libctx_core.search.matrix import unit_rows
from libctx_core.search.mmr import diverse
from libctx_core.search.neighbours import Neighbour, VectorSearch
from libctx_core.search.request import SearchRequest
from libctx_core.search.slots import SlotSet, slot_array
from libctx_core.store.records import slots_of_keys, slots_of_refs
from libctx_core.store.vectors import read_some_vectors, vector_bytes, vector_state

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from libctx_core.search.searcher import Searcher

Mode: TypeAlias = Literal["vector", "text", "hybrid", "mmr"]
MODES = ("vector", "text", "hybrid", "mmr")

FETCH = 4
"""Candidates per wanted hit from which MMR and hybrid search choose, unless the caller says more."""


class QueryOptions(TypedDict, total=False):
    """What a query may say beyond its vector, text and number of hits; see `CollectionQuery`."""

    keys: Sequence[str] | None
    where: Filter | None
    refs: Sequence[str] | None
    mode: Mode
    alpha: float
    mmr_lambda: float
    fetch_k: int | None
    with_vectors: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionQuery:
    """One question to a collection.

    Attributes:
        vector: The question's embedding; needed by every mode but ``"text"``.
        text: The question's words; needed by ``"text"`` and ``"hybrid"``.
        k: How many hits at most.
        keys: Only items with these keys; an empty list meets nothing.
        where: Only items that pass this filter.
        refs: Only items cut from these documents; an empty list meets nothing.
        mode: ``"vector"`` by cosine, ``"text"`` by words, ``"hybrid"`` by both, ``"mmr"``
            by cosine against repetition.
        alpha: Weight of the vector in a hybrid query: 0 asks the words alone, 1 the vector
            alone.
        mmr_lambda: 1 for the closest, 0 for the most different.
        fetch_k: Candidates of each channel; by default `FETCH` times `k`.
        with_vectors: Return each item's vector too.

    Raises:
        InvalidInputError: The mode is unknown, what it needs is missing, or a weight lies
            outside [0, 1].
    """

    vector: "Sequence[float] | NDArray[np.float32] | None" = None
    text: str | None = None
    k: int = 4
    keys: Sequence[str] | None = None
    where: Filter | None = None
    refs: Sequence[str] | None = None
    mode: Mode = "vector"
    alpha: float = 0.5
    mmr_lambda: float = 0.5
    fetch_k: int | None = None
    with_vectors: bool = False

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidInputError("mode", f"must be one of {', '.join(MODES)}")
        for name in ("alpha", "mmr_lambda"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise InvalidInputError(name, "must lie in [0, 1]")
        if self.vector is None and self.uses_vector:
            raise InvalidInputError("vector", f"is needed in mode {self.mode!r}; get() finds by condition alone")
        if self.text is None and self.uses_words:
            raise InvalidInputError("text", f"is needed in mode {self.mode!r}")

    @property
    def uses_words(self) -> bool:
        """Whether the words of the collection are asked."""
        return self.mode == "text" or (self.mode == "hybrid" and self.alpha < 1.0)

    @property
    def uses_vector(self) -> bool:
        """Whether the vectors of the collection are asked."""
        return self.mode in ("vector", "mmr") or (self.mode == "hybrid" and self.alpha > 0.0)

    @property
    def candidates(self) -> int:
        """How many neighbours each channel contributes."""
        if self.mode in ("vector", "text"):
            return self.k
        return max(self.k, FETCH * self.k if self.fetch_k is None else self.fetch_k)


def answer(
    connection: apsw.Connection,
    owner: int,
    query: CollectionQuery,
    index: VectorSearch,
    searcher: "Callable[[], Searcher]",
) -> list[CollectionHit]:
    """Return the hits of a query on the connection's snapshot.

    Raises:
        EmbeddingDimensionError: The query's vector has another length than the collection's.
    """
    if query.k < 1:
        return []
    permitted = permitted_slots(connection, owner, query.keys, query.where, query.refs)
    near: list[Neighbour] = []
    if query.uses_vector and query.vector is not None:
        allowed = None if permitted is None else {owner: permitted}
        near = index.top_k(connection, [owner], query.vector, query.candidates, allowed=allowed)
    if query.mode == "mmr":
        near = _diversified(connection, owner, near, query)
    elif query.mode != "vector":
        words = _by_words(connection, owner, permitted, query, searcher()) if query.uses_words else []
        near = _fused(connection, owner, near, words, query)
    found = read_items(connection, owner, slot_array(one.slot for one in near), with_vectors=query.with_vectors)
    return [CollectionHit(item=found[one.slot], score=one.similarity) for one in near]


def permitted_slots(
    connection: apsw.Connection,
    owner: int,
    keys: Sequence[str] | None,
    where: Filter | None,
    refs: Sequence[str] | None,
) -> SlotSet | None:
    """Return the slots that meet every given condition, None if none is given."""
    parts: list[SlotSet] = []
    if keys is not None:
        parts.append(SlotSet(slot_array(slots_of_keys(connection, owner, keys).values())))
    if refs is not None:
        parts.append(SlotSet(slot_array(slots_of_refs(connection, owner, refs))))
    if prune(where) is not None:
        parts.append(matching(connection, owner, where))
    if not parts:
        return None
    result = parts[0]
    for part in parts[1:]:
        result = result.intersect(part)
    return result


def read_items(
    connection: apsw.Connection, owner: int, slots: "NDArray[np.int64]", *, with_vectors: bool
) -> dict[int, CollectionItem]:
    """Return copies of the items at these slots."""
    if not len(slots):
        return {}
    vectors: dict[int, NDArray[np.float32]] = {}
    state = vector_state(connection, owner) if with_vectors else None
    if state is not None:
        present, rows = read_some_vectors(connection, slots, state.dimension)
        vectors = {int(slot): row.copy() for slot, row in zip(present, rows, strict=True)}
    stored: Any = connection.execute(
        "SELECT slot, key, text, metadata, ref, payload FROM record WHERE slot IN (SELECT value FROM carray(?))",
        (apsw.carray(slots),),
    )
    return {
        slot: CollectionItem(
            key=key,
            text=text,
            vector=vectors.get(slot),
            metadata=decode_metadata(metadata),
            ref=ref,
            payload=payload,
        )
        for slot, key, text, metadata, ref, payload in stored
    }


def _diversified(
    connection: apsw.Connection, owner: int, near: list[Neighbour], query: CollectionQuery
) -> list[Neighbour]:
    state = vector_state(connection, owner)
    if state is None:
        return []
    slots = slot_array(one.slot for one in near)
    return diverse(near, *read_some_vectors(connection, slots, state.dimension), query.k, query.mmr_lambda)


def _by_words(
    connection: apsw.Connection, owner: int, permitted: SlotSet | None, query: CollectionQuery, searcher: "Searcher"
) -> list[Neighbour]:
    """Return what the words of the question are found in, best first; the best scores 1."""
    assert query.text is not None, "the query was checked"
    where = None if permitted is None else [int(slot) for slot in permitted.resolve(connection, owner)]
    request = SearchRequest(text=query.text, owners=[owner], k=query.candidates, where=where, mode="lexical")
    hits = [hit for hit in searcher.search_in(connection, request) if "lexical" in hit.matched_by]
    top = max((hit.score for hit in hits), default=0.0)
    return [Neighbour(hit.slot, max(0.0, hit.score / top) if top > 0.0 else 0.0) for hit in hits]


def _fused(
    connection: apsw.Connection, owner: int, near: list[Neighbour], words: list[Neighbour], query: CollectionQuery
) -> list[Neighbour]:
    """Return the best `k` by weighted sum; each channel is scaled so that its best scores 1."""
    if not query.uses_vector:
        return words[: query.k]
    closeness = {one.slot: one.similarity for one in near}
    missing = slot_array(one.slot for one in words if one.slot not in closeness)
    state = vector_state(connection, owner)
    if state is not None and len(missing):
        import numpy as np

        slots, rows = read_some_vectors(connection, missing, state.dimension)
        unit = unit_rows(np.frombuffer(vector_bytes(query.vector), "<f4").reshape(1, -1))[0]
        closeness |= {int(slot): float(score) for slot, score in zip(slots, unit_rows(rows) @ unit, strict=True)}
    top = max(closeness.values(), default=0.0)
    scale = query.alpha / top if top > 0.0 else 0.0
    found = {slot: scale * max(0.0, score) for slot, score in closeness.items()}
    for one in words:
        found[one.slot] = found.get(one.slot, 0.0) + (1.0 - query.alpha) * one.similarity
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return [Neighbour(slot, score) for slot, score in ranked[: query.k]]
