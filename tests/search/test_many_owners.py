"""Many small owners are searched together, to the same answer as one by one."""

import random

import pytest

from libctx_core.errors import EmbeddingProfileError
from libctx_core.search import cosines
from libctx_core.search.index import SearchIndex
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from tests.search.library import HashEmbedder, add, records_of

WORDS = ("river", "bank", "boat", "harbour", "lantern", "ticket", "recipe", "garden", "violin", "ferry", "island")
OWNERS = 70
ASKED = SearchRequest(text="ferry to the island harbour", k=30, explain=True)


class Other(HashEmbedder):
    profile_id = "other"


@pytest.fixture
def owners(database):
    source = random.Random(5)
    made = []
    for number in range(OWNERS):
        lines = [" ".join(source.choices(WORDS, k=5)) for _ in range(source.randrange(1, 5))]
        embedder = None if number % 9 == 8 else HashEmbedder()
        made.append(add(database, str(number), records_of(lines, prefix=f"{number}-"), embedder=embedder))
    return made


def one_by_one(database, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(cosines, "MANY", 10**9)
        return Searcher(database, HashEmbedder()).search(ASKED)


def assert_same(found, expected):
    # sums over differently laid out matrices differ in their last bits
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-5)
    scores = {hit.slot: hit for hit in expected}
    for hit in found[:20]:
        assert hit.signals == pytest.approx(scores[hit.slot].signals, abs=1e-5)
        assert hit.relevance == pytest.approx(scores[hit.slot].relevance, abs=1e-5)


def test_together_they_answer_as_one_by_one(database, owners, monkeypatch):
    together = Searcher(database, HashEmbedder()).search(ASKED)
    assert_same(together, one_by_one(database, monkeypatch))
    assert len({hit.owner for hit in together}) > 5


def test_what_is_held_follows_every_change(database, owners, monkeypatch):
    searcher = Searcher(database, HashEmbedder())
    searcher.search(ASKED)
    index = SearchIndex(database)
    changes = [
        lambda connection: index.remove(connection, owners[3][1]),
        lambda connection: index.remove_owner(connection, owners[40][0]),
        lambda connection: index.update(
            connection, owners[0][1][0], *_changed("ferry ferry island"), profile=HashEmbedder.profile_id
        ),
        lambda connection: index.add(
            connection, owners[69][0], records_of(["island harbour"], prefix="new"), _vectors("island harbour"),
            profile=HashEmbedder.profile_id,
        ),
    ]  # fmt: skip
    for change in changes:
        database.write(change)
        assert_same(searcher.search(ASKED), one_by_one(database, monkeypatch))
    add(database, "late", records_of(["ferry island harbour"], prefix="late"), embedder=HashEmbedder())
    assert_same(searcher.search(ASKED), one_by_one(database, monkeypatch))


def _vectors(text):
    return HashEmbedder().embed_documents([text])


def _changed(text):
    return records_of([text], prefix="changed")[0], _vectors(text)[0]


def test_owners_of_another_embedder_are_passed_over_or_refused(database, owners):
    foreign, _ = add(database, "foreign", records_of(["ferry island harbour"], prefix="x"), embedder=Other())
    found = {hit.owner: hit for hit in Searcher(database, HashEmbedder()).search(ASKED)}
    assert foreign in found, "its words are searched all the same"
    with pytest.raises(EmbeddingProfileError):
        Searcher(database, HashEmbedder()).search(SearchRequest(text="ferry", mode="hybrid"))
