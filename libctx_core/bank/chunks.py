"""A long text in pieces of so many tokens."""

import re
from typing import Final

from libctx_core.tokens import TokenCounter, truncate_text

_UNITS: Final = re.compile(r"\s*\S+\s*\Z|\s*\S+|\s+\Z")
"""Words with the white space before them; together they are the whole text."""


def chunk_by_tokens(
    text: str, max_tokens: int, counter: TokenCounter, *, overlap: int = 0, preserve_word_boundary: bool = True
) -> list[str]:
    """Cut a text into pieces of at most `max_tokens` tokens that together hold all of it.

    Args:
        text: The text.
        max_tokens: Tokens of a piece; at 0 or below there are no pieces. A character that
            takes more by itself stays whole.
        counter: Counts tokens.
        overlap: Tokens of the end of a piece that the next one repeats, at most.
        preserve_word_boundary: Cut between words wherever a word fits into a piece at all.
    """
    if max_tokens <= 0:
        return []
    units = _UNITS.findall(text) if preserve_word_boundary else [text]
    parts = [part for unit in units for part in _fitting_parts(unit, max_tokens, counter)]
    costs = [counter.count(part) for part in parts]
    chunks: list[str] = []
    start = covered = 0
    while covered < len(parts):
        end = _end(parts, costs, start, max_tokens, counter)
        if end <= covered:
            start = covered
            continue
        chunks.append("".join(parts[start:end]))
        covered = end
        start = _overlap_start(costs, start, end, min(overlap, max_tokens - 1), max_tokens)
    return chunks


def _fitting_parts(unit: str, max_tokens: int, counter: TokenCounter) -> list[str]:
    """Return the unit, in pieces that fit where it alone is too long."""
    parts = []
    while unit and counter.exceeds(unit, max_tokens):
        head = truncate_text(unit, max_tokens, counter, where="bottom", marker="")[0] or unit[0]
        parts.append(head)
        unit = unit[len(head) :]
    return [*parts, unit] if unit else parts


def _end(parts: list[str], costs: list[int], start: int, max_tokens: int, counter: TokenCounter) -> int:
    """Return the end of the longest run of parts from `start` that fits, at least one part."""
    end, used = start + 1, costs[start]
    while end < len(parts) and used + costs[end] <= max_tokens:
        used += costs[end]
        end += 1
    while end > start + 1 and counter.exceeds("".join(parts[start:end]), max_tokens):
        end -= 1
    return end


def _overlap_start(costs: list[int], start: int, end: int, overlap: int, max_tokens: int) -> int:
    """Return where the next piece starts, so that it repeats at most `overlap` tokens and holds something new."""
    room = min(overlap, max_tokens - costs[end]) if end < len(costs) else 0
    while end > start + 1 and costs[end - 1] <= room:
        end -= 1
        room -= costs[end]
    return end
