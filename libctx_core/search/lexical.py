"""The lexical channel: postings of the question's terms over the owners of the corpus, and their BM25."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log1p

import apsw
import numpy as np

from libctx_core.search.analysis import Word
from libctx_core.search.columns import Floats, Rows
from libctx_core.search.corpus import Corpus
from libctx_core.search.related import Near, related_terms
from libctx_core.store.index_blocks import MAX_ENTRIES, Block

POSTING_BUDGET = 20_000
"""Postings scored for one question: rare terms first, and always the rarest one."""

RELATED_BUDGET = 20_000
"""Postings of related terms looked at for one question."""

MAX_WORDS = 40
"""Words of a text that are scored; a longer one, such as a pasted page, is asked by its rarest words."""

MAX_RELATED_WORDS = 12
"""Words of a question up to which words of like meaning are looked up: a longer text brings its own."""

FEW_OWNERS = 4
"""Owners up to which each is asked term by term, so that common terms need not be read whole."""

SMALL = 20_000
"""Rows of a corpus up to which reading all terms in one statement is cheaper than that."""

MAX_SEEKS = 10_000
"""Pairs of owner and term up to which related terms are looked up."""

_ENTRY = np.dtype([("offset", "<u2"), ("frequency", "u1")])
"""Layout of `libctx_core.store.index_blocks.ENTRY`."""

Held = tuple[Rows, Rows]
"""Rows that hold a term, rising, and how often each does."""


@dataclass(frozen=True, slots=True)
class Postings:
    """Where terms occur in the corpus: one element per term and row, term after term, rows rising.

    Attributes:
        rows: Rows of the corpus that hold the term.
        frequency: How often they do.
        term: Number of the term.
        idf: Inverse document frequency over the corpus, of each term.
    """

    rows: Rows
    frequency: Rows
    term: Rows
    idf: Floats


@dataclass(frozen=True, slots=True)
class Related:
    """Where words of the question, or words of like meaning, occur: one element per word, term and row.

    Attributes:
        rows: Rows of the corpus.
        word: Number of the word.
        closeness: How close in meaning, in percent; the word itself has 100.
        idf: Inverse document frequency of each word.
    """

    rows: Rows
    word: Rows
    closeness: Rows
    idf: Floats


@dataclass(frozen=True, slots=True)
class Lookup:
    """What the index knows of a question's words.

    Attributes:
        terms: Occurrences of the terms to score.
        words: Occurrences of the words and of those related to them.
        idf: Inverse document frequency of every term asked for, found or not.
    """

    terms: Postings
    words: Related
    idf: dict[str, float]

    def placed(self, rows: Rows) -> "Lookup":
        """Return the same with the places of its rows among the given ones, which hold them all."""
        return Lookup(
            replace(self.terms, rows=np.searchsorted(rows, self.terms.rows)),
            replace(self.words, rows=np.searchsorted(rows, self.words.rows)),
            self.idf,
        )


def inverse_document_frequency(records: int, holding: int) -> float:
    """Return BM25's weight of a term that `holding` of `records` hold; never negative."""
    return log1p((max(records - holding, 0) + 0.5) / (holding + 0.5))


def look_up(
    connection: apsw.Connection,
    corpus: Corpus,
    words: Sequence[Word],
    *,
    names: Sequence[Word] = (),
    related: bool = False,
) -> Lookup:
    """Return where the words of a question occur, within budgets of postings.

    Statistics are of the corpus: no other owner's records enter them.

    Args:
        connection: A reader.
        corpus: The owners to look in.
        words: Words to score.
        names: Words of which only the frequency is wanted.
        related: Look for words of like meaning too.
    """
    asked = _terms_of((*words, *names))
    blocks, counts = _blocks(connection, corpus, sorted(asked), limit=POSTING_BUDGET)
    idf = {term: inverse_document_frequency(corpus.alive, counts.get(term, 0)) for term in asked}
    telling = _rarest([word for word in words if word.terms], idf, MAX_WORDS)
    scored = _within(_terms_of(telling), counts, POSTING_BUDGET)
    if len(scored) == 1 and counts[scored[0]] > POSTING_BUDGET:
        blocks |= _blocks(connection, corpus, scored, limit=corpus.size)[0]
    near: dict[Word, Near] = {}
    if related and len(telling) <= MAX_RELATED_WORDS:
        near = {word: related_terms(word.terms[0]) for word in telling}
    others = {term for listed in near.values() for term, _ in listed}.difference(scored)
    if others and len(corpus.parts) * len(others.union(asked)) <= MAX_SEEKS:
        found, also = _blocks(connection, corpus, sorted(others.difference(asked)), limit=RELATED_BUDGET)
        blocks, counts = {**blocks, **found}, {**counts, **also}
    held = _decoded({term: blocks[term] for term in (*scored, *_within(others, counts, RELATED_BUDGET))})
    return Lookup(_postings(scored, held, idf), _related(telling, near, held, idf), idf)


def _terms_of(words: Iterable[Word]) -> list[str]:
    return list(dict.fromkeys(term for word in words for term in word.terms))


