"""Relevance: how likely a hit answers the question, on a scale that does not depend on the other hits."""

from dataclasses import astuple, dataclass

import numpy as np

from libctx_core.search.bm25 import RECORD
from libctx_core.search.ranking import Measured
from libctx_core.search.scope import Floats, Rows

UNNAMED = 0.5
"""Value of the speaker feature where the question names nobody, or nobody speaks."""


@dataclass(frozen=True, slots=True)
class RelevanceModel:
    """A logistic regression; learnt by ``benchmarks/learn_weights.py`` together with the weights.

    Examples are the best fifteen hits of each question, of the same question put to a
    conversation that cannot answer it, and of small talk. Shares are of the question's
    idf mass; amounts are that mass in words as rare as can be, ``ln(1 + x)``.

    Attributes:
        held_share: Share that the record holds, related words counting by closeness.
        held_amount: The same as an amount.
        window_share: BM25 of the window as a share of the most it could be.
        window_amount: The same as an amount.
        vector: The `vector` signal.
        vector_window: The `vector_window` signal.
        speaker: The question names the speaker; `UNNAMED` if it names nobody.
        intercept: Log-odds where all are 0.
    """

    held_share: float
    held_amount: float
    window_share: float
    window_amount: float
    vector: float
    vector_window: float
    speaker: float
    intercept: float


WITH_VECTORS = RelevanceModel(1.62, 0.89, 1.23, 1.12, 0.76, 0.66, 2.19, -7.64)
WORDS_ONLY = RelevanceModel(1.77, 1.22, 1.41, 1.43, 0.0, 0.0, 2.19, -7.39)


def features(measured: Measured, rows: Rows) -> Floats:
    """Return the values that a `RelevanceModel` weighs, one row each, the last column 1."""
    signals = measured.signals
    nothing = np.zeros(len(rows), np.float32)
    held = signals["related"][rows] if "related" in signals else nothing
    most = measured.mass * (RECORD[0] + 1)
    window = nothing if measured.window is None or not most else measured.window[rows] / np.float32(most)
    words = np.float32(measured.mass / measured.rarity if measured.rarity else 0)
    speaker = signals["speaker"][rows] > 0 if "speaker" in signals else nothing + UNNAMED
    columns = (
        held,
        np.log1p(held * words),
        window,
        np.log1p(window * words),
        signals["vector"][rows] if "vector" in signals else nothing,
        signals["vector_window"][rows] if "vector_window" in signals else nothing,
        speaker,
        nothing + 1,
    )
    return np.stack(columns, axis=1).astype(np.float32)


def relevance(measured: Measured, rows: Rows) -> Floats:
    """Return the relevance of each of the rows, from 0 to 1."""
    model = WITH_VECTORS if "vector" in measured.signals else WORDS_ONLY
    odds = features(measured, rows) @ np.array(astuple(model), np.float32)
    return (1 / (1 + np.exp(-odds))).astype(np.float32)
