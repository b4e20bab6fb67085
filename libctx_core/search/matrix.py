"""One owner's vectors in memory: unit rows by ascending slot, kept true by reading only what changed."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import apsw

from libctx_core.search.slots import slot_array
from libctx_core.store.records import slot_range
from libctx_core.store.vectors import VectorState, changed_slots, read_some_vectors, read_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_POSITION_MASK = (1 << 32) - 1

_SPARE = 8
"""New buffers hold one row in this many more than needed, so that appends rarely copy."""

_DEAD_SHARE = 4
"""A matrix is copied without its dead rows when they exceed one in this many."""

_LEAST_SQUARE, _GREATEST_SQUARE = 1e-25, 1e30
"""Squared norms float32 measures to full precision; a row outside is measured in float64."""


@dataclass(frozen=True, slots=True)
class OwnerMatrix:
    """The vectors of one owner in one state.

    Attributes:
        owner: The owner's id.
        state: The state these rows are; None for an owner without vectors.
        slots: Slot of each row, ascending, shape ``(n,)``.
        units: Rows of unit length, or zero, shape ``(n, dimension)``.
        alive: Which rows still exist, shape ``(n,)``; None if all do.
    """

    owner: int
    state: VectorState | None
    slots: "NDArray[np.int64]"
    units: "NDArray[np.float32]"
    alive: "NDArray[np.bool_] | None" = None

    @classmethod
    def empty(cls, owner: int) -> "OwnerMatrix":
        """Return the matrix of an owner without vectors."""
        import numpy as np

        return cls(owner, None, np.empty(0, np.int64), np.empty((0, 0), np.float32))

    @property
    def nbytes(self) -> int:
        """Bytes held, spare rows included."""
        held = self.units.base if self.units.base is not None else self.units
        return int(held.nbytes + self.slots.nbytes)

    def rows(self) -> "NDArray[np.intp]":
        """Return the rows that exist, ascending."""
        import numpy as np

        return np.arange(len(self.slots)) if self.alive is None else np.flatnonzero(self.alive)

    def positions(self) -> "NDArray[np.int64]":
        """Return the position in the owner of each row, dead ones included."""
        return self.slots & _POSITION_MASK

    def rows_of(self, slots: "NDArray[np.int64]") -> "NDArray[np.intp]":
        """Return the rows of those of the ascending `slots` that have a vector."""
        import numpy as np

        if not len(self.slots):
            return np.empty(0, np.intp)
        at: NDArray[np.intp] = np.minimum(np.searchsorted(self.slots, slots), len(self.slots) - 1)
        at = at[self.slots[at] == slots]
        return at if self.alive is None else at[self.alive[at]]

    def as_of(self, state: VectorState) -> "OwnerMatrix":
        """Return the rows that an older snapshot with the same changes sees."""
        if self.state is None or state.tail >= self.state.tail:
            return self
        import numpy as np

        end = int(np.searchsorted(self.slots, state.tail))
        alive = None if self.alive is None else self.alive[:end]
        return replace(self, state=state, slots=self.slots[:end], units=self.units[:end], alive=alive)


def unit_rows(rows: "NDArray[np.float32]", out: "NDArray[np.float32] | None" = None) -> "NDArray[np.float32]":
    """Return rows scaled to unit length, in `out` if given; a zero row stays zero."""
    import numpy as np

    with np.errstate(over="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
    measured = (squares > _LEAST_SQUARE) & (squares < _GREATEST_SQUARE)
    scale = np.where(measured, 1.0 / np.sqrt(np.where(measured, squares, 1.0)), 0.0).astype(np.float32)
    units: NDArray[np.float32] = np.multiply(rows, scale[:, None], out=out)
    for at in np.flatnonzero(~measured):
        exact = rows[at].astype(np.float64)
        units[at] = exact / (float(np.sqrt(exact @ exact)) or 1.0)
    return units


def dots(rows: "NDArray[np.float32]", query: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return the product of each row with the query, computed on the calling thread.

    A scan is bound by memory; BLAS would spread it over threads that mostly wait for each
    other, which costs more CPU the busier the machine is.
    """
    import numpy as np

    products: NDArray[np.float32] = np.einsum("ij,j->i", rows, query)
    return products


