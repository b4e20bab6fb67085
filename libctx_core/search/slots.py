"""Sets of slots: what a filter permits, kept as arrays, and as a complement where that is shorter."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import apsw

from libctx_core.store.records import slots_of_owner

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SlotSet:
    """A set of slots of one owner, or everything but those slots.

    Attributes:
        slots: Distinct slots, ascending, int64.
        negated: Whether the set is the complement of `slots` within the owner.
    """

    slots: "NDArray[np.int64]"
    negated: bool = False

    def complement(self) -> "SlotSet":
        """Return everything that is not in the set."""
        return SlotSet(self.slots, not self.negated)

    def intersect(self, other: "SlotSet") -> "SlotSet":
        """Return what is in both sets."""
        if self.negated and other.negated:
            return SlotSet(union([self.slots, other.slots]), True)
        if self.negated:
            return other.intersect(self)
        if other.negated:
            return SlotSet(self.slots[~contained(self.slots, other.slots)])
        small, large = sorted((self.slots, other.slots), key=len)
        return SlotSet(small[contained(small, large)])

    def unite(self, other: "SlotSet") -> "SlotSet":
        """Return what is in either set."""
        if not self.negated and not other.negated:
            return SlotSet(union([self.slots, other.slots]))
        return self.complement().intersect(other.complement()).complement()

    def resolve(self, connection: apsw.Connection, owner: int) -> "NDArray[np.int64]":
        """Return the slots of the set, ascending, reading the owner's slots for a complement."""
        if not self.negated:
            return self.slots
        everything = union([slots_of_owner(connection, owner)])
        return everything[~contained(everything, self.slots)]


def slot_array(slots: Iterable[int]) -> "NDArray[np.int64]":
    """Return distinct slots as an ascending array."""
    import numpy as np

    return _distinct(np.fromiter(slots, np.int64))


def contained(slots: "NDArray[np.int64]", among: "NDArray[np.int64]") -> "NDArray[np.bool_]":
    """Tell for each of `slots` whether the ascending array `among` holds it."""
    import numpy as np

    if not len(among):
        return np.zeros(len(slots), np.bool_)
    at = np.minimum(np.searchsorted(among, slots), len(among) - 1)
    return np.asarray(among[at] == slots)


def union(parts: "Sequence[NDArray[np.int64]]") -> "NDArray[np.int64]":
    """Return the distinct slots of all parts as an ascending array."""
    import numpy as np

    filled = [part for part in parts if len(part)]
    if not filled:
        return np.empty(0, np.int64)
    joined = filled[0] if len(filled) == 1 else np.concatenate(filled)
    return _distinct(joined)


def _distinct(slots: "NDArray[np.int64]") -> "NDArray[np.int64]":
    import numpy as np

    # a look-up by equality comes in order already; np.unique hashes, at ten times the cost of sorting
    if bool((slots[1:] > slots[:-1]).all()):
        return slots
    ordered = np.sort(slots)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]
