"""What ranking reads instead of records: arrays of one value per row."""

import numpy as np
from numpy.typing import NDArray

REACH = 2
"""Neighbours on either side that make up a record's window."""

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Rows = NDArray[np.int64]


class Columns:
    """What ranking knows of some rows, in arrays of one value per row.

    Attributes:
        size: Rows, those of removed records included.
        is_alive: Whether a row's record exists.
        length: Indexed terms of each row.
        window_length: Length of each row with its two neighbours on either side.
        session: Session of each row, numbered through the corpus.
        flags: Flag bits of each row.
        verbosity: ``ln(1 + content words) / 4`` of each row that was spoken, their mean elsewhere.
        news: ``ln(1 + fresh terms) / 2`` of each row that was spoken, their mean elsewhere.
        speaker: Speaker of each row, numbered through the corpus; 0 if unknown.
        alive: Records that exist in the whole corpus.
        average: Mean length of a record there.
        window_average: Mean length of a window there.
        session_length: Length of each session there.
        session_alive: Sessions there that hold words.
        joined: By number of places, whether the row so many places on belongs to the same session.
    """

    size: int
    is_alive: Bools
    length: Floats
    window_length: Floats
    session: Rows
    flags: NDArray[np.uint16]
    verbosity: Floats
    news: Floats
    speaker: Rows
    alive: int
    average: float
    window_average: float
    session_length: Floats
    session_alive: int
    joined: dict[int, Bools]

    def windowed(self, values: Floats, first: int = 0) -> Floats:
        """Return each row's sum with its two neighbours on either side within the session.

        Args:
            values: One value per row, along the last axis.
            first: Only the rows from here on.
        """
        low = max(0, first - REACH)
        values = values[..., low:]
        total = values.copy()
        for step, joined in self.joined.items():
            within = joined[low : len(joined) - step]
            if len(within):
                total[..., :-step] += values[..., step:] * within
                total[..., step:] += values[..., :-step] * within
        return total[..., first - low :]

    def spread_out(self, rows: Rows) -> tuple[Rows, Rows]:
        """Return the rows whose windows hold one of the given rows, and the place of that one among those given.

        A row comes up once for each of the given rows that its window holds.
        """
        every = np.arange(len(rows))
        reached, origin = [rows], [every]
        for step, joined in self.joined.items():
            after, late = every[joined[rows]], every[rows >= step]
            before = late[joined[rows[late] - step]]
            reached += [rows[after] + step, rows[before] - step]
            origin += [after, before]
        return np.concatenate(reached), np.concatenate(origin)

    def narrowed(self, rows: Rows) -> "Columns":
        """Return the columns of some rows, rising; what is said of the whole corpus stays."""
        part = Columns()
        part.size = len(rows)
        for name in ("is_alive", "length", "window_length", "session", "flags", "verbosity", "news", "speaker"):
            setattr(part, name, getattr(self, name)[rows])
        for name in ("alive", "average", "window_average", "session_length", "session_alive"):
            setattr(part, name, getattr(self, name))
        part.joined = {
            step: padded(joined[rows[:-step]] & (rows[step:] - rows[:-step] == step), len(rows))
            for step, joined in self.joined.items()
        }
        return part


def padded(joined: Bools, size: int) -> Bools:
    """Return the flags with False for the last rows, which have no row that far on."""
    return np.append(joined, np.zeros(size - len(joined), np.bool_))
