"""A scope too large to be measured whole is measured where the question concerns it, to the same scores."""

import random

import pytest

from libctx_core.embedding import StaticEmbedder
from libctx_core.search import lexical, searcher
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from libctx_core.search.vectors import VectorIndex
from tests.search.library import add, keys, records_of

WORDS = [
    f"{a}{b}" for a in ("ban", "cor", "dil", "fen", "gar", "hol", "kin", "lum") for b in ("der", "mit", "sol", "tak")
]


@pytest.fixture
def talk(database):
    source = random.Random(3)
    lines = [(source.choice(["Ana", "Ben"]), " ".join(source.choices(WORDS, k=6))) for _ in range(400)]
    made = records_of(lines[:200], occurred_at=1.7e9) + records_of(lines[200:], prefix="s", occurred_at=1.71e9)
    return add(database, "talk", made, embedder=StaticEmbedder())[0]


def questions():
    source = random.Random(4)
    return ["When did Ana say " + " ".join(source.sample(WORDS, 2)) for _ in range(12)]


def answers(database, owner, text, **fields):
    return Searcher(database, StaticEmbedder()).search(SearchRequest(text=text, owners=[owner], explain=True, **fields))


def test_hits_and_scores_are_those_of_the_whole(database, talk, monkeypatch):
    whole = [answers(database, talk, text, k=400) for text in questions()]
    monkeypatch.setattr(searcher, "LARGE", 0)
    for text, every in zip(questions(), whole, strict=True):
        part = answers(database, talk, text, k=8)
        scores = {hit.key: hit for hit in every}
        for hit in part:
            assert hit.score == pytest.approx(scores[hit.key].score, abs=1e-4)
            assert hit.relevance == pytest.approx(scores[hit.key].relevance, abs=1e-4)
            assert hit.matched_by == scores[hit.key].matched_by
        assert keys(part)[:3] == keys(every)[:3]


def test_what_concerns_too_few_records_is_answered_from_all(database, talk, monkeypatch):
    monkeypatch.setattr(searcher, "LARGE", 0)
    assert len(answers(database, talk, "qqzz", k=50, mode="lexical")) == 50
    assert len(answers(database, talk, "", k=400)) == 400


def test_common_terms_are_read_as_far_as_the_budget_goes(database, monkeypatch):
    lines = [f"harbour number{at}" for at in range(1_500)]
    owner, _ = add(database, "one", records_of(lines))
    monkeypatch.setattr(lexical, "SMALL", 0)
    monkeypatch.setattr(lexical, "POSTING_BUDGET", 300)
    found = Searcher(database).search(SearchRequest(text="harbour number77", owners=[owner], k=1))
    assert keys(found) == ["r77"]
    # a term that stands alone is read whole, however common
    only = Searcher(database).search(SearchRequest(text="harbour", owners=[owner], k=1_500))
    assert all("lexical" in hit.matched_by for hit in only)


def test_codes_of_a_large_owner_are_kept_in_the_file_after_a_search(database, talk):
    embedder = StaticEmbedder()
    small_cache = VectorIndex(cache_bytes=1)
    searching = Searcher(database, embedder, vectors=small_cache)
    before = searching.search(SearchRequest(text=questions()[0], owners=[talk]))
    stored = database.size()
    searching.save()
    assert database.size() == stored, "saved once, not again"
    again = Searcher(database, embedder, vectors=VectorIndex(cache_bytes=1))
    assert keys(again.search(SearchRequest(text=questions()[0], owners=[talk]))) == keys(before)
