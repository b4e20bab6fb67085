"""Text analysis: from a text to index terms, and from a question to what it asks for.

Words are folded (NFKC, case, accents of Latin letters), stop words dropped, the rest
stemmed with Snowball's English stemmer where they are ASCII words. Identifiers give
themselves and their parts. Scripts written without spaces, and Hangul, give bigrams.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from threading import Lock

from snowballstemmer.english_stemmer import EnglishStemmer

from libctx_core.search import flags, words

ANALYSIS_VERSION = 1
"""Grows when the same text would give other terms; a library indexed with another one is reindexed."""

MAX_TERM = 64
"""Characters kept of one term: a hash or a base64 line is found by its beginning."""

MAX_QUERY = 20_000
"""Characters of a question that a searcher reads."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3040-\u30ff\u3130-\u318f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Han, kana, Hangul: runs of these are cut into bigrams."""

_WORD = re.compile(rf"[{_UNSPACED}]+|[A-Za-z](?:\+\+|#(?!\w))|[^\W{_UNSPACED}]+")
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_CACHED_LENGTH = 32
_CACHED_WORDS = 100_000

# not what the package's own `stemmer` chooses: with PyStemmer installed that is another one, and an index
# holds stems for years
_stemmer = EnglishStemmer()
_stemming = Lock()
"""A stemmer keeps the word it works on in itself: two threads in it would cut each other's words."""


@dataclass(frozen=True, slots=True)
class Word:
    """What one word of a text contributes.

    Attributes:
        folded: The word without case and accents.
        terms: Its index terms; none for a stop word.
        bits: Flags it sets on its record.
        capital: Whether it begins with a capital letter.
    """

    folded: str
    terms: tuple[str, ...]
    bits: int
    capital: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """A record as the index sees it.

    Attributes:
        terms: Frequency of each index term in text, caption and date.
        length: Sum of the frequencies.
        words: Content words of the text.
        bits: Flags of `libctx_core.search.flags`.
        date: The terms of its date.
    """

    terms: dict[str, int]
    length: int
    words: int
    bits: int
    date: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A query text, analysed.

    Attributes:
        words: Its words in order.
        asks_time: It asks when or how long.
    """

    words: tuple[Word, ...]
    asks_time: bool


def fold(text: str) -> str:
    """Return the text without case, compatibility forms and the accents of Latin letters."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = "".join(c for c in unicodedata.normalize("NFD", folded) if not unicodedata.combining(c))
    return bare if bare.isascii() else unicodedata.normalize("NFKC", folded)


def _bigrams(run: str) -> tuple[str, ...]:
    return (run,) if len(run) == 1 else tuple(run[at : at + 2] for at in range(len(run) - 1))


def _analyse(word: str) -> Word:
    folded = fold(word)
    if _UNSPACED_RUN.match(folded):
        return Word(folded, _bigrams(folded), 0)
    bits = 0
    if folded in words.TIME_WORDS or (len(folded) == 4 and folded.isdigit() and folded[:2] in ("19", "20")):
        bits |= flags.TIME
    if folded in words.FIRST_PERSON:
        bits |= flags.FIRST_PERSON
    if folded in words.STOP_WORDS:
        return Word(folded, (), bits, word[0].isupper())
    return Word(folded, _word_terms(word, folded), bits, word[0].isupper())


def _term(folded: str) -> str:
    folded = folded[:MAX_TERM]
    if len(folded) < 3 or not (folded.isascii() and folded.isalpha()):
        return folded
    with _stemming:
        stem: str = _stemmer.stemWord(folded)
    return stem


def _word_terms(word: str, folded: str) -> tuple[str, ...]:
    whole = _term(folded)
    if len(word) > MAX_TERM or not ("_" in word or (not word.isalpha() and not word.isdigit()) or _is_camel(word)):
        return (whole,)
    parts = [fold(part) for part in _PART.findall(word)]
    if len(parts) < 2:
        return (whole,) if whole.strip("_") else ()
    return tuple(dict.fromkeys((whole, *(_term(part) for part in parts if part not in words.STOP_WORDS))))


def _is_camel(word: str) -> bool:
    return word[1:] != word[1:].lower() and word != word.upper()


_cached = lru_cache(maxsize=_CACHED_WORDS)(_analyse)


def analyse_word(word: str) -> Word:
    """Return what a word contributes; common words come from a bounded cache."""
    return _cached(word) if len(word) <= _CACHED_LENGTH else _analyse(word)


def split(text: str) -> list[str]:
    """Return the words of a text as they stand in it."""
    return _WORD.findall(text if text.isascii() else unicodedata.normalize("NFKC", text))


def date_terms(occurred_at: float | None) -> tuple[str, ...]:
    """Return month, year and day of a time (UTC) as terms; none if it is unknown or out of range."""
    if occurred_at is None:
        return ()
    try:
        moment = datetime.fromtimestamp(occurred_at, UTC)
    except (OverflowError, ValueError, OSError):
        return ()
    return (_term(words.MONTHS[moment.month - 1]), str(moment.year), str(moment.day))


def analyse_document(text: str, *, caption: str | None = None, occurred_at: float | None = None) -> Document:
    """Return the terms and flags of a record.

    Args:
        text: Its text.
        caption: Text of its attachments; searched like the text.
        occurred_at: When it was said; its date is searchable.
    """
    terms: dict[str, int] = {}
    bits = 0
    content = 0
    for word in split(text):
        found = analyse_word(word)
        bits |= found.bits
        if found.terms:
            content += 1
            for term in found.terms:
                terms[term] = terms.get(term, 0) + 1
    if caption:
        for word in split(caption):
            for term in analyse_word(word).terms:
                terms[term] = terms.get(term, 0) + 1
    date = date_terms(occurred_at)
    for term in date:
        terms[term] = terms.get(term, 0) + 1
    if text.rstrip()[-1:] in ("?", "？"):
        bits |= flags.QUESTION
    return Document(terms, sum(terms.values()), content, bits, date)


def analyse_question(text: str) -> Question:
    """Return the words of a question and what it asks for; any string is a valid question."""
    found = tuple(analyse_word(word) for word in split(text))
    folded = [word.folded for word in found]
    pairs = set(pairwise(folded))
    plain = set(folded)
    return Question(
        words=found,
        asks_time=bool(plain & words.ASK_TIME)
        or any(("how", word) in pairs for word in words.ASK_TIME_AFTER_HOW)
        or any((ask, word) in pairs for ask in ("what", "which") for word in words.ASK_TIME_AFTER_WHAT),
    )
