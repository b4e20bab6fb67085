"""The read door: one entry point to find records."""

import apsw
import numpy as np

from libctx_core.ports import Embedder
from libctx_core.search.analysis import MAX_QUERY, analyse_question
from libctx_core.search.columns import Bools, Floats
from libctx_core.search.corpora import CorpusCache
from libctx_core.search.corpus import Corpus
from libctx_core.search.cosines import VectorChannel
from libctx_core.search.focus import LARGE, Cosines, concerned
from libctx_core.search.hits import as_hit, choose, explained, matched_by, neighbours_of
from libctx_core.search.lexical import look_up
from libctx_core.search.neighbours import VectorSearch
from libctx_core.search.ranking import (
    DEFAULT_WEIGHTS,
    Evidence,
    Measured,
    SignalWeights,
    best,
    combine,
    measure,
    reciprocal_ranks,
)
from libctx_core.search.relevance import relevance
from libctx_core.search.request import RecordHit, SearchRequest
from libctx_core.search.speakers import named_speakers
from libctx_core.search.vectors import VectorIndex
from libctx_core.store.database import Database
from libctx_core.store.index import INDEX
from libctx_core.store.index_records import expired_slots
from libctx_core.store.owners import OWNERS
from libctx_core.store.records import RECORDS

POOL = 64
"""Ranked records looked at, at least, where duplicates or irrelevant ones are dropped."""


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
        self._channel = None if embedder is None else VectorChannel(vectors or VectorIndex(), embedder)
        self._weights = weights
        self._corpora = CorpusCache()

    def search(self, request: SearchRequest) -> list[RecordHit]:
        """Return the best records, best first.

        As long as the corpus holds a record that is neither excluded nor filtered out and
        `min_relevance` is 0, the answer is not empty.

        Raises:
            EmbeddingProfileError: Vectors were asked for and come from another embedder.
        """
        with self._database.read() as connection:
            hits = self.search_in(connection, request)
        self.save()
        return hits

    def save(self) -> None:
        """Store what took long to derive while searching large owners; `search` does it by itself.

        Call it outside a read, after `search_in`.
        """
        if self._channel is not None:
            self._channel.save(self._database)

    def search_in(self, connection: apsw.Connection, request: SearchRequest) -> list[RecordHit]:
        """Do what `search` does on the snapshot of a connection."""
        corpus = self._corpora.get(connection, request.owners)
        usable = _usable(connection, corpus, request)
        if request.k < 1 or not usable.any():
            return []
        selective = request.dedupe or request.min_relevance > 0
        wanted = max(POOL, 4 * request.k) if selective else request.k
        measured = self._measure(corpus, self._gather(connection, corpus, request), usable, wanted, request)
        here = usable if measured.rows is None else usable[measured.rows]
        score = self._score(measured, here, request)
        places = best(score, here, wanted)
        rows = places if measured.rows is None else measured.rows[places]
        chosen = choose(connection, corpus, rows, relevance(measured, rows), request)
        near = neighbours_of(connection, corpus, usable, chosen, request.neighbours) if request.neighbours else {}
        place_of = dict(zip(rows.tolist(), places.tolist(), strict=True))
        return [
            as_hit(
                each.stored,
                score=float(score[place_of[each.row]]),
                relevance=each.relevance,
                matched_by=matched_by(measured, place_of[each.row]),
                signals=explained(measured, place_of[each.row], self._weights) if request.explain else {},
                neighbours=near.get(each.row, ()),
            )
            for each in chosen
        ]

    def measured(self, request: SearchRequest) -> tuple[Corpus, Measured]:
        """Return the records of the corpus and every signal of each: what weights are learnt from.

        Raises:
            EmbeddingProfileError: Vectors were asked for and come from another embedder.
        """
        with self._database.read() as connection:
            corpus = self._corpora.get(connection, request.owners)
            evidence = self._gather(connection, corpus, request)
            return corpus, measure(corpus, evidence, with_words=request.mode != "vector")

    def _measure(
        self, corpus: Corpus, evidence: Evidence, usable: Bools, wanted: int, request: SearchRequest
    ) -> Measured:
        """Measure the rows the question concerns, all where the corpus is small or too few of those are usable."""
        rows = None
        if corpus.size > LARGE:
            rows = concerned(corpus, evidence.found, evidence.cosines)
            if np.count_nonzero(usable[rows]) < wanted:
                rows = None
        return measure(corpus, evidence, with_words=request.mode != "vector", rows=rows)

    def _score(self, measured: Measured, usable: Bools, request: SearchRequest) -> Floats:
        signals = measured.signals
        if request.fusion == "rrf":
            lists = [scores for scores in (measured.words, signals.get("vector")) if scores is not None]
            return reciprocal_ranks(lists, usable, request.rrf_k)
        return combine(signals, self._weights, len(usable))

    def _gather(self, connection: apsw.Connection, corpus: Corpus, request: SearchRequest) -> Evidence:
        text = request.text[:MAX_QUERY]
        question = analyse_question(text)
        numbers, places = named_speakers(corpus.names, question.words)
        words = [word for at, word in enumerate(question.words) if at not in places]
        words = list({word.terms: word for word in words}.values())
        names = [question.words[at] for at in sorted(places)]
        if not any(word.terms for word in words):
            words, names = names, []
        named = None
        if numbers:
            named = np.zeros(corpus.speakers, np.bool_)
            named[list(numbers)] = True
        found = look_up(connection, corpus, words, names=names, related=request.mode != "lexical")
        cosines = None
        if self._channel is not None and request.mode != "lexical":
            strict = request.mode != "auto"
            cosines = self._channel.cosines(connection, corpus, text, found.idf, strict=strict)
        return Evidence(question, found, named, None if cosines is None else Cosines(corpus, cosines))


def _usable(connection: apsw.Connection, corpus: Corpus, request: SearchRequest) -> Bools:
    """Return which rows may become hits."""
    usable = corpus.is_alive.copy()
    if request.kinds is not None:
        usable &= corpus.of_kinds(request.kinds)
    if request.where is not None:
        usable &= corpus.marked(request.where)
    if len(request.exclude):
        usable &= ~corpus.marked(request.exclude)
    if request.now is not None:
        usable &= ~corpus.marked(expired_slots(connection, request.now))
    return usable
