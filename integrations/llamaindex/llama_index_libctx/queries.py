"""One function per query mode: from LlamaIndex's question to the collection's answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypedDict

import numpy as np
from llama_index.core.indices.query.embedding_utils import get_top_k_embeddings_learner
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode, VectorStoreQueryResult

from libctx_core.errors import InvalidInputError
from libctx_core.search.collection import VectorCollection
from libctx_core.search.collection_items import CollectionHit
from libctx_core.search.collection_query import FETCH
from libctx_core.search.filters import Filter
from llama_index_libctx.filters import to_filter
from llama_index_libctx.nodes import to_node

DEFAULT_MMR_THRESHOLD: Final = 0.5
DEFAULT_ALPHA: Final = 0.5

_MISPLACED: Final = {
    "filter": "filters",
    "filters": "filters",
    "where": "filters",
    "top_k": "similarity_top_k",
    "similarity_top_k": "similarity_top_k",
    "node_ids": "node_ids",
    "doc_ids": "doc_ids",
    "alpha": "alpha",
    "mode": "mode",
}
"""Keyword arguments that would be ignored where their writer means the query's field."""

_Mode = Callable[[VectorCollection, VectorStoreQuery, Mapping[str, Any]], VectorStoreQueryResult]


def answer(collection: VectorCollection, query: VectorStoreQuery, options: Mapping[str, Any]) -> VectorStoreQueryResult:
    """Answer a query in its mode.

    Raises:
        InvalidInputError: The mode is not offered or lacks its vector or text, or an
            option belongs into the query.
    """
    for name in options:
        if name in _MISPLACED:
            raise InvalidInputError(name, f"is not an option here; set VectorStoreQuery.{_MISPLACED[name]}")
    mode = _MODES.get(query.mode)
    if mode is None:
        offered = ", ".join(offered.value for offered in _MODES)
        raise InvalidInputError("mode", f"{query.mode.value!r} is not offered; use one of {offered}")
    return mode(collection, query, options)


class _Restrictions(TypedDict):
    keys: Sequence[str] | None
    refs: Sequence[str] | None
    where: Filter | None


def _restrictions(query: VectorStoreQuery) -> _Restrictions:
    # LlamaIndex's retriever passes an empty list where it restricts nothing
    return {"keys": query.node_ids or None, "refs": query.doc_ids, "where": to_filter(query.filters)}


def _by_vector(
    collection: VectorCollection, query: VectorStoreQuery, _options: Mapping[str, Any]
) -> VectorStoreQueryResult:
    if query.query_embedding is None:
        return _whatever_matches(collection, query)
    return _result(collection.query(query.query_embedding, k=query.similarity_top_k, **_restrictions(query)))


def _whatever_matches(collection: VectorCollection, query: VectorStoreQuery) -> VectorStoreQueryResult:
    items = collection.get(**_restrictions(query), limit=query.similarity_top_k)
    # each meets the restrictions, and none does so more than another
    return _result([CollectionHit(item=item, score=1.0) for item in items])


def _by_mmr(
    collection: VectorCollection, query: VectorStoreQuery, options: Mapping[str, Any]
) -> VectorStoreQueryResult:
    hits = collection.query(
        _vector(query),
        k=query.similarity_top_k,
        **_restrictions(query),
        mode="mmr",
        mmr_lambda=_mmr_threshold(query, options),
        fetch_k=_prefetch(query.similarity_top_k, options),
    )
    return _result(hits)


def _by_words(
    collection: VectorCollection, query: VectorStoreQuery, _options: Mapping[str, Any]
) -> VectorStoreQueryResult:
    k = query.similarity_top_k if query.sparse_top_k is None else query.sparse_top_k
    return _result(collection.query(text=_text(query), k=k, **_restrictions(query), mode="text"))


def _by_both(
    collection: VectorCollection, query: VectorStoreQuery, _options: Mapping[str, Any]
) -> VectorStoreQueryResult:
    alpha = DEFAULT_ALPHA if query.alpha is None else query.alpha
    k = query.similarity_top_k if query.hybrid_top_k is None else query.hybrid_top_k
    sides = [FETCH * k, query.similarity_top_k, query.sparse_top_k or 0]
    hits = collection.query(
        _vector(query) if alpha > 0.0 else None,
        _text(query) if alpha < 1.0 else None,
        k=k,
        **_restrictions(query),
        mode="hybrid",
        alpha=alpha,
        fetch_k=max(sides),
    )
    return _result(hits)


