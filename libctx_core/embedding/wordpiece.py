"""WordPiece, lower case, as BERT's uncased vocabulary wants it; standard library only."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

CONTINUATION: Final = "##"
"""Prefix of a piece that continues a word."""
UNKNOWN: Final = "[UNK]"
MAX_WORD_CHARS: Final = 100
"""Longer words become one unknown token, as in the reference implementation."""

_CACHED_CHARS: Final = 40
_CACHE_SIZE: Final = 65_536

_IDEOGRAPHS: Final = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)

# Controls, invisible marks, surrogates and private characters. Unassigned ones stay, as in the reference
# implementation, so that a newer Unicode table changes as little as can be.
_DROPPED: Final = frozenset({"Cc", "Cf", "Cs", "Co"})

Word = tuple[str, tuple[int, ...]]
"""A normalised word and the ids of its pieces."""


class WordPiece:
    """Splits text into words and words into pieces of one vocabulary.

    What lies between two blanks is normalised and split once and then remembered, so that a text
    costs about one dictionary look-up a word. May be shared between threads.

    Args:
        vocabulary: The pieces; their position is their id.
    """

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = self._ids[UNKNOWN]
        self._remembered: dict[str, tuple[Word, ...]] = {}

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The pieces by rising id."""
        return tuple(self._ids)

    def words(self, text: str) -> Iterator[Word]:
        """Yield the words of `text`, punctuation marks among them, with their ids."""
        remembered = self._remembered
        for chunk in text.split():
            found = remembered.get(chunk)
            yield from self._split(chunk) if found is None else found

    def ids(self, text: str) -> list[int]:
        """Return the ids of `text` without start and end marks."""
        return [number for _, pieces in self.words(text) for number in pieces]

    def _split(self, chunk: str) -> tuple[Word, ...]:
        words = tuple((word, self._pieces(word)) for word in basic_words(chunk))
        if len(chunk) <= _CACHED_CHARS:
            if len(self._remembered) >= _CACHE_SIZE:
                self._remembered.clear()
            self._remembered[chunk] = words
        return words

    def _pieces(self, word: str) -> tuple[int, ...]:
        """Return the longest-first pieces of `word`, or the unknown id when they do not cover it."""
        whole = self._ids.get(word)
        if whole is not None:
            return (whole,)
        if len(word) > MAX_WORD_CHARS:
            return (self._unknown,)
        found: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self._ids.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return (self._unknown,)
            found.append(number)
            start, prefix = end, CONTINUATION
        return tuple(found)


def basic_words(text: str) -> list[str]:
    """Return lower-case words without accents; punctuation marks and ideographs stand alone."""
    if text.isascii() and text.isalnum():
        return [text.lower()]
    spaced = "".join(_spaced(character) for character in text)
    plain = unicodedata.normalize("NFD", spaced)
    # Character by character: the whole word's lower case would end in another sigma.
    plain = "".join(c.lower() for c in plain if unicodedata.category(c) != "Mn")
    return "".join(f" {c} " if _is_punctuation(c) else c for c in plain).split()


def _spaced(character: str) -> str:
    if character.isspace():
        return " "
    if unicodedata.category(character) in _DROPPED or character == "\ufffd":
        return ""
    return f" {character} " if _is_ideograph(ord(character)) else character


def _is_ideograph(code: int) -> bool:
    return code >= 0x3400 and any(low <= code <= high for low, high in _IDEOGRAPHS)


def _is_punctuation(character: str) -> bool:
    if character.isascii():
        return not (character.isalnum() or character.isspace())
    return unicodedata.category(character).startswith("P")
