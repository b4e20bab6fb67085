"""Relevance: whether a hit looks like an answer, on a scale that does not depend on the other hits."""

from dataclasses import astuple, dataclass

import numpy as np

from libctx_core.search.bm25 import RECORD
from libctx_core.search.columns import Floats, Rows
from libctx_core.search.ranking import Measured

PRIOR = 5.0
"""Added to every inverse document frequency where amounts are counted: in a store of a few
records the frequencies say nothing, and each word counts alike."""

SPEAKER = 3.0
"""Weight of the named speaker. Set, not learnt: left free it would only tell whether a name is known."""


@dataclass(frozen=True, slots=True)
class RelevanceModel:
    """A logistic regression; learnt by ``benchmarks/learn_relevance.py``.

    It tells the evidence of questions from the best ten hits of the same questions put to
    a conversation that cannot answer them, and of small talk, both kinds being equally
    likely. Shares are of the question's idf mass; the amount is that mass in words as
    rare as can be.

    Attributes:
        held_share: Share that the record holds, related words counting by closeness.
        window_share: BM25 of the window as a share of the most it could be.
        window_amount: ``ln(1 + the same as an amount)``.
        vector: The `vector` signal.
        vector_window: The `vector_window` signal.
        speaker: One half if the question names the speaker, minus one half if it names others.
        intercept: Log-odds where all are 0.
    """

    held_share: float
    window_share: float
    window_amount: float
    vector: float
    vector_window: float
    speaker: float
    intercept: float


WITH_VECTORS = RelevanceModel(2.74, 3.5, 2.24, 0.61, 1.29, SPEAKER, -4.57)
WORDS_ONLY = RelevanceModel(3.11, 3.73, 2.53, 0.0, 0.0, SPEAKER, -4.05)

_WITH_VECTORS, _WORDS_ONLY = (np.array(astuple(model), np.float32) for model in (WITH_VECTORS, WORDS_ONLY))


def features(measured: Measured, rows: Rows) -> Floats:
    """Return the values that a `RelevanceModel` weighs, one row each, the last column 1."""
    signals = measured.signals
    rows = measured.places(rows)
    nothing = np.zeros(len(rows), np.float32)
    most = measured.mass * (RECORD[0] + 1)
    window = nothing if measured.window is None or not most else measured.window[rows] / np.float32(most)
    words = (measured.mass + PRIOR * measured.asked) / (measured.rarity + PRIOR)
    columns = (
        signals["related"][rows] if "related" in signals else nothing,
        window,
        np.log1p(window * np.float32(words)),
        signals["vector"][rows] if "vector" in signals else nothing,
        signals["vector_window"][rows] if "vector_window" in signals else nothing,
        (signals["speaker"][rows] > 0) - np.float32(0.5) if "speaker" in signals else nothing,
        nothing + 1,
    )
    return np.stack(columns, axis=1).astype(np.float32)


def relevance(measured: Measured, rows: Rows) -> Floats:
    """Return the relevance of each of the rows, from 0 to 1."""
    model = _WITH_VECTORS if "vector" in measured.signals else _WORDS_ONLY
    odds = features(measured, rows) @ model
    likely: Floats = (1 / (1 + np.exp(-odds))).astype(np.float32)
    return likely
