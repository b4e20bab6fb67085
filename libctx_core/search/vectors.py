"""The vector index: cosine similarity over the vectors of the permitted owners.

Truth is the row in the file. Small and filtered searches read just the rows they
need; repeated ones use a matrix of unit vectors per owner, kept in a cache bounded by
bytes and checked, on every use, against the owner's state in the same snapshot, so other
threads' and processes' writes are seen without a message. A filter is resolved to slots
first and the best k are taken among exactly those: nothing is over-fetched and dropped.
Only an owner whose matrix would exceed the cache is looked at through bit codes first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import apsw

from libctx_core.errors import (
    EmbeddingDimensionError,
    InvalidInputError,
    OptionalDependencyError,
    StoreBusyError,
    StoreFullError,
    StoreReadOnlyError,
)
from libctx_core.search import accelerator
from libctx_core.search.accelerator import NEVER, CodeTable
from libctx_core.search.cache import ByteCache
from libctx_core.search.matrix import OwnerMatrix, dots, load, refresh, unit_rows
from libctx_core.search.neighbours import Neighbour, masked, nearest_in_sql, neighbours
from libctx_core.search.slots import SlotSet, contained
from libctx_core.store.connection import vector_extension
from libctx_core.store.database import Database
from libctx_core.store.records import slot_of, slot_range
from libctx_core.store.vectors import (
    VectorState,
    is_quantised,
    read_some_vectors,
    read_vectors,
    vector_bytes,
    vector_state,
)

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


CODE_CACHE_BYTES = 256 * 1024 * 1024
"""Bytes of cached bit codes: 4.5 million vectors of 384 dimensions."""

FEW = 5_000
"""A permitted set up to this size is measured exactly even where bit codes exist."""


class VectorIndex:
    """Searches the vectors of one library file; safe to share between threads.

    Args:
        backend: ``"numpy"`` scans cached matrices, ``"sqlite-vec"`` lets the extension
            compute each distance inside SQLite and keeps nothing in memory; it reads
            float32 only, so the default embedder's vectors are searched as by ``"numpy"``.
        cache_bytes: Bytes of matrices to keep; an owner larger than that is searched
            through bit codes, or exactly from the file where codes would miss too much.
    """

    def __init__(self, *, backend: Backend = "numpy", cache_bytes: int = DEFAULT_CACHE_BYTES) -> None:
        if backend not in ("numpy", "sqlite-vec"):
            raise InvalidInputError("backend", "must be 'numpy' or 'sqlite-vec'")
        if backend == "sqlite-vec" and vector_extension() is None:
            raise OptionalDependencyError("the sqlite-vec vector backend", "sqlite-vec")
        self.backend: Backend = backend
        self.cache_bytes = cache_bytes
        self._matrices: ByteCache[int, OwnerMatrix] = ByteCache(cache_bytes)
        self._codes: ByteCache[int, CodeTable] = ByteCache(CODE_CACHE_BYTES)
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
            last position with a vector; NaN where a position has none. For an owner
            searched through bit codes, those far from the question are estimates.

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
            codes = self._coded(connection, owner, state)
            scan = self._scan(connection, owner, state, unit) if codes is None else _estimated(connection, codes, unit)
            for slots, block in scan:
                seen = int(np.searchsorted(slots, state.tail))
                scores[_places(slots[:seen], first)] = np.clip(block[:seen], -1.0, 1.0)
            found[owner] = scores
        return found

    def top_k(
        self,
        connection: apsw.Connection,
        owners: Sequence[int],
        query: "Sequence[float] | NDArray[np.float32]",
        k: int,
        *,
        allowed: Mapping[int, SlotSet] | None = None,
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
            if self.backend == "sqlite-vec" and not is_quantised(state.profile):
                found += nearest_in_sql(connection, owner, unit, k, permitted)
            else:
                found += self._nearest(connection, owner, state, unit, k, permitted)
        found.sort(key=lambda one: (-one.similarity, one.slot))
        return found[:k]

    def matrix(self, connection: apsw.Connection, owner: int, state: VectorState | None = None) -> OwnerMatrix:
        """Return an owner's unit vectors as of the connection's snapshot; do not change them."""
        state = vector_state(connection, owner) if state is None else state
        if state is None:
            return OwnerMatrix.empty(owner)
        wanted = state

        def renewed(known: OwnerMatrix | None) -> OwnerMatrix:
            fresh = None if known is None else refresh(connection, known, wanted)
            return load(connection, owner, wanted) if fresh is None else fresh

        return self._matrices.renew(owner, renewed).as_of(state)

    def save_codes(self, database: Database, owner: int) -> bool:
        """Store an owner's bit codes if they are cached and mostly unsaved; tell whether they were.

        Without that the next process encodes the owner's vectors again. A library that
        cannot be written just now is left alone, since whoever searches does not write.
        """
        table = self._codes.get(owner)
        if table is None or not table.is_worth_saving or database.read_only:
            return False
        try:
            database.write(lambda connection: accelerator.save(connection, table), durable=False)
        except (StoreBusyError, StoreFullError, StoreReadOnlyError):
            return False
        self._codes.renew(owner, lambda known: replace(known or table, saved=len(table.slots)))
        return True

    def forget(self, owner: int) -> None:
        """Drop what is cached of an owner."""
        self._matrices.forget(owner)
        self._codes.forget(owner)
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
            return neighbours(slots, dots(unit_rows(rows), unit), k)
        codes = self._coded(connection, owner, state)
        if codes is not None:
            return _measured(connection, codes, unit, k, permitted)
        if self._is_too_large(state):
            return self._scanned(connection, owner, state, unit, k, permitted)
        matrix = self.matrix(connection, owner, state)
        if permitted is not None and not permitted.negated and len(permitted.slots) * GATHER_SHARE < len(matrix.slots):
            rows_at = matrix.rows_of(permitted.slots)
            return neighbours(matrix.slots[rows_at], dots(matrix.units[rows_at], unit), k)
        return neighbours(*masked(matrix.slots, dots(matrix.units, unit), matrix.alive, permitted), k)

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
            found += neighbours(*masked(slots, scores, None, permitted), k)
            found.sort(key=lambda one: (-one.similarity, one.slot))
            del found[k:]
        return found

    def _scan(
        self, connection: apsw.Connection, owner: int, state: VectorState, unit: "NDArray[np.float32]"
    ) -> "Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]":
        """Yield slots and cosines of all an owner's vectors, from the cache or in blocks from the file."""
        if self._is_too_large(state):
            for slots, rows in read_vectors(connection, *slot_range(owner), state.dimension):
                yield slots, dots(unit_rows(rows), unit)
            return
        matrix = self.matrix(connection, owner, state)
        yield masked(matrix.slots, dots(matrix.units, unit), matrix.alive, None)

    def _coded(self, connection: apsw.Connection, owner: int, state: VectorState) -> CodeTable | None:
        """Return the owner's bit codes, if it needs them and they find enough."""
        if not self._is_too_large(state):
            return None

        def renewed(known: CodeTable | None) -> CodeTable:
            if known is None:
                fresh = accelerator.load(connection, owner, state)
            else:
                fresh = accelerator.refresh(connection, known, state)
            return accelerator.build(connection, owner, state) if fresh is None else fresh

        table = self._codes.renew(owner, renewed)
        return table.as_of(state) if table.calibration.candidates else None

    def _is_too_large(self, state: VectorState) -> bool:
        return 4 * state.count * state.dimension > self.cache_bytes

    def _reads_rows(self, owner: int, state: VectorState, wanted: int) -> bool:
        """Decide between reading the permitted rows and loading, or using, something larger."""
        if self._is_too_large(state):
            return wanted <= FEW
        if owner in self._matrices:
            return False
        read = self._rows_read.get(owner, 0) + wanted
        self._rows_read[owner] = read
        return read * PATIENCE <= state.count