def _mmr_threshold(query: VectorStoreQuery, options: Mapping[str, Any]) -> float:
    given = options.get("mmr_threshold", query.mmr_threshold)
    if given is None:
        return DEFAULT_MMR_THRESHOLD
    if not 0.0 <= given <= 1.0:
        raise InvalidInputError("mmr_threshold", "must be from 0 to 1")
    return float(given)


def _prefetch(k: int, options: Mapping[str, Any]) -> int | None:
    count, factor = options.get("mmr_prefetch_k"), options.get("mmr_prefetch_factor")
    if count is not None and factor is not None:
        raise InvalidInputError("mmr_prefetch_factor", "says the same as mmr_prefetch_k; give one")
    if factor is not None:
        return max(k, int(k * factor))
    return None if count is None else max(k, int(count))


def _by_learner(
    collection: VectorCollection, query: VectorStoreQuery, _options: Mapping[str, Any]
) -> VectorStoreQueryResult:
    items = collection.get(**_restrictions(query), with_vectors=True)
    vectors = [[float(number) for number in item.vector] for item in items if item.vector is not None]
    if not vectors:
        return _result([])
    similarities: Sequence[float]
    places: Sequence[int]
    if query.mode == VectorStoreQueryMode.LINEAR_REGRESSION:
        similarities, places = by_linear_regression(_vector(query), vectors, query.similarity_top_k)
    else:
        similarities, places = get_top_k_embeddings_learner(
            _vector(query), vectors, similarity_top_k=query.similarity_top_k, query_mode=query.mode
        )
    with_vectors = [item for item in items if item.vector is not None]
    pairs = zip(similarities, places, strict=True)
    return _result([CollectionHit(item=with_vectors[place], score=float(score)) for score, place in pairs])


def by_linear_regression(
    question: Sequence[float], vectors: Sequence[Sequence[float]], k: int
) -> tuple[list[float], list[int]]:
    """Return the `k` best predictions of a least-squares fit that calls the question 1 and all vectors 0.

    LlamaIndex's own helper asks its linear model for a decision function, which it has not.

    Returns:
        The predictions, best first, and the places of their vectors.
    """
    rows = np.asarray([question, *vectors], np.float64)
    target = np.zeros(len(rows))
    target[0] = 1.0
    centre = rows.mean(axis=0)
    weights, *_ = np.linalg.lstsq(rows - centre, target - target.mean(), rcond=None)
    predictions = (rows[1:] - centre) @ weights + target.mean()
    best = np.argsort(-predictions, kind="stable")[:k]
    return [float(predictions[place]) for place in best], [int(place) for place in best]


def _vector(query: VectorStoreQuery) -> list[float]:
    if query.query_embedding is None:
        raise InvalidInputError("query_embedding", f"is needed in mode {query.mode.value!r}")
    return query.query_embedding


def _text(query: VectorStoreQuery) -> str:
    if query.query_str is None:
        raise InvalidInputError("query_str", f"is needed in mode {query.mode.value!r}")
    return query.query_str


def _result(hits: Sequence[CollectionHit]) -> VectorStoreQueryResult:
    return VectorStoreQueryResult(
        nodes=[to_node(hit.item) for hit in hits],
        similarities=[hit.score for hit in hits],
        ids=[hit.item.key for hit in hits],
    )


_MODES: Final[dict[VectorStoreQueryMode, _Mode]] = {
    VectorStoreQueryMode.DEFAULT: _by_vector,
    VectorStoreQueryMode.SPARSE: _by_words,
    VectorStoreQueryMode.TEXT_SEARCH: _by_words,
    VectorStoreQueryMode.HYBRID: _by_both,
    VectorStoreQueryMode.MMR: _by_mmr,
    VectorStoreQueryMode.SVM: _by_learner,
    VectorStoreQueryMode.LINEAR_REGRESSION: _by_learner,
    VectorStoreQueryMode.LOGISTIC_REGRESSION: _by_learner,
}
