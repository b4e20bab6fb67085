"""The read door: one entry point to find records."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import apsw
import numpy as np
from numpy.typing import NDArray

from libctx_core.errors import EmbeddingProfileError
from libctx_core.ports import Embedder
from libctx_core.search.analysis import analyse_question
from libctx_core.search.lexical import look_up
from libctx_core.search.neighbours import VectorSearch
from libctx_core.search.ranking import (
    DEFAULT_WEIGHTS,
    Evidence,
    SignalWeights,
    best,
    combine,
    reciprocal_ranks,
    signals,
)
from libctx_core.search.request import RecordHit, SearchRequest
from libctx_core.search.scope import Floats, Scope, ScopeCache
from libctx_core.search.speakers import named_speakers
from libctx_core.search.vectors import VectorIndex
from libctx_core.search.weighting import WeightedEmbedder, word_weight
from libctx_core.store.database import Database
from libctx_core.store.index import INDEX
from libctx_core.store.index_records import expired_slots, read_record
from libctx_core.store.owners import OWNERS
from libctx_core.store.records import RECORDS, owner_and_position
from libctx_core.store.vectors import vector_state

VECTOR_FOUND = 0.5
"""Standardised cosine, divided by four as the signal is, from which the vector channel counts as a match."""


class Searcher:
    """Ranks the records of some owners by a question.

    Args:
        database: The library file.
        embedder: Turns questions into vectors; None searches by words only.
        vectors: The vector index to share with others; None means one of its own.
        weights: Weights of the signals.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder | None = None,
        *,
        vectors: VectorSearch | None = None,
        weights: SignalWeights = DEFAULT_WEIGHTS,
    ) -> None:
        for component in (OWNERS, RECORDS, INDEX):
            database.ensure(component)
        self._database = database
        self._embedder = embedder
        self._weights = weights
        self._scopes = ScopeCache()
        self._vectors: VectorSearch = vectors or VectorIndex()

    def search(self, request: SearchRequest) -> list[RecordHit]:
        """Return the best records, best first.

        As long as the scope holds a record that is neither excluded nor filtered out and
        `min_relevance` is 0, the answer is not empty.

        Raises:
            EmbeddingProfileError: Vectors were asked for and come from another embedder.
        """
        with self._database.read() as connection:
            return self.search_in(connection, request)

    def search_in(self, connection: apsw.Connection, request: SearchRequest) -> list[RecordHit]:
        """Do what `search` does on the snapshot of a connection."""
        scope = self._scopes.get(connection, request.owners)
        usable = _usable(connection, scope, request)
        if request.k < 1 or not usable.any():
            return []
        found = self._measure(connection, scope, request)
        if request.fusion == "rrf":
            lists = [found[name] for name in ("words", "vector") if name in found]
            score = reciprocal_ranks(lists, usable, request.rrf_k)
        else:
            score = combine(found, self._weights, scope.size)
        rows = best(score, usable, request.k)
        return [self._hit(connection, scope, request, found, score, int(row)) for row in rows]

    def _measure(self, connection: apsw.Connection, scope: Scope, request: SearchRequest) -> dict[str, Floats]:
        """Return every signal of each record in scope, before any is left out."""
        evidence = self._gather(connection, scope, request)
        return signals(scope, evidence, vectors=request.mode != "lexical", words=request.mode != "vector")

    def measured(self, request: SearchRequest) -> tuple[Scope, dict[str, Floats]]:
        """Return the records in scope and every signal of each: what weights are learnt from.

        Raises:
            EmbeddingProfileError: Vectors were asked for and come from another embedder.
        """
        with self._database.read() as connection:
            scope = self._scopes.get(connection, request.owners)
            return scope, self._measure(connection, scope, request)

    def _gather(self, connection: apsw.Connection, scope: Scope, request: SearchRequest) -> Evidence:
        question = analyse_question(request.text)
        numbers, places = named_speakers(scope, question.words)
        words = [word for at, word in enumerate(question.words) if at not in places]
        names = [question.words[at] for at in sorted(places)]
        if not any(word.terms for word in words):
            words, names = names, []
        named = None
        if numbers:
            named = np.zeros(scope.speakers, np.bool_)
            named[list(numbers)] = True
        found = look_up(connection, scope, words, names=names, related=request.mode != "lexical")
        return Evidence(question, found, named, self._cosines(connection, scope, request, found.idf))

    def _cosines(
        self, connection: apsw.Connection, scope: Scope, request: SearchRequest, idf: Mapping[str, float]
    ) -> Floats | None:
        if self._embedder is None or request.mode == "lexical":
            return None
        owners = []
        for owner in scope.owners.tolist():
            state = vector_state(connection, owner)
            if state is None:
                continue
            if state.profile and state.profile != self._embedder.profile_id:
                if request.mode in ("vector", "hybrid"):
                    raise EmbeddingProfileError(state.profile, self._embedder.profile_id)
                continue
            owners.append(owner)
        if not owners:
            return None
        return scope.spread(self._vectors.similarities(connection, owners, self._embed(request.text, idf)))

    def _embed(self, text: str, idf: Mapping[str, float]) -> Floats:
        """Return the question's vector; words weigh by their rarity in the scope where the embedder can do that."""
        assert self._embedder is not None, "asked for only with an embedder"
        if not isinstance(self._embedder, WeightedEmbedder):
            return self._embedder.embed_query(text)
        vector = self._embedder.embed_query_weighted(text, lambda word: word_weight(word, idf))
        return vector if vector.any() else self._embedder.embed_query(text)

    def _hit(
        self,
        connection: apsw.Connection,
        scope: Scope,
        request: SearchRequest,
        found: dict[str, Floats],
        score: Floats,
        row: int,
    ) -> RecordHit:
        hit = _record(connection, scope.slot(row))
        matched = []
        if "words" in found and found["words"][row] > 0:
            matched.append("lexical")
        if "vector" in found and found["vector"][row] >= VECTOR_FOUND:
            matched.append("vector")
        parts = {}
        if request.explain:
            parts = {
                name: float(values[row]) * weight
                for name, values in found.items()
                if (weight := getattr(self._weights, name, 0.0))
            }
        return replace(hit, score=float(score[row]), matched_by=tuple(matched), signals=parts)


def _record(connection: apsw.Connection, slot: int) -> RecordHit:
    stored = read_record(connection, slot)
    assert stored is not None, "a live row of the index has a record"
    record = stored.record
    return RecordHit(
        slot=slot,
        owner=owner_and_position(slot)[0],
        key=record.key,
        kind=record.kind,
        text=record.text,
        caption=record.caption,
        role=record.role,
        speaker=record.speaker,
        session=record.session,
        sequence=record.sequence,
        occurred_at=record.occurred_at,
        ref=record.ref,
        metadata=record.metadata,
        payload=record.payload,
    )


def _usable(connection: apsw.Connection, scope: Scope, request: SearchRequest) -> NDArray[np.bool_]:
    usable = scope.is_alive.copy()
    if request.kinds is not None:
        usable &= scope.of_kinds(list(request.kinds))
    if request.where is not None:
        usable &= _marked(scope, request.where)
    if request.exclude:
        usable &= ~_marked(scope, request.exclude)
    if request.now is not None:
        usable &= ~_marked(scope, expired_slots(connection, request.now))
    return usable


def _marked(scope: Scope, slots: Iterable[int]) -> NDArray[np.bool_]:
    marked = np.zeros(scope.size, np.bool_)
    rows = [row for slot in slots if (row := scope.row(slot)) is not None]
    marked[rows] = True
    return marked
