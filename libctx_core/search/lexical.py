"""The lexical channel: postings of the question's terms over the owners in scope, and their BM25."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import apsw
import numpy as np

from libctx_core.search.scope import Floats, Rows, Scope

POSTING_BUDGET = 60_000
"""Postings scored for one question: rare terms first, and always the rarest one."""

FEW_OWNERS = 4

_ENTRY = np.dtype([("offset", "<u2"), ("frequency", "u1")])
"""Layout of `libctx_core.store.index_blocks.ENTRY`."""


@dataclass(frozen=True, slots=True)
class TermRows:
    """Where a term occurs in the scope.

    Attributes:
        term: The term.
        rows: Rows of the scope that hold it, rising.
        frequency: How often each of them does.
        idf: Its inverse document frequency over the scope.
    """

    term: str
    rows: Rows
    frequency: Floats
    idf: float


def inverse_document_frequency(records: int, holding: int) -> float:
    """Return BM25's weight of a term that `holding` of `records` hold; never negative."""
    return float(np.log1p((records - holding + 0.5) / (holding + 0.5)))


@dataclass(frozen=True, slots=True)
class Lookup:
    """What the index knows of a question's terms.

    Attributes:
        terms: Rows of the terms to score, rarest first.
        idf: Inverse document frequency of every term asked for, found or not.
    """

    terms: list[TermRows]
    idf: dict[str, float]


def look_up(
    connection: apsw.Connection,
    scope: Scope,
    terms: Sequence[str],
    *,
    weighed: Collection[str] = (),
    budget: int = POSTING_BUDGET,
) -> Lookup:
    """Return the rows of each term that occurs, within a budget of postings.

    Statistics are of the scope: no other owner's records enter them.

    Args:
        connection: A reader.
        scope: The owners to look in.
        terms: Terms to score.
        weighed: Terms of which only the frequency is wanted.
        budget: Postings to score; the rarest term is always scored.
    """
    idf: dict[str, float] = {}
    found: list[tuple[int, str, list[tuple[int, bytes]]]] = []
    for term in dict.fromkeys((*terms, *weighed)):
        blocks = _blocks(connection, scope, term)
        count = sum(len(data) for _, data in blocks) // _ENTRY.itemsize
        idf[term] = inverse_document_frequency(scope.alive, count)
        if count and term not in weighed:
            found.append((count, term, blocks))
    found.sort(key=lambda item: (item[0], item[1]))
    kept: list[TermRows] = []
    spent = 0
    for count, term, blocks in found:
        spent += count
        if kept and spent > budget:
            break
        kept.append(TermRows(term, *_decoded(blocks), idf[term]))
    return Lookup(kept, idf)


def _blocks(connection: apsw.Connection, scope: Scope, term: str) -> list[tuple[int, bytes]]:
    """Return the first row and the entries of each block of a term."""
    if len(scope.parts) <= FEW_OWNERS:
        return [
            (scope.start(part.state.owner) + first, data)
            for part in scope.parts
            for first, data in connection.execute(
                "SELECT first, data FROM posting WHERE owner = ? AND term = ? ORDER BY first",
                (part.state.owner, term),
            )
        ]
    return [
        (scope.start(owner) + first, data)
        for owner, first, data in connection.execute(
            "SELECT p.owner, p.first, p.data FROM carray(?) AS o CROSS JOIN posting AS p "
            "WHERE p.owner = o.value AND p.term = ?",
            (apsw.carray(scope.owners), term),
        )
    ]


def _decoded(blocks: Sequence[tuple[int, bytes]]) -> tuple[Rows, Floats]:
    entries = np.frombuffer(b"".join(data for _, data in blocks), _ENTRY)
    counts = [len(data) // _ENTRY.itemsize for _, data in blocks]
    firsts = np.repeat(np.array([first for first, _ in blocks], np.int64), counts)
    return firsts + entries["offset"], entries["frequency"].astype(np.float32)


def saturated(frequency: Floats, length: Floats, average: float, *, k1: float, b: float) -> Floats:
    """Return BM25's saturated term frequency."""
    norm = np.float32(k1 * (1 - b)) + np.float32(k1 * b / average) * length
    return (frequency * np.float32(k1 + 1) / (frequency + norm)).astype(np.float32, copy=False)


def record_scores(scope: Scope, terms: Sequence[TermRows], *, k1: float, b: float) -> Floats:
    """Return the BM25 score of each row."""
    score = np.zeros(scope.size, np.float32)
    for term in terms:
        score[term.rows] += np.float32(term.idf) * saturated(
            term.frequency, scope.length[term.rows], scope.average, k1=k1, b=b
        )
    return score


def window_scores(scope: Scope, terms: Sequence[TermRows], *, k1: float, b: float) -> tuple[Floats, Floats]:
    """Return the BM25 score of each row read together with its neighbours, and the idf share it covers."""
    score = np.zeros(scope.size, np.float32)
    covered = np.zeros(scope.size, np.float32)
    average = float(scope.window_length.sum()) / max(1, scope.alive)
    for term in terms:
        frequency = np.zeros(scope.size, np.float32)
        frequency[term.rows] = term.frequency
        near = scope.windowed(frequency)
        score += np.float32(term.idf) * saturated(near, scope.window_length, average or 1.0, k1=k1, b=b)
        covered += np.float32(term.idf) * (near > 0)
    mass = sum(term.idf for term in terms)
    return score, covered / np.float32(mass) if mass else covered


def session_scores(scope: Scope, terms: Sequence[TermRows], *, k1: float, b: float) -> Floats:
    """Return the BM25 score of each session; frequencies of sessions are counted in the scope."""
    score = np.zeros(scope.sessions, np.float32)
    average = float(scope.session_length.sum()) / max(1, scope.session_alive)
    for term in terms:
        frequency = np.bincount(scope.session[term.rows], term.frequency, scope.sessions).astype(np.float32)
        holding = int(np.count_nonzero(frequency))
        idf = inverse_document_frequency(scope.session_alive, holding)
        score += np.float32(idf) * saturated(frequency, scope.session_length, average or 1.0, k1=k1, b=b)
    return score
