"""BM25 and its kin over the rows of a scope. Pure: postings in, one score per row out."""

from collections.abc import Sequence

import numpy as np

from libctx_core.search.columns import SPARSE, Columns, Floats, Rows
from libctx_core.search.lexical import TermRows, WordRows, inverse_document_frequency

RECORD = (0.9, 0.4)
"""k1 and b for single records and their windows: conversational text is short, length says little."""

SESSION = (1.2, 0.75)
"""k1 and b for whole sessions."""


def saturated(frequency: Floats, length: Floats, average: float, k1: float, b: float) -> Floats:
    """Return BM25's saturated term frequency, from 0 to ``k1 + 1``."""
    norm = np.float32(k1 * (1 - b)) + np.float32(k1 * b / average) * length
    return (frequency * np.float32(k1 + 1) / (frequency + norm)).astype(np.float32, copy=False)


def record_scores(scope: Columns, terms: Sequence[TermRows]) -> Floats:
    """Return the score of each row read by itself."""
    score = np.zeros(scope.size, np.float32)
    for term in terms:
        gained = saturated(term.frequency, scope.length[term.rows], scope.average, *RECORD)
        score[term.rows] += np.float32(term.idf) * gained
    return score


def window_scores(scope: Columns, terms: Sequence[TermRows]) -> Floats:
    """Return the score of each row read together with its two neighbours on either side."""
    score = np.zeros(scope.size, np.float32)
    for term in terms:
        idf = np.float32(term.idf)

        def gain(frequency: Floats, length: Floats, idf: np.float32 = idf) -> Floats:
            return idf * saturated(frequency, length, scope.window_average, *RECORD)

        scope.add_windowed(score, term.rows, term.frequency, gain)
    return score


def session_scores(scope: Columns, terms: Sequence[TermRows]) -> Floats:
    """Return the score of each session; how many sessions hold a term is counted in the scope."""
    score = np.zeros(len(scope.session_length), np.float32)
    average = float(scope.session_length.sum(dtype=np.float64)) / max(1, scope.session_alive) or 1.0
    for term in terms:
        sessions, frequency = _sums(scope.session[term.rows], term.frequency, len(score))
        idf = inverse_document_frequency(scope.session_alive, len(sessions))
        gained = saturated(frequency, scope.session_length[sessions], average, *SESSION)
        score[sessions] += np.float32(idf) * gained
    return score


def _sums(places: Rows, values: Floats, size: int) -> tuple[Rows, Floats]:
    """Return the places that occur, and the sum of the values at each."""
    if len(places) * SPARSE > size:
        sums = np.bincount(places, values, size).astype(np.float32)
        found = np.flatnonzero(sums)
        return found, sums[found]
    found, at = np.unique(places, return_inverse=True)
    return found, np.bincount(at, values).astype(np.float32)


def word_scores(scope: Columns, words: Sequence[WordRows]) -> Floats:
    """Return the share of the question's idf mass that each row holds, a related word counting by its closeness."""
    score = np.zeros(scope.size, np.float32)
    mass = sum(word.idf for word in words)
    held = np.zeros(scope.size, np.float32)
    for word in words:
        share = word.idf / mass if mass else 0.0
        for closeness, rows in word.rows:
            held[rows] = share * closeness
        for _, rows in word.rows:
            # a row that several of the words hold is taken once: its value is moved, then cleared
            score[rows] += held[rows]
            held[rows] = 0
    return score
