"""Scores of all terms together equal those of a plain loop over terms and rows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libctx_core.search import bm25
from libctx_core.search.columns import REACH, Columns
from libctx_core.search.lexical import Postings, Related

SIZE = 12

tables = st.lists(st.dictionaries(st.integers(0, SIZE - 1), st.integers(1, 255), max_size=SIZE), min_size=1, max_size=5)
sessions = st.lists(st.integers(0, 3), min_size=SIZE, max_size=SIZE)
lengths = st.lists(st.integers(1, 60), min_size=SIZE, max_size=SIZE)


def columns_of(session, length):
    made = Columns()
    made.size = SIZE
    made.session = np.array(session, np.int64)
    made.length = np.array(length, np.float32)
    made.joined = {
        step: np.array([at + step < SIZE and session[at] == session[at + step] for at in range(SIZE)])
        for step in range(1, REACH + 1)
    }
    made.window_length = np.array([sum(length[n] for n in window(session, at)) for at in range(SIZE)], np.float32)
    made.average, made.window_average = 20.0, 70.0
    made.session_length = np.bincount(made.session, made.length, 4).astype(np.float32)
    made.session_alive = int(np.count_nonzero(made.session_length))
    return made


def window(session, at):
    near = range(max(0, at - REACH), min(SIZE, at + REACH + 1))
    return [other for other in near if session[other] == session[at]]


def postings_of(table):
    pairs = [(term, row) for term, held in enumerate(table) for row in sorted(held)]
    return Postings(
        np.array([row for _, row in pairs], np.int64),
        np.array([table[term][row] for term, row in pairs], np.int64),
        np.array([term for term, _ in pairs], np.int64),
        np.linspace(0.5, 3.0, len(table)).astype(np.float32),
    )


def gain(count, length, average, k1, b):
    return count * (k1 + 1) / (count + k1 * (1 - b + b * length / average)) if count else 0.0


@pytest.mark.parametrize("dense", [0, 10**6])
@settings(max_examples=60, deadline=None)
@given(table=tables, session=sessions, length=lengths)
def test_scores_equal_a_plain_loop(dense, table, session, length):
    columns, found = columns_of(session, length), postings_of(table)
    idf = found.idf.tolist()
    rows = range(SIZE)
    record = [
        sum(w * gain(held.get(at, 0), length[at], 20.0, *bm25.RECORD) for w, held in zip(idf, table, strict=True))
        for at in rows
    ]
    windowed = [
        sum(
            w * gain(sum(held.get(n, 0) for n in window(session, at)), columns.window_length[at], 70.0, *bm25.RECORD)
            for w, held in zip(idf, table, strict=True)
        )
        for at in rows
    ]
    average = sum(length) / columns.session_alive
    by_session = [0.0] * 4
    for held in table:
        counts = [sum(count for at, count in held.items() if session[at] == number) for number in range(4)]
        holding = sum(map(bool, counts))
        weight = math.log1p((columns.session_alive - holding + 0.5) / (holding + 0.5))
        for number in range(4):
            by_session[number] += weight * gain(counts[number], columns.session_length[number], average, *bm25.SESSION)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bm25, "DENSE", dense)
        np.testing.assert_allclose(bm25.record_scores(columns, found), record, rtol=1e-4)
        np.testing.assert_allclose(bm25.window_scores(columns, found), windowed, rtol=1e-4)
        np.testing.assert_allclose(bm25.session_scores(columns, found), by_session, rtol=1e-4)


@given(table=st.lists(st.tuples(st.integers(0, 2), st.integers(0, SIZE - 1), st.integers(30, 100)), max_size=30))
def test_of_several_related_words_the_closest_counts(table):
    idf = np.array([1.0, 2.0, 3.0], np.float32)
    number, rows, closeness = (np.array([entry[at] for entry in table], np.int64) for at in range(3))
    columns = Columns()
    columns.size = SIZE
    best: dict[tuple[int, int], int] = {}
    for word, row, percent in table:
        best[word, row] = max(best.get((word, row), 0), percent)
    expected = [
        sum(idf[word] / 6.0 * percent / 100 for (word, at), percent in best.items() if at == row) for row in range(SIZE)
    ]
    scores = bm25.word_scores(columns, Related(rows, number, closeness, idf))
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-7)
