"""How many candidates bit codes must name so that the true neighbours are among them: measured, not assumed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Picker: TypeAlias = Callable[[int], NDArray[np.intp]]

QUESTIONS = 48
"""Stored vectors that serve as sample questions. They are the harder ones: on 23,000 turns
of QMSum and LoCoMo, 640 candidates held 95 % of their true neighbours, and 99 % of those
of the data sets' own questions."""

NEIGHBOURS = 10

TARGET_RECALL = 0.98
"""Share of the true ten neighbours that must be among the candidates on average."""

LADDER = (160, 320, 640, 1_280, 2_560, 5_120, 10_240)
"""Numbers of candidates that are tried, cheapest first."""

SHORTLIST = 4
"""Codes by Hamming distance per candidate, from which the finer agreement picks."""

LEAST_SHORTLIST = 4_096

_TWIN = 1.0 - 1e-6
"""Cosine from which a vector counts as the question itself, which any code finds."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a sample said about an owner's codes.

    Attributes:
        candidates: Candidates for ten neighbours; 0 if no number reached the target.
        recall: Share of the true neighbours among them.
        slope: Change of the cosine per differing bit, by least squares.
        intercept: Cosine expected where no bit differs.
    """

    candidates: int
    recall: float
    slope: float
    intercept: float

    def candidates_for(self, k: int) -> int:
        """Return how many candidates `k` neighbours need."""
        return self.candidates * max(1, -(-k // NEIGHBOURS))


def shortlist(distances: "NDArray[np.uint16]", candidates: int, never: int) -> "NDArray[np.intp]":
    """Return the codes from which so many candidates are picked: the nearest by Hamming distance, ties included."""
    import numpy as np

    wanted = max(LEAST_SHORTLIST, SHORTLIST * candidates)
    reach = never - 1
    if wanted < len(distances):
        reach = min(reach, int(np.partition(distances, wanted)[wanted]))
    return np.flatnonzero(distances <= reach)


def pick(rows: "NDArray[np.intp]", agreements: "NDArray[np.float32]", candidates: int) -> "NDArray[np.intp]":
    """Return the rows that agree best with the question, in no particular order."""
    import numpy as np

    if candidates >= len(rows):
        return rows
    return rows[np.argpartition(-agreements, candidates)[:candidates]]


class Sample:
    """Sample questions and their true neighbours, collected while the vectors pass by.

    Args:
        units: Unit vectors to choose questions from, shape ``(n, dimension)``.
    """

    def __init__(self, units: "NDArray[np.float32]") -> None:
        import numpy as np

        at = np.linspace(0, len(units) - 1, min(QUESTIONS, len(units))).astype(np.int64)
        self.questions = units[at]
        self._scores = np.full((len(at), NEIGHBOURS), -np.inf, np.float32)
        self._rows = np.full((len(at), NEIGHBOURS), -1, np.int64)
        self._seen: NDArray[np.float32] = np.empty((len(at), 0), np.float32)

    def measure(self, units: "NDArray[np.float32]", start: int) -> None:
        """Take in the vectors of rows `start` and following."""
        import numpy as np

        scores = self.questions @ units.T
        if start == 0:
            self._seen = scores.copy()
        scores[scores > _TWIN] = -np.inf
        joined = np.concatenate([self._scores, scores], axis=1)
        rows = np.concatenate([self._rows, np.broadcast_to(np.arange(start, start + len(units)), scores.shape)], axis=1)
        top = np.argpartition(joined, joined.shape[1] - NEIGHBOURS, axis=1)[:, -NEIGHBOURS:]
        self._scores = np.take_along_axis(joined, top, axis=1)
        self._rows = np.take_along_axis(rows, top, axis=1)

    def calibrate(self, look: "Callable[[int], tuple[NDArray[np.uint16], Picker]]") -> Calibration:
        """Return what the codes say about the sample questions.

        Args:
            look: Returns, for the index of a question, the distance of every code to it and
                what picks that many candidates for it.
        """
        import numpy as np

        shares = np.zeros(len(LADDER))
        pairs: list[NDArray[np.float64]] = []
        for question in range(len(self.questions)):
            distances, picked = look(question)
            true = self._rows[question][np.isfinite(self._scores[question])]
            shares += [np.isin(true, picked(size)).mean() if len(true) else 1.0 for size in LADDER]
            seen = self._seen[question]
            pairs.append(np.stack([distances[: len(seen)].astype(np.float64), seen.astype(np.float64)]))
        shares /= max(1, len(self.questions))
        line = np.concatenate(pairs, axis=1)
        slope, intercept = np.polyfit(line[0], line[1], 1) if np.ptp(line[0]) > 0.0 else (0.0, float(line[1].mean()))
        reached = np.flatnonzero(shares >= TARGET_RECALL)
        chosen = int(reached[0]) if len(reached) else len(LADDER) - 1
        return Calibration(
            candidates=LADDER[chosen] if len(reached) else 0,
            recall=float(shares[chosen]),
            slope=float(slope),
            intercept=float(intercept),
        )
