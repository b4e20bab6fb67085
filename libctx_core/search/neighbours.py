"""Neighbours: records by closeness, who finds them, and how they are taken from scores or from SQLite."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import apsw

from libctx_core.search.matrix import best
from libctx_core.search.slots import SlotSet, contained
from libctx_core.store.database import Database
from libctx_core.store.records import slot_range

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A record and how close its vector is.

    Attributes:
        slot: The record's slot.
        similarity: Cosine in [-1, 1]; 0 if either vector is zero.
    """

    slot: int
    similarity: float


class VectorSearch(Protocol):
    """What search asks of a vector index; `libctx_core.testing.vectors` tests it.

    An index reads vectors through `libctx_core.store.vectors` on the connection it is
    given, so that it sees that snapshot, and may cache what `VectorState` lets it check.
    """

    def similarities(
        self, connection: apsw.Connection, owners: Sequence[int], query: "Sequence[float] | NDArray[np.float32]", /
    ) -> "dict[int, NDArray[np.float32]]":
        """Return per owner with vectors the cosine of every position, NaN where there is none."""
        ...

    def top_k(
        self,
        connection: apsw.Connection,
        owners: Sequence[int],
        query: "Sequence[float] | NDArray[np.float32]",
        k: int,
        /,
        *,
        allowed: Mapping[int, SlotSet] | None = None,
    ) -> list[Neighbour]:
        """Return the `k` closest among exactly what is allowed, closest first, ties by slot."""
        ...

    def save_codes(self, database: Database, owner: int, /) -> bool:
        """Store what took long to derive, after a search; tell whether anything was stored."""
        ...


def masked(
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


def neighbours(slots: "NDArray[np.int64]", scores: "NDArray[np.float32]", k: int) -> list[Neighbour]:
    """Return the `k` neighbours with the highest scores, closest first, ties by ascending slot."""
    return [Neighbour(int(slots[at]), max(-1.0, min(1.0, float(scores[at])))) for at in best(scores, slots, k)]


def nearest_in_sql(
    connection: apsw.Connection, owner: int, unit: "NDArray[np.float32]", k: int, permitted: SlotSet | None
) -> list[Neighbour]:
    """Return the `k` closest permitted records of an owner, each distance computed by sqlite-vec."""
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
