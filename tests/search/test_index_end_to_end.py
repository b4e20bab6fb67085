"""From records to hits: what is stored is found, in its owner, by words and by speaker."""

import pytest

from libctx_core.search import SearchRequest
from libctx_core.search.index import SearchIndex
from libctx_core.search.searcher import Searcher
from libctx_core.store.database import Database
from libctx_core.store.owners import get_or_create_owner
from libctx_core.store.records import RecordInput

LINES = [
    ("Ana", "I adopted a grey cat last Friday."),
    ("Ben", "What is its name?"),
    ("Ana", "Pixel, because of the white dots on her back."),
    ("Ben", "My motorbike needs new brakes."),
    ("Ana", "Take it to the workshop on Mill Street."),
]


@pytest.fixture
def library(tmp_path):
    database = Database(tmp_path / "library.db")
    yield database
    database.close()


def store(database, key, lines=LINES):
    index = SearchIndex(database)
    records = [
        RecordInput(key=f"{key}:{at}", kind="event", text=text, speaker=speaker, occurred_at=1_700_000_000.0 + at)
        for at, (speaker, text) in enumerate(lines)
    ]

    def work(connection):
        owner = get_or_create_owner(connection, "THREAD", "default", key)
        index.add(connection, owner.id, records, None)
        return owner.id

    return database.write(work)


def test_a_record_is_found_by_its_words(library):
    owner = store(library, "one")
    hits = Searcher(library).search(SearchRequest(text="Which workshop repairs a motorbike?", owners=[owner], k=2))
    assert {hit.key for hit in hits} == {"one:3", "one:4"}
    assert hits[0].score > hits[1].score
    assert "lexical" in hits[0].matched_by


def test_the_named_speaker_is_preferred(library):
    owner = store(library, "one")
    hits = Searcher(library).search(SearchRequest(text="What did Ana adopt?", owners=[owner], k=1, explain=True))
    assert hits[0].key == "one:0"
    assert hits[0].signals["speaker"] > 0


def test_an_answer_is_never_empty_while_records_remain(library):
    owner = store(library, "one")
    for text in ("", "the of and", "zzzz qqqq"):
        assert len(Searcher(library).search(SearchRequest(text=text, owners=[owner], k=3))) == 3


def test_a_reopened_library_answers_the_same(tmp_path):
    path = tmp_path / "library.db"
    request = SearchRequest(text="grey cat", k=5)
    first = Database(path)
    store(first, "one")
    before = Searcher(first).search(request)
    first.close()
    second = Database(path)
    assert Searcher(second).search(request) == before
    second.close()