def _places(slots: "NDArray[np.int64]", first: int) -> "NDArray[np.int64] | slice":
    """Return the places of ascending slots counted from `first`, as a slice where none is missing."""
    if len(slots) and int(slots[-1] - slots[0]) == len(slots) - 1:
        return slice(int(slots[0]) - first, int(slots[-1]) - first + 1)
    return slots - first


def _measured(
    connection: apsw.Connection, codes: CodeTable, unit: "NDArray[np.float32]", k: int, permitted: SlotSet | None
) -> list[Neighbour]:
    """Return the best of the candidates that the codes name among what is permitted."""
    distances = codes.distances(unit)
    if permitted is not None:
        distances[contained(codes.slots, permitted.slots) == permitted.negated] = NEVER
    candidates = codes.nearest(unit, distances, codes.calibration.candidates_for(k))
    slots, rows = read_some_vectors(connection, candidates, codes.state.dimension)
    return neighbours(slots, dots(unit_rows(rows), unit), k)


def _estimated(
    connection: apsw.Connection, codes: CodeTable, unit: "NDArray[np.float32]"
) -> "Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]":
    """Yield slots and estimated cosines, then those of the candidates as measured."""
    distances = codes.distances(unit)
    alive = distances != NEVER
    yield codes.slots[alive], codes.estimates(distances[alive])
    candidates = codes.nearest(unit, distances, codes.calibration.candidates)
    slots, rows = read_some_vectors(connection, candidates, codes.state.dimension)
    yield slots, dots(unit_rows(rows), unit)


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
