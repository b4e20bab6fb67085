"""The corpus of a question: the records of some owners, as columns that ranking reads instead of rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from libctx_core.search import flags
from libctx_core.search.analysis import analyse_word, split
from libctx_core.search.columns import REACH, Bools, Columns, Floats, Rows, padded
from libctx_core.search.speakers import name_keys
from libctx_core.store.index import IndexState
from libctx_core.store.records import POSITION_BITS

ROW = np.dtype(
    [
        ("session", "<u4"),
        ("length", "<u2"),
        ("words", "<u2"),
        ("speaker", "<u2"),
        ("flags", "<u2"),
        ("kind", "u1"),
        ("role", "u1"),
        ("fresh", "u1"),
    ]
)
"""Layout of `libctx_core.store.index.ATTRIBUTE`."""

_LOGARITHMS = np.log1p(np.arange(0x10000)).astype(np.float32)
"""``ln(1 + n)`` of every count an attribute can hold."""


@dataclass(frozen=True, slots=True)
class OwnerPart:
    """One owner's share of a corpus: its counters, packed attribute rows and names."""

    state: IndexState
    packed: bytes
    speakers: dict[str, int]
    kinds: dict[str, int]

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.packed) // ROW.itemsize

    @property
    def rows(self) -> NDArray[np.void]:
        """The rows, of type `ROW`."""
        return np.frombuffer(self.packed, ROW)