def _rarest(words: Sequence[Word], idf: Mapping[str, float], most: int) -> list[Word]:
    """Return the words, of many only the rarest, in the order they have."""
    if len(words) <= most:
        return list(words)
    rarity = sorted(words, key=lambda word: -max(idf[term] for term in word.terms))
    kept = set(rarity[:most])
    return [word for word in words if word in kept]


def _within(terms: Iterable[str], counts: Mapping[str, int], budget: int) -> list[str]:
    """Return the rarest of the terms that occur, as many as the budget of postings allows, and always one."""
    kept: list[str] = []
    spent = 0
    for count, term in sorted((counts[term], term) for term in terms if term in counts):
        spent += count
        if kept and spent > budget:
            break
        kept.append(term)
    return kept


def _postings(terms: Sequence[str], held: Mapping[str, Held], idf: Mapping[str, float]) -> Postings:
    """Return the occurrences of some terms."""
    rows, frequency = [held[term][0] for term in terms], [held[term][1] for term in terms]
    return Postings(
        _joined(rows), _joined(frequency), _numbered(rows), np.array([idf[term] for term in terms], np.float32)
    )


def _related(
    words: Sequence[Word], near: Mapping[Word, Near], held: Mapping[str, Held], idf: Mapping[str, float]
) -> Related:
    """Return the occurrences of words and of those related to them."""
    rows: list[Rows] = []
    number: list[int] = []
    closeness: list[int] = []
    for at, word in enumerate(words):
        for term, percent in (*[(term, 100) for term in word.terms], *near.get(word, ())):
            found = held.get(term)
            if found is not None:
                rows.append(found[0])
                number.append(at)
                closeness.append(percent)
    sizes = [len(each) for each in rows]
    return Related(
        _joined(rows),
        np.repeat(np.array(number, np.int64), sizes),
        np.repeat(np.array(closeness, np.int64), sizes),
        np.array([max(idf[term] for term in word.terms) for word in words], np.float32),
    )


def _joined(parts: Sequence[Rows]) -> Rows:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _numbered(parts: Sequence[Rows]) -> Rows:
    """Return for each element of the parts joined the number of its part."""
    return np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def _blocks(
    connection: apsw.Connection, corpus: Corpus, terms: Sequence[str], *, limit: int
) -> tuple[dict[str, list[Block]], dict[str, int]]:
    """Return the blocks of each term that occurs, by first row, and the number of its postings."""
    if len(corpus.parts) <= FEW_OWNERS and corpus.size > SMALL:
        return _leading_blocks(connection, corpus, terms, limit)
    blocks: defaultdict[str, list[Block]] = defaultdict(list)
    starts = corpus.starts
    for term, owner, first, data in connection.execute(
        # owner by owner, because an owner's postings lie together
        "SELECT p.term, p.owner, p.first, p.data FROM carray(?) AS o CROSS JOIN carray(?) AS t "
        "CROSS JOIN posting AS p ON p.owner = o.value AND p.term = t.value",
        (apsw.carray(corpus.owners), apsw.carray(tuple(terms) or ("",))),
    ):
        blocks[term].append((starts[owner] + first, data))
    return blocks, {term: _entries(found) for term, found in blocks.items()}


def _leading_blocks(
    connection: apsw.Connection, corpus: Corpus, terms: Sequence[str], limit: int
) -> tuple[dict[str, list[Block]], dict[str, int]]:
    """Return the same without the rest of a term that has more than `limit` postings in an owner.

    How many it has is estimated from the stretch that was read.
    """
    blocks: defaultdict[str, list[Block]] = defaultdict(list)
    counts: defaultdict[str, int] = defaultdict(int)
    most = limit // MAX_ENTRIES + 1
    for owner, start in corpus.starts.items():
        for term in terms:
            found = connection.execute(
                "SELECT first, data FROM posting WHERE owner = ? AND term = ? ORDER BY first LIMIT ?",
                (owner, term, most),
            ).fetchall()
            if found:
                count, last = _entries(found), found[-1][0]
                if len(found) == most and last:
                    count = max(count, _entries(found[:-1]) * corpus.count(owner) // last)
                counts[term] += count
                blocks[term].extend([(start + first, data) for first, data in found])
    return blocks, counts


def _entries(blocks: Sequence[Block]) -> int:
    return sum([len(data) for _, data in blocks]) // _ENTRY.itemsize


def _decoded(blocks: Mapping[str, list[Block]]) -> dict[str, Held]:
    """Return rows and frequencies of each term; all blocks are decoded together."""
    every = [block for found in blocks.values() for block in found]
    entries = np.frombuffer(b"".join([data for _, data in every]), _ENTRY)
    counts = [len(data) // _ENTRY.itemsize for _, data in every]
    rows = np.repeat(np.array([first for first, _ in every], np.int64), counts) + entries["offset"]
    frequency = entries["frequency"].astype(np.int64)
    ends = np.append(0, np.cumsum(counts))[np.cumsum([0, *map(len, blocks.values())])].tolist()
    return {
        term: (rows[start:end], frequency[start:end]) for term, (start, end) in zip(blocks, pairwise(ends), strict=True)
    }
