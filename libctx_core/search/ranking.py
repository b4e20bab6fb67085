"""The ranker: a weighted sum of cheap signals, each documented, all weights in one value.

Pure: arrays in, arrays out. A signal is neutral (the same for every record) where the
speaker, session, time or vectors it reads are missing, so the ranker degrades to words
plus vectors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from libctx_core.search import flags
from libctx_core.search.analysis import Question
from libctx_core.search.bm25 import record_scores, session_scores, window_scores, word_scores
from libctx_core.search.columns import Bools, Columns, Floats, Rows
from libctx_core.search.corpus import Corpus
from libctx_core.search.focus import Cosines
from libctx_core.search.lexical import Lookup


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalWeights:
    """The weight of each signal; learnt by ``benchmarks/learn_weights.py``.

    Attributes:
        window: BM25 of the record read with its two neighbours on either side.
        speaker: The question names exactly this record's speaker; one half if it names several.
        session: BM25 of the whole session.
        verbosity: ``ln(1 + content words) / 4``.
        news: ``ln(1 + terms nobody used before in its owner) / 2``: what it was first to speak of.
        question: The record is a question somebody asked.
        time: The question asks when, and the record holds a word of time.
        vector: Cosine, standardised over the corpus, divided by four.
        vector_window: Mean of that over the record and its two neighbours on either side, likewise.
        related: Share of the question's idf mass that the record holds, related words counting by closeness.
        speaker_first: The named speaker speaks of themselves.
    """

    window: float = 2.86
    speaker: float = 1.68
    session: float = 1.73
    verbosity: float = -0.65
    news: float = 0.95
    question: float = -0.53
    time: float = 1.68
    vector: float = 0.83
    vector_window: float = 1.06
    related: float = 2.2
    speaker_first: float = 0.64


WEIGHTS_VERSION = "1"
"""Name of the default weights; grows whenever one of them changes."""

DEFAULT_WEIGHTS = SignalWeights()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the channels found for one question.

    Attributes:
        question: The analysed question.
        found: Rows of its words, names of speakers dropped.
        named: Whether each speaker of the corpus is named in the question, or None if none is.
        cosines: Cosines of the rows; None without vectors.
    """

    question: Question
    found: Lookup
    named: Bools | None
    cosines: Cosines | None


@dataclass(frozen=True, slots=True)
class Measured:
    """A question measured against the rows of a corpus, or some of them.

    Attributes:
        rows: The rows that were measured, rising; None if all were.
        signals: Each signal that applies, by the name of its weight.
        words: BM25 of each row by itself; None if words were not asked.
        window: BM25 of each window, not scaled; None if words were not asked.
        asked: Words of the question that carry meaning.
        mass: Sum of their inverse document frequencies.
        rarity: That of a word that no record holds.
    """

    rows: Rows | None
    signals: Mapping[str, Floats]
    words: Floats | None
    window: Floats | None
    asked: int
    mass: float
    rarity: float

    def places(self, rows: Rows) -> Rows:
        """Return where rows that were measured stand in the arrays."""
        return rows if self.rows is None else np.searchsorted(self.rows, rows)


def measure(corpus: Corpus, evidence: Evidence, *, with_words: bool, rows: Rows | None = None) -> Measured:
    """Return every signal over the rows of a corpus.

    Args:
        corpus: The records.
        evidence: What the channels found.
        with_words: Use the lexical channel and what is known of the records.
        rows: Measure only these, which include `concerned` ones; None means all.
    """
    columns = corpus if rows is None else corpus.narrowed(rows)
    found = evidence.found if rows is None else evidence.found.placed(rows)
    signals: dict[str, Floats] = {}
    words = window = None
    if with_words:
        words, window = record_scores(columns, found.terms), window_scores(columns, found.terms)
        signals["window"] = _peak(window)
        signals["session"] = _peak(session_scores(columns, found.terms))[columns.session]
        signals["related"] = word_scores(columns, found.words)
        signals |= _structure(columns, evidence)
    if evidence.cosines is not None:
        signals["vector"] = evidence.cosines.plain(rows)
        signals["vector_window"] = evidence.cosines.windows(rows)
    asked = found.words.idf
    mass = float(asked.sum(dtype=np.float64))
    return Measured(rows, signals, words, window, len(asked), mass, float(np.log1p(2 * corpus.alive)))


def _structure(corpus: Columns, evidence: Evidence) -> dict[str, Floats]:
    found = {
        "verbosity": corpus.verbosity,
        "news": corpus.news,
        "question": _flag(corpus, flags.QUESTION | flags.SPOKEN),
    }
    if evidence.question.asks_time:
        found["time"] = _flag(corpus, flags.TIME)
    if evidence.named is not None:
        spoken = evidence.named[corpus.speaker].astype(np.float32)
        found["speaker"] = spoken * np.float32(1 if np.count_nonzero(evidence.named) == 1 else 0.5)
        found["speaker_first"] = spoken * _flag(corpus, flags.FIRST_PERSON)
    return found


def combine(signals: Mapping[str, Floats], weights: SignalWeights, size: int) -> Floats:
    """Return the weighted sum of the signals."""
    score = np.zeros(size, np.float32)
    for field in fields(weights):
        weight = getattr(weights, field.name)
        if weight and field.name in signals:
            score += np.float32(weight) * signals[field.name]
    return score


def reciprocal_ranks(lists: Sequence[Floats], usable: Bools, k: int) -> Floats:
    """Return the sum over lists of ``1 / (k + rank)``; a row without a positive score has no rank."""
    total = np.zeros(len(usable), np.float32)
    for scores in lists:
        rows = np.flatnonzero(usable & (scores > 0))
        order = rows[np.argsort(-scores[rows], kind="stable")]
        total[order] += 1 / np.arange(k + 1, k + 1 + len(order), dtype=np.float32)
    return total


def best(score: Floats, usable: Bools, k: int) -> NDArray[np.int64]:
    """Return the `k` best usable rows, best first; ties go to the earlier row."""
    rows = np.flatnonzero(usable)
    values = score[rows]
    if len(rows) > k > 0:
        threshold = np.partition(values, len(rows) - k)[len(rows) - k]
        keep = values >= threshold
        rows, values = rows[keep], values[keep]
    return rows[np.argsort(-values, kind="stable")][: max(k, 0)]


def _flag(corpus: Columns, bits: int) -> Floats:
    held: Floats = ((corpus.flags & bits) == bits).astype(np.float32)
    return held


def _peak(scores: Floats) -> Floats:
    top = scores.max(initial=0)
    return scores / top if top > 0 else scores
