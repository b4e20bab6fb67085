"""Any string is a valid question, and any text a valid record."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libctx_core.embedding import StaticEmbedder
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from libctx_core.store.database import Database
from tests.search.library import add, keys, records_of

QUESTIONS = [
    "C++",
    "node.js vs C#?",
    'say "quoted',
    "it's AND OR NOT NEAR(a b)",
    "a:b foo-bar col*",
    "'; DROP TABLE record; --",
    "null\x00byte",
    "\ud800 lone surrogate \udfff",
    "the of and",
    "?!… —",
    "\u202eright to left\u202c",
    "👩‍👩‍👧‍👦 🏳️‍🌈",
    "ﬁ ﬀ ㎏ ½",
    "𝓯𝓪𝓷𝓬𝔂",
    "",
    " \t\n",
    "a" * 100_000,
    "- " * 50_000,
]


@pytest.fixture(scope="module")
def searcher():
    database = Database(":memory:")
    lines = [*QUESTIONS[:12], "部署天気が良い", "데이터베이스 연결", "ภาษาไทย", "plain words about C++ templates"]
    made = [line.replace("\x00", " ").encode("utf-8", "replace").decode() for line in lines]
    add(database, "one", records_of(made), embedder=StaticEmbedder())
    yield Searcher(database, StaticEmbedder())
    database.close()


@pytest.mark.parametrize("text", QUESTIONS, ids=lambda text: ascii(text[:24]))
def test_no_question_is_an_error(searcher, text):
    assert len(searcher.search(SearchRequest(text=text, k=3))) == 3


def test_a_question_of_a_megabyte_is_read_in_part(searcher):
    started = time.thread_time()
    hits = searcher.search(SearchRequest(text="templates " + "lorem ipsum dolor " * 60_000, k=1))
    assert "templates" in hits[0].text
    assert time.thread_time() - started < 5


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("天気", "部署天気が良い"),
        ("部署", "部署天気が良い"),
        ("데이터", "데이터베이스 연결"),
        ("ไทย", "ภาษาไทย"),
        ("C++", "plain words about C++ templates"),
    ],
)
def test_scripts_without_spaces_are_found_by_words_alone(searcher, question, found):
    hits = searcher.search(SearchRequest(text=question, k=2, mode="lexical"))
    assert found in [hit.text for hit in hits]
    assert "lexical" in hits[0].matched_by


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
def test_any_text_can_be_asked(searcher, text):
    assert len(searcher.search(SearchRequest(text=text, k=2))) == 2


storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=60)


@settings(max_examples=60, deadline=None)
@given(storable, storable)
def test_any_text_can_be_stored_and_is_found_by_itself(text, other):
    database = Database(":memory:")
    owner, _ = add(database, "one", records_of([other, text, "unrelated filler"]))
    hits = Searcher(database).search(SearchRequest(text=text, owners=[owner], k=3))
    assert sorted(keys(hits)) == ["r0", "r1", "r2"]
    database.close()