class Corpus(Columns):
    """The columns of some owners, one row per position, owner after owner.

    Attributes:
        parts: The owners, by rising id.
        owners: Their ids.
        starts: The first row of each.
        window_size: Rows in the window of each row.
        speakers: One more than the highest such number.
        names: Numbers of the speakers by what names them, see `name_keys`.
        sessions: Number of sessions of each owner.
        all_spoken: Whether all rows are part of conversations.
    """

    window_size: Floats

    def __init__(self, parts: Sequence[OwnerPart], known: "Corpus | None" = None) -> None:
        """Derive the columns; what an earlier corpus tells of the leading rows is taken from there."""
        self.parts = tuple(parts)
        sizes = np.array([part.count for part in parts], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.size = int(self._starts[-1])
        self.owners = np.array([part.state.owner for part in parts], dtype=np.int64)
        self.starts: dict[int, int] = dict(zip(self.owners.tolist(), self._starts.tolist(), strict=False))
        packed = parts[0].packed if len(parts) == 1 else b"".join([part.packed for part in parts])
        raw = np.frombuffer(packed, ROW)
        first = 0 if known is None else _alike(known.parts, self.parts)
        old = known if first else None
        new = raw[first:]
        self._grow(old, "flags", first, new["flags"].copy())
        self._grow(old, "is_alive", first, (new["flags"] & flags.ALIVE) != 0)
        self.alive = int(np.count_nonzero(self.is_alive))
        self._grow(old, "length", first, new["length"].astype(np.float32))
        self.average = self._mean(self.length)
        self._number_sessions(new, sizes, old, first)
        self._number_speakers(new, sizes, old, first)
        self._say_how_much(raw, old, first)

    def _grow(self, old: "Corpus | None", name: str, first: int, new: NDArray[np.generic]) -> None:
        """Set a column: the first values of the old one, then new values."""
        setattr(self, name, new if old is None else np.concatenate([getattr(old, name)[:first], new]))

    def _mean(self, values: Floats) -> float:
        return float(values.sum(dtype=np.float64)) / max(1, self.alive) or 1.0

    def _number_sessions(self, new: NDArray[np.void], sizes: Rows, old: "Corpus | None", first: int) -> None:
        self.sessions = [
            max(int(part.rows["session"][seen:].max(initial=0)) + 1, sessions) if part.count else 0
            for part, (seen, sessions) in zip(self.parts, self._known_sessions(old, first), strict=True)
        ]
        bases = np.concatenate([[0], np.cumsum(self.sessions)]).astype(np.int64)
        own = new["session"] + np.repeat(bases[:-1], sizes)[first:]
        self._grow(old, "session", first, own)
        self.session_length = np.bincount(self.session, self.length, int(bases[-1])).astype(np.float32)
        self.session_alive = int(np.count_nonzero(self.session_length))
        self.joined = {step: self._joined_from(step, old, first) for step in range(1, REACH + 1)}
        changed = max(0, first - REACH)
        self._grow(old, "window_length", changed, self.windowed(self.length, changed))
        self.window_average = self._mean(self.window_length)
        ones = np.ones(self.size, np.float32)
        self._grow(old, "window_size", changed, self.windowed(ones, changed))

    def _known_sessions(self, old: "Corpus | None", first: int) -> Iterator[tuple[int, int]]:
        """Yield for each owner how many of its rows an old corpus knew, and their sessions."""
        for at in range(len(self.parts)):
            seen = max(0, first - int(self._starts[at]))
            yield (seen, old.sessions[at]) if old is not None and seen else (0, 0)

    def _joined_from(self, step: int, old: "Corpus | None", first: int) -> Bools:
        """Return which rows belong to one session with the row `step` places on."""
        changed = max(0, first - step)
        fresh = self.session[changed:]
        joined = padded(fresh[:-step] == fresh[step:], len(fresh))
        return joined if old is None else np.concatenate([old.joined[step][:changed], joined])

    def _number_speakers(self, new: NDArray[np.void], sizes: Rows, old: "Corpus | None", first: int) -> None:
        bases: list[int] = []
        total = 0
        self.names: dict[tuple[str, ...], list[int]] = {}
        for part in self.parts:
            bases.append(total)
            for name, ordinal in part.speakers.items():
                for key in name_keys([analyse_word(word).folded for word in split(name)]):
                    self.names.setdefault(key, []).append(total + ordinal)
            total += max(part.speakers.values(), default=0)
        own = new["speaker"].astype(np.int64)
        numbered = np.where(own > 0, own + np.repeat(np.array(bases, np.int64), sizes)[first:], 0)
        self._grow(old, "speaker", first, numbered)
        self.speakers = total + 1

    def _say_how_much(self, raw: NDArray[np.void], old: "Corpus | None", first: int) -> None:
        """Derive how many words and how many new ones each row holds."""
        self.all_spoken = bool(((self.flags & flags.SPOKEN) != 0).all())
        if old is None or not (self.all_spoken and old.all_spoken):
            old, first = None, 0
        spoken = (self.flags[first:] & flags.SPOKEN) != 0
        words, fresh = _LOGARITHMS[raw["words"][first:]], _LOGARITHMS[raw["fresh"][first:]]
        self._grow(old, "verbosity", first, _neutral(words / np.float32(4), spoken))
        self._grow(old, "news", first, _neutral(fresh / np.float32(2), spoken))

    # -- neighbourhoods -------------------------------------------------------

    def window_sums(self, values: Callable[[Rows], Floats], rows: Rows) -> Floats:
        """Return the sum over the window of each of some rows, of values that are asked for by row."""
        total = values(rows)
        for step, joined in self.joined.items():
            after, before = joined[rows], joined[rows - step] & (rows >= step)
            total[after] += values(rows[after] + step)
            total[before] += values(rows[before] - step)
        return total

    def around(self, rows: Rows) -> Bools:
        """Return which rows are the given ones or within two places of one, in its session."""
        marked = np.zeros(self.size, np.bool_)
        marked[rows] = True
        # the row in between too, whatever its session: what lies two places on is found by counting
        marked[np.minimum(rows + 1, self.size - 1)] = True
        marked[np.maximum(rows - 1, 0)] = True
        for step, joined in self.joined.items():
            marked[rows[joined[rows]] + step] = True
            marked[rows[joined[rows - step] & (rows >= step)] - step] = True
        return marked

    def near(self, row: int, reach: int) -> list[int]:
        """Return the rows of the same session within `reach` of a row, itself left out."""
        first, last = max(0, row - reach), min(self.size, row + reach + 1)
        return [at for at in range(first, last) if at != row and self.session[at] == self.session[row]]

    # -- places ---------------------------------------------------------------

    def count(self, owner: int) -> int:
        """Return the rows of an owner."""
        at = int(np.searchsorted(self.owners, owner))
        return int(self._starts[at + 1] - self._starts[at])

    def spread(self, values: Mapping[int, Floats]) -> Floats:
        """Return per-owner values by position as one value per row; NaN where there is none."""
        spread = np.full(self.size, np.nan, np.float32)
        for part in self.parts:
            found = values.get(part.state.owner)
            if found is not None:
                start = self.starts[part.state.owner]
                count = min(len(found), part.count)
                spread[start : start + count] = found[:count]
        return spread

    def slots(self, rows: Rows) -> Rows:
        """Return the slots that rows stand for."""
        at = np.searchsorted(self._starts, rows, side="right") - 1
        slots: Rows = (self.owners[at] << POSITION_BITS) + rows - self._starts[at]
        return slots

    def marked(self, slots: Iterable[int]) -> Bools:
        """Return which rows the slots stand for; slots outside the corpus are passed over."""
        marked = np.zeros(self.size, np.bool_)
        wanted = np.fromiter(slots, np.int64)
        if len(wanted) and len(self.owners):
            owner = wanted >> POSITION_BITS
            at = np.minimum(np.searchsorted(self.owners, owner), len(self.owners) - 1)
            row = self._starts[at] + (wanted & ((1 << POSITION_BITS) - 1))
            inside = (self.owners[at] == owner) & (row < self._starts[at + 1])
            marked[row[inside]] = True
        return marked

    def of_kinds(self, kinds: Iterable[str]) -> Bools:
        """Return which rows are of one of the kinds."""
        wanted = set(kinds)
        pieces = [
            np.isin(part.rows["kind"], [number for kind, number in part.kinds.items() if kind in wanted])
            for part in self.parts
        ]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.bool_)

    @property
    def nbytes(self) -> int:
        """Approximate bytes held."""
        return self.size * 80 + 4096 * len(self.parts)


def _alike(old: Sequence[OwnerPart], new: Sequence[OwnerPart]) -> int:
    """Return how many leading rows two corpora share, the second one being newer."""
    rows = 0
    for was, now in zip(old, new, strict=False):
        if was is not now:
            grew = was.state.owner == now.state.owner and was.state.revision == now.state.revision
            return rows + (min(was.count, now.count) if grew and was.state.posted <= now.state.posted else 0)
        rows += was.count
    return rows


def _neutral(values: Floats, spoken: Bools) -> Floats:
    """Return the values with their mean in place of those of records outside a conversation."""
    if spoken.all():
        return values
    mean = values[spoken].mean(dtype=np.float64) if spoken.any() else 0.0
    return np.where(spoken, values, np.float32(mean))
