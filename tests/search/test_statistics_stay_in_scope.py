"""What one owner holds never changes how another is ranked."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from libctx_core.store.database import Database
from tests.search.library import HashEmbedder, add, records_of

WORDS = [
    "river",
    "bank",
    "boat",
    "harbour",
    "lantern",
    "ticket",
    "recipe",
    "yesterday",
    "when",
    "question?",
    "Ana",
    "Ben",
]
lines = st.lists(
    st.tuples(st.sampled_from(["Ana", "Ben", None]), st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)),
    min_size=1,
    max_size=12,
)
questions = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
EMBEDDER = HashEmbedder()


def answers(own, foreign, text, *, foreign_first):
    database = Database(":memory:")
    places = [("foreign", foreign), ("own", own)] if foreign_first else [("own", own), ("foreign", foreign)]
    owners = {
        key: add(database, key, records_of(made, occurred_at=1.7e9), embedder=EMBEDDER)[0]
        for key, made in places
        if made
    }
    request = SearchRequest(text=text, owners=[owners["own"]], k=20, explain=True)
    hits = Searcher(database, EMBEDDER).search(request)
    assert all(hit.owner == owners["own"] for hit in hits)
    database.close()
    return [(hit.key, hit.score, hit.relevance, hit.signals, hit.matched_by) for hit in hits]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(lines, lines, questions, st.booleans())
def test_answers_are_the_same_to_the_bit_whatever_another_owner_holds(own, foreign, text, foreign_first):
    assert answers(own, foreign, text, foreign_first=foreign_first) == answers(own, [], text, foreign_first=True)


def test_a_scope_without_owners_finds_nothing(database):
    add(database, "one", records_of(["river"]))
    assert Searcher(database).search(SearchRequest(text="river", owners=[])) == []


def test_owners_outside_the_library_are_passed_over(database):
    owner, _ = add(database, "one", records_of(["river"]))
    hits = Searcher(database).search(SearchRequest(text="river", owners=[owner, owner + 99, 2**31]))
    assert [hit.owner for hit in hits] == [owner]


def test_a_word_common_in_one_owner_is_weighed_over_all_that_are_asked(database):
    add(database, "one", records_of(["river boat"] + ["river"] * 30))
    add(database, "two", records_of(["boat"] * 30 + ["river"], prefix="s"))
    searcher = Searcher(database)
    first = searcher.search(SearchRequest(text="river boat", owners=None, k=1))
    assert first[0].key == "r0"
