"""Large corpora: the rows that a question can concern, so that only those are measured."""

import numpy as np

from libctx_core.search.columns import Bools, Floats, Rows
from libctx_core.search.corpus import Corpus
from libctx_core.search.lexical import Lookup

LARGE = 200_000
"""Rows from which only those are measured that hold a word of the question, lie near one, or are close by vector."""

CLOSE = 2.5
"""Standard deviations above the mean cosine from which a row is close."""

SAMPLE = 65_536
"""Rows by which the cosines of a larger corpus are standardised."""

WINDOW_SAMPLE = 8_192
"""Rows by which their windows are, where not all are measured."""


class Cosines:
    """The cosines of a corpus on a scale of their own: deviations from their mean, divided by four.

    Args:
        corpus: The records.
        cosines: Cosine of each row, NaN where it has no vector.
    """

    def __init__(self, corpus: Corpus, cosines: Floats) -> None:
        self._scope = corpus
        self._cosines = cosines
        self._sample = np.arange(0, corpus.size, max(1, corpus.size // SAMPLE))
        known = corpus.is_alive[self._sample] & np.isfinite(cosines[self._sample])
        self._mean, self._scale = _scaling(cosines[self._sample], known)

    def plain(self, rows: Rows | None = None) -> Floats:
        """Return the standardised cosine of each row, 0 where it has none."""
        cosines = self._cosines if rows is None else self._cosines[rows]
        scaled = (cosines - self._mean) * self._scale
        missing = np.isnan(scaled)
        if missing.any():
            scaled[missing] = 0
        return scaled

    def windows(self, rows: Rows | None = None) -> Floats:
        """Return each row's mean with its two neighbours on either side, standardised likewise."""
        corpus = self._scope
        if rows is None:
            means = corpus.windowed(self.plain()) / corpus.window_size
            sample = self._sample
            measured = means[sample]
        else:
            means = corpus.window_sums(self.plain, rows) / corpus.window_size[rows]
            sample = self._sample[:: max(1, len(self._sample) // WINDOW_SAMPLE)]
            measured = corpus.window_sums(self.plain, sample) / corpus.window_size[sample]
        mean, scale = _scaling(measured, corpus.is_alive[sample])
        return (means - mean) * scale

    def close(self) -> Bools:
        """Return which rows are close."""
        if not self._scale:
            return np.zeros(self._scope.size, np.bool_)
        return self._cosines > self._mean + np.float32(CLOSE / 4) / self._scale


def _scaling(values: Floats, known: Bools) -> tuple[np.float32, np.float32]:
    """Return the mean of the known values, and the factor that makes four of their deviations one."""
    sample = values if known.all() else values[known]
    deviation = float(sample.std()) if len(sample) else 0.0
    if deviation == 0:
        return np.float32(0), np.float32(0)
    return np.float32(sample.mean()), np.float32(1 / (4 * deviation))


def concerned(corpus: Corpus, found: Lookup, cosines: Cosines | None) -> Rows:
    """Return the rows that hold a word of the question or a related one, lie near the former, or are close."""
    marked = corpus.around(found.terms.rows)
    marked[found.words.rows] = True
    if cosines is not None:
        marked |= cosines.close()
    return np.flatnonzero(marked)
