"""Text made safe to look at: no control characters, no overlong lines, aligned columns."""

import unicodedata
from collections.abc import Iterable, Sequence

MAX_ROWS = 200
"""Rows a table shows before it says how many more there are."""

MAX_PREVIEW = 160
"""Characters of a stored text that a view shows."""

_JOINER = "\u200d"  # holds emoji together and cannot reorder a line


def visible(text: object) -> str:
    """Return text in one line, without characters that could move the cursor or reorder a line."""
    return " ".join("".join(_shown(letter) for letter in str(text)).split())


def _shown(letter: str) -> str:
    return letter if letter.isprintable() or letter == _JOINER else " "


def preview(text: object, limit: int = MAX_PREVIEW) -> str:
    """Return the first `limit` characters of a text in one line, with an ellipsis if there are more."""
    # a line cannot need more than four raw characters per shown one unless most are blank
    line = visible(str(text)[: limit * 4])
    return line if len(line) <= limit and len(str(text)) <= limit * 4 else line[: limit - 1].rstrip() + "…"


def number(value: float) -> str:
    """Return a number with thousands separators; at most three decimals."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}".rstrip("0").rstrip(".")


def width(text: str) -> int:
    """Return how many terminal cells a text takes."""
    return sum(
        0 if unicodedata.combining(letter) or letter == _JOINER else 1 + (unicodedata.east_asian_width(letter) in "WF")
        for letter in text
    )


def columns(head: Sequence[str], rows: Iterable[Sequence[object]], *, right: Iterable[int] = ()) -> list[str]:
    """Return the lines of an aligned table, capped at `MAX_ROWS` rows.

    Args:
        head: Column titles.
        rows: Cells; each is made safe and cut to a preview.
        right: Indexes of the columns that are aligned right.
    """
    given = list(rows)
    shown = [tuple(preview(cell) for cell in row) for row in given[:MAX_ROWS]]
    widths = [max(width(row[index]) for row in (tuple(head), *shown)) for index in range(len(head))]
    aligned_right = frozenset(right)
    lines = [_line(row, widths, aligned_right) for row in (tuple(head), *shown)]
    if len(given) > MAX_ROWS:
        lines.append(more(len(given) - MAX_ROWS))
    return lines


def more(count: int) -> str:
    """Return the line that stands for rows not shown."""
    return f"… {number(count)} more"


def bar(shares: Iterable[tuple[str, int]], total: int, cells: int = 40) -> str:
    """Return a bar of letters, one letter per share, dots for what is free.

    Args:
        shares: A letter and an amount each.
        total: What the whole bar stands for.
        cells: Length of the bar.
    """
    drawn = "".join(letter * round(cells * amount / max(total, 1)) for letter, amount in shares)
    return drawn[:cells].ljust(cells, "·")


def _line(row: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded = [
        " " * (widths[index] - width(cell)) + cell if index in right else cell + " " * (widths[index] - width(cell))
        for index, cell in enumerate(row)
    ]
    return "  ".join(padded).rstrip()
