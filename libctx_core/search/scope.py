"""The records in scope as columns: what ranking reads instead of rows, cached and kept current."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import apsw
import numpy as np
from numpy.typing import NDArray

from libctx_core.search import flags
from libctx_core.search.analysis import analyse_word, split
from libctx_core.store.index import (
    ATTRIBUTE_BLOCK,
    IndexState,
    read_attributes,
    read_clock,
    read_names,
    read_states,
)
from libctx_core.store.records import owner_and_position, slot_of

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

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class OwnerPart:
    """One owner's share of a scope: its counters, raw attribute rows and names."""

    state: IndexState
    rows: NDArray[np.void]
    speakers: dict[str, int]
    kinds: dict[str, int]


class Scope:
    """The attribute columns of some owners, one row per position, owner after owner.

    Attributes:
        size: Rows, removed records included.
        alive: Records that exist.
        average: Their mean length.
        session: Session of each row, numbered through the scope.
        length: Indexed terms of each row.
        flags: Flag bits of each row.
        same1: Whether a row and the next belong to one session; likewise `same2` for the one after.
        window_length: Length of each row with its two neighbours on either side.
        session_length: Length of each session.
        session_alive: Number of sessions that hold a record.
        verbosity: ``ln(1 + content words) / 4`` of each row.
        news: ``ln(1 + fresh terms) / 2`` of each row.
        speaker: Speaker of each row, numbered through the scope; 0 if unknown.
        names: Speakers' folded names and their numbers.
    """

    def __init__(self, parts: Sequence[OwnerPart]) -> None:
        self.parts = tuple(parts)
        sizes = np.array([len(part.rows) for part in parts], dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.size = int(self._starts[-1])
        self.owners = np.array([part.state.owner for part in parts], dtype=np.int64)
        self._start_of = {part.state.owner: int(at) for part, at in zip(parts, self._starts, strict=False)}
        raw = np.concatenate([part.rows for part in parts]) if parts else np.zeros(0, ROW)
        self.flags: NDArray[np.uint16] = raw["flags"]
        self.is_alive: NDArray[np.bool_] = (self.flags & flags.ALIVE) != 0
        self.length: Floats = raw["length"].astype(np.float32)
        self.alive = int(np.count_nonzero(self.is_alive))
        self.average = float(self.length.sum()) / max(1, self.alive) or 1.0
        self.verbosity: Floats = (np.log1p(raw["words"]) / 4).astype(np.float32)
        self.news: Floats = (np.log1p(raw["fresh"]) / 2).astype(np.float32)
        self._number_sessions(raw, sizes)
        self._number_speakers(raw, sizes)

    def _number_sessions(self, raw: NDArray[np.void], sizes: NDArray[np.int64]) -> None:
        counts = [int(part.rows["session"].max()) + 1 if len(part.rows) else 0 for part in self.parts]
        bases = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.session: NDArray[np.int64] = raw["session"].astype(np.int64) + np.repeat(bases[:-1], sizes)
        self.sessions = int(bases[-1])
        self.session_length: Floats = np.bincount(self.session, self.length, self.sessions).astype(np.float32)
        self.session_alive = int(np.count_nonzero(self.session_length))
        self.same1 = self.session[:-1] == self.session[1:]
        self.same2 = self.session[:-2] == self.session[2:]
        self.window_length = self.windowed(self.length)

    def _number_speakers(self, raw: NDArray[np.void], sizes: NDArray[np.int64]) -> None:
        bases = []
        total = 1
        self.names: dict[tuple[str, ...], list[int]] = {}
        for part in self.parts:
            bases.append(total - 1)
            for name, ordinal in part.speakers.items():
                folded = tuple(analyse_word(word).folded for word in split(name))
                if folded:
                    self.names.setdefault(folded, []).append(total - 1 + ordinal)
            total += max(part.speakers.values(), default=0)
        speaker = raw["speaker"].astype(np.int64)
        self.speaker: NDArray[np.int64] = np.where(
            speaker > 0, speaker + np.repeat(np.array(bases, np.int64), sizes), 0
        )
        self.speakers = total

    def windowed(self, values: Floats) -> Floats:
        """Return each row's sum with its two neighbours on either side within the session."""
        total = values.copy()
        if len(values) > 1:
            near = self.same1
            total[:-1] += np.where(near, values[1:], 0)
            total[1:] += np.where(near, values[:-1], 0)
        if len(values) > 2:
            far = self.same2
            total[:-2] += np.where(far, values[2:], 0)
            total[2:] += np.where(far, values[:-2], 0)
        return total

    def start(self, owner: int) -> int:
        """Return the first row of an owner."""
        return self._start_of[owner]

    def spread(self, values: Mapping[int, Floats]) -> Floats:
        """Return per-owner values by position as one value per row; NaN where there is none."""
        spread = np.full(self.size, np.nan, np.float32)
        for owner, found in values.items():
            start = self._start_of[owner]
            count = min(len(found), self._size_of(owner))
            spread[start : start + count] = found[:count]
        return spread

    def slot(self, row: int) -> int:
        """Return the slot that a row stands for."""
        part = int(np.searchsorted(self._starts, row, side="right")) - 1
        return slot_of(int(self.owners[part]), row - int(self._starts[part]))

    def row(self, slot: int) -> int | None:
        """Return the row of a slot, None if it lies outside the scope."""
        owner, position = owner_and_position(slot)
        start = self._start_of.get(owner)
        if start is None or position >= self._size_of(owner):
            return None
        return start + position

    def _size_of(self, owner: int) -> int:
        at = int(np.searchsorted(self.owners, owner))
        return int(self._starts[at + 1] - self._starts[at])

    def of_kinds(self, kinds: Sequence[str]) -> NDArray[np.bool_]:
        """Return which rows are of one of the kinds."""
        pieces = [
            np.isin(part.rows["kind"], [part.kinds[kind] for kind in kinds if kind in part.kinds])
            for part in self.parts
        ]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.bool_)

    @property
    def nbytes(self) -> int:
        """Approximate bytes held."""
        return self.size * 70 + 2048 * len(self.parts)


