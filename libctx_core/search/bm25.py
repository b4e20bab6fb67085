"""BM25 and its kin over the rows of a corpus. Pure: postings in, one score per row out.

All terms are scored together, so a question costs what its postings cost, whatever the
number of its words and the size of the corpus. Where amounts of one term add up over a
window or a session, postings are packed into whole numbers that hold the term, the place
and the amount, sorted, and summed run by run; windows of common terms are summed in a
table of terms and rows instead.
"""

import numpy as np

from libctx_core.search.columns import Columns, Floats, Rows
from libctx_core.search.lexical import Postings, Related

RECORD = (0.9, 0.4)
"""k1 and b for single records and their windows: conversational text is short, length says little."""

SESSION = (1.2, 0.75)
"""k1 and b for whole sessions."""

DENSE = 30
"""Cells of a table of terms and rows for each posting, up to which the table is cheaper than sorting."""

_AMOUNT_BITS = 8
"""A posting's frequency, and a closeness in percent, fit a byte."""


def saturated(frequency: Rows | Floats, length: Floats, average: float, k1: float, b: float) -> Floats:
    """Return BM25's saturated term frequency, from 0 to ``k1 + 1``."""
    count = frequency.astype(np.float32, copy=False)
    norm = np.float32(k1 * (1 - b)) + np.float32(k1 * b / average) * length
    return (count * np.float32(k1 + 1) / (count + norm)).astype(np.float32, copy=False)


def record_scores(corpus: Columns, found: Postings) -> Floats:
    """Return the score of each row read by itself."""
    gained = saturated(found.frequency, corpus.length[found.rows], corpus.average, *RECORD)
    return _by_place(found.rows, found.idf[found.term] * gained, corpus.size)


def window_scores(corpus: Columns, found: Postings) -> Floats:
    """Return the score of each row read together with its two neighbours on either side."""
    terms = len(found.idf)
    if terms * corpus.size <= DENSE * len(found.rows):
        held = np.zeros((terms, corpus.size), np.float32)
        held[found.term, found.rows] = found.frequency
        gained = saturated(corpus.windowed(held), corpus.window_length, corpus.window_average, *RECORD)
        scores: Floats = np.einsum("t,tr->r", found.idf, gained)
        return scores
    term, rows, frequency = _sums(found.term, *corpus.spread_out(found.rows), found.frequency)
    gained = saturated(frequency, corpus.window_length[rows], corpus.window_average, *RECORD)
    return _by_place(rows, found.idf[term] * gained, corpus.size)


def session_scores(corpus: Columns, found: Postings) -> Floats:
    """Return the score of each session; how many sessions hold a term is counted in the corpus."""
    size = len(corpus.session_length)
    average = float(corpus.session_length.sum(dtype=np.float64)) / max(1, corpus.session_alive) or 1.0
    every = np.arange(len(found.rows))
    term, sessions, frequency = _sums(found.term, corpus.session[found.rows], every, found.frequency)
    holding = np.bincount(term, minlength=len(found.idf))
    idf = np.log1p((np.maximum(corpus.session_alive - holding, 0) + 0.5) / (holding + 0.5)).astype(np.float32)
    gained = saturated(frequency, corpus.session_length[sessions], average, *SESSION)
    return _by_place(sessions, idf[term] * gained, size)


def word_scores(corpus: Columns, found: Related) -> Floats:
    """Return the share of the question's idf mass that each row holds, a related word counting by its closeness."""
    packed = _packed(found.word, found.rows, found.closeness)
    keys = packed >> _AMOUNT_BITS
    # of several related words that a row holds, the closest counts: it ends the run
    last = packed[np.flatnonzero(np.append(keys[1:] != keys[:-1], True))] if len(packed) else packed
    word, rows, closeness = _unpacked(last, found.rows)
    mass = float(found.idf.sum(dtype=np.float64)) or 1.0
    share = (found.idf / np.float32(100 * mass)).astype(np.float32, copy=False)
    return _by_place(rows, share[word] * closeness.astype(np.float32), corpus.size)


def _sums(term: Rows, places: Rows, origin: Rows, amount: Rows) -> tuple[Rows, Rows, Rows]:
    """Return terms, the places they reach, and the sum of their amounts at each.

    Args:
        term: Term of each posting.
        places: Places reached.
        origin: The posting that reaches each of them.
        amount: Amount of each posting, below 256.
    """
    packed = _packed(term[origin], places, amount[origin])
    if not len(packed):
        return packed, packed, packed
    keys = packed >> _AMOUNT_BITS
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    sums: Rows = np.add.reduceat(packed & ((1 << _AMOUNT_BITS) - 1), first)
    number, place, _ = _unpacked(packed[first], places)
    return number, place, sums


def _packed(number: Rows, places: Rows, amount: Rows) -> Rows:
    """Return the three in one number each, sorted by number, place and amount."""
    packed = (((number << _place_bits(places)) | places) << _AMOUNT_BITS) | amount
    packed.sort()
    return packed


def _unpacked(packed: Rows, places: Rows) -> tuple[Rows, Rows, Rows]:
    bits = _place_bits(places)
    keys = packed >> _AMOUNT_BITS
    return keys >> bits, keys & ((1 << bits) - 1), packed & ((1 << _AMOUNT_BITS) - 1)


def _place_bits(places: Rows) -> int:
    return int(places.max(initial=0)).bit_length()


def _by_place(places: Rows, values: Floats, size: int) -> Floats:
    return np.bincount(places, values, size).astype(np.float32)
