"""Counters for models whose own vocabulary is not at hand: bounds and estimates from above."""

import math
from dataclasses import dataclass
from typing import Final

from libctx_core.ports import TextCounter
from libctx_core.tokens.encodings import COUNTER_VERSION, utf8_length


class Utf8Bound:
    """Counts UTF-8 bytes: no byte-level encoding ever needs more tokens than that.

    Four times too high on English, three times on Chinese; the last resort that stays safe.
    """

    name: str = f"utf8_bytes/{COUNTER_VERSION}"
    exact: bool = False

    def count(self, text: str, /) -> int:
        """Return the UTF-8 bytes of `text`."""
        return utf8_length(text)


class LargerOf:
    """The larger of two counts, text by text."""

    exact: bool = False

    def __init__(self, first: TextCounter, second: TextCounter) -> None:
        self.name = f"larger({first.name},{second.name})"
        self._first = first
        self._second = second

    def count(self, text: str, /) -> int:
        """Return the larger of both counts."""
        return max(self._first.count(text), self._second.count(text))


@dataclass(frozen=True, slots=True)
class Margin:
    """How far a model family's tokens may exceed a reference count.

    Attributes:
        ratio: Factor on the reference count.
        per_digit: Tokens added for every ASCII digit. Families that give each digit a token of
            its own need it, where the reference takes up to three digits together.
    """

    ratio: float
    per_digit: float = 0.0

    def apply(self, tokens: int, text: str) -> int:
        """Return the estimate for `text`, whose reference count is `tokens`, rounded up."""
        digits = sum(map(text.count, _DIGITS)) if self.per_digit else 0
        return math.ceil(tokens * self.ratio + digits * self.per_digit)


_DIGITS: Final = "0123456789"


class FamilyEstimate:
    """A reference count with the margin of one model family."""

    exact: bool = False

    def __init__(self, family: str, base: TextCounter, margin: Margin) -> None:
        self.name = f"{family}({base.name})"
        self._base = base
        self._margin = margin

    def count(self, text: str, /) -> int:
        """Return the estimate for `text`."""
        return self._margin.apply(self._base.count(text), text)