def best(scores: "NDArray[np.float32]", slots: "NDArray[np.int64]", k: int) -> "NDArray[np.intp]":
    """Return the indexes of the `k` highest scores, highest first, ties by ascending slot."""
    import numpy as np

    if k < len(scores):
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        chosen = np.flatnonzero(scores >= least)
    else:
        chosen = np.arange(len(scores))
    order = np.lexsort((slots[chosen], -scores[chosen]))
    return chosen[order[:k]]


def load(connection: apsw.Connection, owner: int, state: VectorState) -> OwnerMatrix:
    """Read an owner's vectors from the file."""
    import numpy as np

    slots = np.empty(state.count, np.int64)
    units = np.empty((state.count + state.count // _SPARE, state.dimension), np.float32)
    filled = 0
    for block_slots, rows in read_vectors(connection, *slot_range(owner), state.dimension):
        end = filled + len(block_slots)
        slots[filled:end] = block_slots
        unit_rows(rows, out=units[filled:end])
        filled = end
    return OwnerMatrix(owner, state, slots, units[:filled])


def refresh(connection: apsw.Connection, known: OwnerMatrix, state: VectorState) -> OwnerMatrix | None:
    """Return `known` brought to `state` by reading what is new; None if it must be loaded again.

    New rows go into the spare part of the buffer of `known`, so only the newest matrix of
    a buffer may be refreshed, by one thread at a time.
    """
    old = known.state
    if old is None or old.epoch != state.epoch or old.changes > state.changes:
        return None
    if state.changes > old.changes:
        if state.tail < old.tail:
            return None
        known = _rewrite(connection, known, changed_slots(connection, known.owner, old.changes))
    return known if state.tail <= old.tail and state.changes == old.changes else _append(connection, known, state)


def _append(connection: apsw.Connection, known: OwnerMatrix, state: VectorState) -> OwnerMatrix:
    import numpy as np

    assert known.state is not None, "an empty matrix is never refreshed"
    _, last = slot_range(known.owner)
    blocks = list(read_vectors(connection, known.state.tail, last, state.dimension))
    if not blocks:
        return replace(known, state=state)
    slots = np.concatenate([known.slots, *(block for block, _ in blocks)])
    filled, needed = len(known.slots), len(slots)
    alive = None
    if known.alive is not None:
        alive = np.concatenate([known.alive, np.ones(needed - filled, np.bool_)])
    buffer = known.units.base if known.units.base is not None else known.units
    if len(buffer) < needed:
        grown = np.empty((needed + needed // _SPARE, state.dimension), np.float32)
        grown[:filled] = known.units
        buffer = grown
    for block, rows in blocks:
        unit_rows(rows, out=buffer[filled : filled + len(block)])
        filled += len(block)
    return OwnerMatrix(known.owner, state, slots, buffer[:needed], alive)


def _rewrite(connection: apsw.Connection, known: OwnerMatrix, changed: list[int]) -> OwnerMatrix:
    """Return `known` with changed slots gone, replaced or newly present, leaving its own arrays as they are."""
    import numpy as np

    assert known.state is not None, "an empty matrix is never refreshed"
    touched = slot_array(slot for slot in changed if slot < known.state.tail)
    found, rows = read_some_vectors(connection, touched, known.state.dimension)
    alive = np.ones(len(known.slots), np.bool_) if known.alive is None else known.alive.copy()
    alive[known.rows_of(touched)] = False
    dead = len(alive) - int(np.count_nonzero(alive))
    if not len(found) and dead * _DEAD_SHARE <= len(alive):
        return replace(known, alive=alive if dead else None)
    slots = np.concatenate([known.slots[alive], found])
    order = np.argsort(slots, kind="stable")
    units = np.empty((len(order) + len(order) // _SPARE, known.state.dimension), np.float32)
    np.take(np.concatenate([known.units[alive], unit_rows(rows)]), order, axis=0, out=units[: len(order)])
    return OwnerMatrix(known.owner, known.state, slots[order], units[: len(order)])
