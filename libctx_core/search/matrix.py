"""Exact cosines: the unit vectors of an owner as one matrix, kept while the owner only grows."""

import threading

import apsw
import numpy as np
from numpy.typing import NDArray

from libctx_core.search.scope import Floats, Scope
from libctx_core.store.index_records import read_vectors
from libctx_core.store.records import owner_and_position


class VectorMatrix:
    """Cosines of a question with every record in scope.

    Args:
        max_bytes: Bytes of matrices kept; the owner in use is always kept.
    """

    def __init__(self, max_bytes: int = 192 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._kept: dict[int, tuple[int, Floats]] = {}
        self._lock = threading.Lock()

    def similarities(self, connection: apsw.Connection, scope: Scope, query: Floats) -> Floats:
        """Return the cosine of each row of the scope; NaN where a record has no vector."""
        pieces = [
            self._matrix(connection, part.state.owner, part.state.revision, len(part.rows), len(query)) @ query
            for part in scope.parts
        ]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.float32)

    def _matrix(self, connection: apsw.Connection, owner: int, revision: int, size: int, dimension: int) -> Floats:
        with self._lock:
            kept = self._kept.pop(owner, None)
        if kept is not None and (kept[0] != revision or len(kept[1]) > size):
            kept = None
        if kept is None or len(kept[1]) < size:
            start = 0 if kept is None else len(kept[1])
            tail = _load(connection, owner, start, size, dimension)
            kept = (revision, tail if kept is None else np.concatenate([kept[1], tail]))
        with self._lock:
            self._kept[owner] = kept
            while len(self._kept) > 1 and sum(matrix.nbytes for _, matrix in self._kept.values()) > self._max_bytes:
                self._kept.pop(next(iter(self._kept)))
        return kept[1]


def _load(connection: apsw.Connection, owner: int, start: int, size: int, dimension: int) -> NDArray[np.float32]:
    matrix = np.full((size - start, dimension), np.nan, np.float32)
    for slot, data in read_vectors(connection, owner, start):
        position = owner_and_position(slot)[1]
        if position < size:
            matrix[position - start] = np.frombuffer(data, "<f4")
    return matrix
