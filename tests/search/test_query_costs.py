"""Costs as ratios to plain FTS5 in the same run; absolute figures are the benchmark's."""

import random
import statistics
import time

import apsw
import pytest

from libctx_core.embedding import StaticEmbedder
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from tests.search.library import add, records_of

WORDS = [f"{a}{b}{c}" for a in "bdfgklmprst" for b in ("a", "en", "il", "or", "u") for c in ("den", "ter", "mo", "sy")]


def texts(count):
    source = random.Random(7)
    return [
        " ".join(source.choices(WORDS, weights=[1 / (rank + 1) for rank in range(len(WORDS))], k=38))
        for _ in range(count)
    ]


def median_ms(work, questions):
    times = []
    for question in questions:
        started = time.thread_time()
        work(question)
        times.append(time.thread_time() - started)
    return 1e3 * statistics.median(times)


def measured(database, count):
    lines = texts(count)
    embedder = StaticEmbedder()
    owner, _ = add(database, "one", records_of(lines), embedder=embedder)
    plain = apsw.Connection("")
    plain.execute("CREATE VIRTUAL TABLE plain USING fts5(text)")
    plain.executemany("INSERT INTO plain(text) VALUES(?)", [(line,) for line in lines])
    questions = [" ".join(random.Random(at).sample(WORDS, 6)) for at in range(40)]
    searcher = Searcher(database, embedder)
    searcher.search(SearchRequest(text="load the lazy parts", owners=[owner]))

    def ask_plain(text):
        match = " OR ".join(f'"{word}"' for word in text.split())
        plain.execute("SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 10", (match,)).fetchall()

    ours = median_ms(lambda text: searcher.search(SearchRequest(text=text, owners=[owner])), questions)
    theirs = median_ms(ask_plain, questions)
    plain.close()
    return ours, theirs


def test_a_cold_question_costs_at_most_fifteen_plain_ones(database):
    ours, theirs = measured(database, 3_000)
    assert ours <= 15 * theirs


@pytest.mark.exhaustive
def test_a_cold_question_over_many_records_costs_less_than_a_plain_one(database):
    ours, theirs = measured(database, 50_000)
    assert ours <= theirs
