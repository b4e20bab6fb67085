"""Maximal marginal relevance: close to the question, unlike what was chosen before."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from libctx_core.search.matrix import unit_rows
from libctx_core.search.neighbours import Neighbour

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def diverse(
    near: Sequence[Neighbour], slots: "NDArray[np.int64]", rows: "NDArray[np.float32]", k: int, weight: float
) -> list[Neighbour]:
    """Return `k` neighbours in the order they are chosen.

    Each choice maximises ``weight * similarity - (1 - weight) * s`` where *s* is the
    highest similarity to a neighbour already chosen; the first is the closest.

    Args:
        near: Candidates, closest first.
        slots: Their slots, ascending.
        rows: Their vectors in the order of `slots`.
        k: How many to choose at most.
        weight: From 0, only difference counts, to 1, only closeness counts.
    """
    import numpy as np

    if not near:
        return []
    at = np.searchsorted(slots, np.array([one.slot for one in near], np.int64))
    units = unit_rows(rows)[at]
    closeness = np.array([one.similarity for one in near], np.float32)
    likeness = np.full(len(near), -np.inf, np.float32)
    chosen = [0]
    while len(chosen) < min(k, len(near)):
        likeness = np.maximum(likeness, units @ units[chosen[-1]])
        gain = weight * closeness - (1.0 - weight) * likeness
        gain[chosen] = -np.inf
        chosen.append(int(np.argmax(gain)))
    return [near[index] for index in chosen]