class ScopeCache:
    """Keeps the scopes asked for last, and brings them up to date by reading what was appended.

    Args:
        max_bytes: Bytes of columns kept; the scope in use is always kept.
    """

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._kept: dict[tuple[int, ...] | None, tuple[int, Scope]] = {}
        self._lock = threading.Lock()

    def get(self, connection: apsw.Connection, owners: Sequence[int] | None) -> Scope:
        """Return the scope of these owners as the connection's snapshot sees it."""
        key = None if owners is None else tuple(sorted(set(owners)))
        clock = read_clock(connection)
        with self._lock:
            kept = self._kept.pop(key, None)
            if kept is not None:
                self._kept[key] = kept
        if kept is not None and kept[0] == clock:
            return kept[1]
        states = [state for state in read_states(connection, key) if state.posted]
        old = {} if kept is None else {part.state.owner: part for part in kept[1].parts}
        parts = [_refresh(connection, state, old.get(state.owner)) for state in states]
        if (
            kept is not None
            and len(parts) == len(kept[1].parts)
            and all(new is was for new, was in zip(parts, kept[1].parts, strict=True))
        ):
            scope = kept[1]
        else:
            scope = Scope(parts)
        with self._lock:
            self._kept[key] = (clock, scope)
            self._shrink()
        return scope

    def _shrink(self) -> None:
        while len(self._kept) > 1 and sum(scope.nbytes for _, scope in self._kept.values()) > self._max_bytes:
            self._kept.pop(next(iter(self._kept)))


def _refresh(connection: apsw.Connection, state: IndexState, old: OwnerPart | None) -> OwnerPart:
    if old is not None and old.state.revision == state.revision:
        if old.state.posted == state.posted:
            return old
        if old.state.posted < state.posted:
            block = old.state.posted // ATTRIBUTE_BLOCK
            tail = np.frombuffer(read_attributes(connection, state.owner, block), ROW)
            rows = np.concatenate([old.rows[: block * ATTRIBUTE_BLOCK], tail])
            return _part(connection, state, rows)
    return _part(connection, state, np.frombuffer(read_attributes(connection, state.owner), ROW))


def _part(connection: apsw.Connection, state: IndexState, rows: NDArray[np.void]) -> OwnerPart:
    return OwnerPart(
        state, rows, read_names(connection, state.owner, "speaker"), read_names(connection, state.owner, "kind")
    )
