"""The vector index: exact cosine similarity over the vectors of the permitted owners.

Truth is the float32 row in the file. Small and filtered searches read just the rows they
need; repeated ones use a matrix of unit vectors per owner, kept in a cache bounded by
bytes and checked, on every use, against the owner's state in the same snapshot, so other
threads' and processes' writes are seen without a message. A filter is resolved to slots
first and the best k are taken among exactly those: nothing is over-fetched and dropped.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import apsw

from libctx_core.errors import EmbeddingDimensionError, InvalidInputError, OptionalDependencyError
from libctx_core.search.matrix import OwnerMatrix, best, load, refresh, unit_rows
from libctx_core.search.slots import SlotSet, contained
from libctx_core.store.connection import vector_extension
from libctx_core.store.records import slot_of, slot_range
from libctx_core.store.vectors import VectorState, read_some_vectors, read_vectors, vector_bytes, vector_state

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Backend: TypeAlias = Literal["numpy", "sqlite-vec"]

DEFAULT_CACHE_BYTES = 256 * 1024 * 1024
"""Bytes of cached matrices: 170,000 vectors of 384 dimensions."""

GATHER_SHARE = 3
"""A permitted set under one in this many of the owner's vectors is gathered, not masked:
a gathered row costs about three times a scanned one."""

PATIENCE = 8
"""Permitted rows are read from the file until one in this many of the owner's vectors
were; from then on the owner's matrix is cheaper."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A record and how close its vector is.

    Attributes:
        slot: The record's slot.
        similarity: Cosine in [-1, 1]; 0 if either vector is zero.
    """

    slot: int
    similarity: float


class VectorIndex:
    """Searches the vectors of one library file; safe to share between threads.

    Args:
        backend: ``"numpy"`` scans cached matrices, ``"sqlite-vec"`` lets the extension
            compute each distance inside SQLite and keeps nothing in memory.
        cache_bytes: Bytes of matrices to keep; an owner larger than that is searched
            from the file.
    """

    def __init__(self, *, backend: Backend = "numpy", cache_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        if backend not in ("numpy", "sqlite-vec"):
            raise InvalidInputError("backend", "must be 'numpy' or 'sqlite-vec'")
        if backend == "sqlite-vec" and vector_extension() is None:
            raise OptionalDependencyError("the sqlite-vec vector backend", "sqlite-vec")
        self.backend: Backend = backend
        self.cache_bytes = cache_bytes
        self._lock = threading.Lock()
        self._matrices: OrderedDict[int, OwnerMatrix] = OrderedDict()
        self._turns: dict[int, threading.Lock] = {}
        self._rows_read: dict[int, int] = {}

    def similarities(
        self, connection: apsw.Connection, owners: Sequence[int], query: "Sequence[float] | NDArray[np.float32]"
    ) -> "dict[int, NDArray[np.float32]]":
        """Return the cosine of every record of each owner, indexed by position.

        Args:
            connection: A read connection; its snapshot is what is searched.
            owners: Owners the caller may read; those without vectors are left out.
            query: The question's vector.

        Returns:
            Per owner an array in which element *p* belongs to position *p*, up to the
            last position with a vector; NaN where a position has none.

        Raises:
            EmbeddingDimensionError: The query has another length than an owner's vectors.
            InvalidInputError: The query is not a flat sequence of finite numbers.
        """
        import numpy as np

        unit = _unit(query)
        found: dict[int, NDArray[np.float32]] = {}
        for owner in owners:
            state = _comparable(connection, owner, unit)
            if state is None:
                continue
            first = slot_of(owner, 0)
            scores = np.full(state.tail - first, np.nan, np.float32)
            for slots, block in self._scan(connection, owner, state, unit):
                scores[slots - first] = np.clip(block, -1.0, 1.0)
            found[owner] = scores
        return found

    def top_k(
        self,
        connection: apsw.Connection,
        owners: Sequence[int],
        query: "Sequence[float] | NDArray[np.float32]",
        k: int,
        *,
        allowed: "dict[int, SlotSet] | None" = None,
    ) -> list[Neighbour]:
        """Return the `k` closest records, closest first, equal ones by ascending slot.

        Args:
            connection: A read connection; its snapshot is what is searched.
            owners: Owners the caller may read.
            query: The question's vector.
            k: How many to return at most.
            allowed: Per owner the records a filter permits; an owner that is not named is
                searched whole.

        Raises:
            EmbeddingDimensionError: The query has another length than an owner's vectors.
            InvalidInputError: The query is not a flat sequence of finite numbers.
        """
        unit = _unit(query)
        if k < 1:
            return []
        found: list[Neighbour] = []
        for owner in owners:
            state = _comparable(connection, owner, unit)
            if state is None:
                continue
            permitted = None if allowed is None else allowed.get(owner)
            if self.backend == "sqlite-vec":
                found += _nearest_in_sql(connection, owner, unit, k, permitted)
            else:
                found += self._nearest(connection, owner, state, unit, k, permitted)
        found.sort(key=lambda one: (-one.similarity, one.slot))
        return found[:k]

    def matrix(self, connection: apsw.Connection, owner: int, state: VectorState | None = None) -> OwnerMatrix:
        """Return an owner's unit vectors as of the connection's snapshot; do not change them."""
        state = vector_state(connection, owner) if state is None else state
        if state is None:
            return OwnerMatrix.empty(owner)
        with self._lock:
            turn = self._turns.setdefault(owner, threading.Lock())
        with turn:
            with self._lock:
                known = self._matrices.get(owner)
            fresh = (refresh(connection, known, state) if known is not None else None) or load(connection, owner, state)
            self._keep(fresh)
        return fresh.as_of(state)

    def forget(self, owner: int | None = None) -> None:
        """Drop cached matrices: of one owner, or all."""
        with self._lock:
            if owner is None:
                self._matrices.clear()
                self._rows_read.clear()
            else:
                self._matrices.pop(owner, None)
                self._rows_read.pop(owner, None)

    # -- inside ---------------------------------------------------------------

    def _nearest(
        self,
        connection: apsw.Connection,
        owner: int,
        state: VectorState,
        unit: "NDArray[np.float32]",
        k: int,
        permitted: SlotSet | None,
    ) -> list[Neighbour]:
        if permitted is not None and not permitted.negated and self._reads_rows(owner, state, len(permitted.slots)):
            slots, rows = read_some_vectors(connection, permitted.slots, state.dimension)
            return _neighbours(slots, unit_rows(rows) @ unit, k)
        if self._is_too_large(state):
            return self._scanned(connection, owner, state, unit, k, permitted)
        matrix = self.matrix(connection, owner, state)
        if permitted is not None and not permitted.negated and len(permitted.slots) * GATHER_SHARE < len(matrix.slots):
            rows_at = matrix.rows_of(permitted.slots)
            return _neighbours(matrix.slots[rows_at], matrix.units[rows_at] @ unit, k)
        return _neighbours(*_masked(matrix.slots, matrix.units @ unit, matrix.alive, permitted), k)

    def _scanned(
        self,
        connection: apsw.Connection,
        owner: int,
        state: VectorState,
        unit: "NDArray[np.float32]",
        k: int,
        permitted: SlotSet | None,
    ) -> list[Neighbour]:
        """Search an owner that does not fit the cache, block by block."""
        found: list[Neighbour] = []
        for slots, scores in self._scan(connection, owner, state, unit):
            found += _neighbours(*_masked(slots, scores, None, permitted), k)
            found.sort(key=lambda one: (-one.similarity, one.slot))
            del found[k:]
        return found

    def _scan(
        self, connection: apsw.Connection, owner: int, state: VectorState, unit: "NDArray[np.float32]"
    ) -> "Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]":
        """Yield slots and scores of all an owner's vectors, from the cache or in blocks from the file."""
        if self._is_too_large(state):
            for slots, rows in read_vectors(connection, *slot_range(owner), state.dimension):
                yield slots, unit_rows(rows) @ unit
            return
        matrix = self.matrix(connection, owner, state)
        yield _masked(matrix.slots, matrix.units @ unit, matrix.alive, None)

    def _is_too_large(self, state: VectorState) -> bool:
        return 4 * state.count * state.dimension > self.cache_bytes

    def _reads_rows(self, owner: int, state: VectorState, wanted: int) -> bool:
        """Decide between reading the permitted rows and loading, or using, the matrix."""
        with self._lock:
            if owner in self._matrices:
                return False
            read = self._rows_read.get(owner, 0) + wanted
            self._rows_read[owner] = read
        return self._is_too_large(state) or read * PATIENCE <= state.count

    def _keep(self, matrix: OwnerMatrix) -> None:
        with self._lock:
            self._matrices[matrix.owner] = matrix
            self._matrices.move_to_end(matrix.owner)
            held = sum(one.nbytes for one in self._matrices.values())
            while held > self.cache_bytes and self._matrices:
                _, dropped = self._matrices.popitem(last=False)
                held -= dropped.nbytes


