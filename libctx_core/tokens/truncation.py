"""The one truncation of the library: text cut to a number of tokens at a readable place."""

import unicodedata
from collections.abc import Callable
from typing import Final, Literal

from libctx_core.tokens.counter import TokenCounter

Where = Literal["top", "middle", "bottom"]
"""The part that is cut away: the beginning, the middle, or the end."""

MARKER: Final = "\n[…]\n"
"""Stands where text was cut."""

_WORD_REACH: Final = 40
"""Characters a cut may move to reach a word boundary."""
_WORD_SHARE: Final = 4
"""A cut gives up at most one in this many of the characters it could keep for a word boundary."""
_CLUSTER_REACH: Final = 64
"""Characters a cut may move to keep one visible character whole; stacked marks have no other end."""
_FIRST_GUESS: Final = 4
"""Characters a token, for the first guess."""
_SEARCH_STEPS: Final = 40

_JOINER: Final = "\u200d"
_MARKS: Final = frozenset({"Mn", "Me", "Mc"})
# Skin tones, medial and final Hangul letters, the tags of regional flags.
_EXTENDERS: Final = (("\U0001f3fb", "\U0001f3ff"), ("\u1160", "\u11ff"), ("\U000e0020", "\U000e007f"))


def truncate_text(
    text: str, max_tokens: int, counter: TokenCounter, *, where: Where = "bottom", marker: str = MARKER
) -> tuple[str, bool]:
    """Cut `text` so that it has at most `max_tokens` tokens, marker included.

    Args:
        text: The text.
        max_tokens: Tokens the result may have; at 0 or below the result is empty.
        counter: Counts tokens.
        where: The part to cut away. "top" keeps the end, "bottom" keeps the beginning, "middle"
            keeps about as many tokens of both.
        marker: Put where text was cut; left out where it would take more than half of the room.

    Returns:
        The text, and whether anything was cut from it.
    """
    if max_tokens <= 0:
        return "", bool(text)
    if not counter.exceeds(text, max_tokens):
        return text, False
    marker_tokens = counter.count(marker)
    if marker_tokens * 2 > max_tokens:
        marker, marker_tokens = "", 0
    room = max_tokens - marker_tokens
    while room > 0:
        result = _cut(text, room, counter, where, marker)
        excess = counter.count(result) - max_tokens
        if excess <= 0:
            return result, True
        # Tokens of joined parts are not quite the sum of the parts' tokens.
        room -= excess
    return "", True


def _cut(text: str, room: int, counter: TokenCounter, where: Where, marker: str) -> str:
    if where == "bottom":
        return text[: _head_end(text, room, counter)] + marker
    if where == "top":
        return marker + text[_tail_start(text, room, counter) :]
    end = _head_end(text, room // 2, counter)
    rest = room - counter.count(text[:end])
    start = max(end, _tail_start(text, rest, counter))
    return text[:end] + marker + text[start:]


def _head_end(text: str, room: int, counter: TokenCounter) -> int:
    """Return the end of the longest readable head of at most about `room` tokens."""
    kept = _longest(len(text), room, lambda length: counter.count(text[:length]))
    return _boundary_before(text, kept)


def _tail_start(text: str, room: int, counter: TokenCounter) -> int:
    """Return the start of the longest readable tail of at most about `room` tokens."""
    size = len(text)
    kept = _longest(size, room, lambda length: counter.count(text[size - length :]))
    return _boundary_after(text, size - kept)


def _longest(size: int, room: int, tokens_of: Callable[[int], int]) -> int:
    """Return a length, of at most `size`, that has at most `room` tokens and hardly fewer.

    The search follows the density it meets, so that a handful of counts of about the result's own
    size are enough, however long the text is.
    """
    low, low_tokens = 0, 0
    # One beyond the whole is never tried; its density is not known until some length is too long.
    high: int = size + 1
    high_tokens: int | None = None
    guess = room * _FIRST_GUESS
    for step in range(_SEARCH_STEPS):
        if high - low <= 1 or room - low_tokens <= 0:
            break
        guess = min(max(guess, low + 1), high - 1)
        tokens = tokens_of(guess)
        if tokens <= room:
            low, low_tokens = guess, tokens
        else:
            high, high_tokens = guess, tokens
        # Halving now and then keeps the search short where the density jumps.
        halve = step % 3 == 2 and high_tokens is not None
        guess = (low + high) // 2 if halve else _next_guess(low, low_tokens, high, high_tokens, room)
    return low


def _next_guess(low: int, low_tokens: int, high: int, high_tokens: int | None, room: int) -> int:
    """Return the length that would have `room` tokens if the density met so far went on."""
    if high_tokens is None:
        return low * room // low_tokens + 1 if low_tokens else low * 2
    return low + (high - low) * (room - low_tokens) // max(1, high_tokens - low_tokens)


def _boundary_before(text: str, position: int) -> int:
    """Move the end of a head left to a word boundary, or at least to the edge of a visible character."""
    reach = min(_WORD_REACH, position // _WORD_SHARE)
    words = (c for c in range(position, position - reach, -1) if _between_words(text, c))
    clusters = (c for c in range(position, max(-1, position - _CLUSTER_REACH), -1) if not _inside_cluster(text, c))
    return next(words, next(clusters, position))


def _boundary_after(text: str, position: int) -> int:
    """Move the start of a tail right to a word boundary, or at least to the edge of a visible character."""
    size = len(text)
    reach = min(_WORD_REACH, (size - position) // _WORD_SHARE)
    words = (c for c in range(position, position + reach) if _between_words(text, c))
    clusters = (c for c in range(position, min(size + 1, position + _CLUSTER_REACH)) if not _inside_cluster(text, c))
    return next(words, next(clusters, position))


def _between_words(text: str, position: int) -> bool:
    if not 0 < position < len(text):
        return True
    blank = text[position].isspace() or text[position - 1].isspace()
    return blank and not _inside_cluster(text, position)


def _inside_cluster(text: str, position: int) -> bool:
    """Return whether a cut at `position` would split one visible character."""
    if not 0 < position < len(text):
        return False
    before, after = text[position - 1], text[position]
    if after == _JOINER or before == _JOINER or unicodedata.category(after) in _MARKS:
        return True
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return True
    if before == "\r" and after == "\n":
        return True
    if any(low <= after <= high for low, high in _EXTENDERS):
        return True
    return _is_flag_letter(after) and _flag_letters_before(text, position) % 2 == 1


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, position: int) -> int:
    start = position
    while start > 0 and _is_flag_letter(text[start - 1]):
        start -= 1
    return position - start