def _unit(query: "Sequence[float] | NDArray[np.float32]") -> "NDArray[np.float32]":
    import numpy as np

    row = np.frombuffer(vector_bytes(query, field="query"), "<f4")
    unit: NDArray[np.float32] = unit_rows(row.reshape(1, -1))[0]
    return unit


def _comparable(connection: apsw.Connection, owner: int, unit: "NDArray[np.float32]") -> VectorState | None:
    state = vector_state(connection, owner)
    if state is None:
        return None
    if state.dimension != len(unit):
        raise EmbeddingDimensionError(state.dimension, len(unit))
    return state if state.count else None


def _masked(
    slots: "NDArray[np.int64]",
    scores: "NDArray[np.float32]",
    alive: "NDArray[np.bool_] | None",
    permitted: SlotSet | None,
) -> "tuple[NDArray[np.int64], NDArray[np.float32]]":
    """Return the slots and scores of what exists and is permitted."""
    if permitted is not None:
        keep = contained(slots, permitted.slots) != permitted.negated
        if alive is not None:
            keep &= alive
    elif alive is None:
        return slots, scores
    else:
        keep = alive
    return slots[keep], scores[keep]


def _neighbours(slots: "NDArray[np.int64]", scores: "NDArray[np.float32]", k: int) -> list[Neighbour]:
    return [Neighbour(int(slots[at]), max(-1.0, min(1.0, float(scores[at])))) for at in best(scores, slots, k)]


def _nearest_in_sql(
    connection: apsw.Connection, owner: int, unit: "NDArray[np.float32]", k: int, permitted: SlotSet | None
) -> list[Neighbour]:
    if permitted is not None and not len(permitted.slots):
        if not permitted.negated:
            return []
        permitted = None
    first, last = slot_range(owner)
    score = "coalesce(1.0 - vec_distance_cosine(data, ?1), 0.0)"
    bound: tuple[object, ...] = (first, last)
    where = "slot BETWEEN ?3 AND ?4"
    if permitted is not None and permitted.negated:
        where += " AND slot NOT IN (SELECT value FROM carray(?5))"
        bound = (first, last, apsw.carray(permitted.slots))
    elif permitted is not None:
        where, bound = "slot IN (SELECT value FROM carray(?3))", (apsw.carray(permitted.slots),)
    rows = connection.execute(
        f"SELECT slot, {score} AS score FROM vector WHERE {where} ORDER BY score DESC, slot LIMIT ?2",  # noqa: S608
        (unit.tobytes(), k, *bound),
    )
    return [Neighbour(slot, max(-1.0, min(1.0, score))) for slot, score in rows]
