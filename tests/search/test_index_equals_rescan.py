"""Whatever was added, changed and removed, the index holds exactly what a look through the records gives."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libctx_core.search import flags
from libctx_core.search.analysis import analyse_document
from libctx_core.search.index import SearchIndex
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from libctx_core.store.database import Database
from libctx_core.store.index import ATTRIBUTE, Attributes, read_all_postings, read_attributes, read_names, read_state
from libctx_core.store.index_blocks import decode
from libctx_core.store.index_records import read_records
from libctx_core.store.owners import get_or_create_owner
from libctx_core.store.records import RecordInput, owner_and_position, slot_of
from tests.search.library import HashEmbedder

WORDS = [
    "river",
    "bank",
    "bank",
    "部署",
    "boat",
    "C++",
    "when",
    "yesterday",
    "I",
    "my",
    "?",
    "café",
    "snow_fall",
    "the",
    "and",
    "2023",
    "zebra",
]
EMBEDDER = HashEmbedder()

texts = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
records = st.tuples(
    texts,
    st.sampled_from([None, "Ana", "Ben Li"]),
    st.sampled_from(["event", "chunk"]),
    st.sampled_from([None, 1e9, 1.7e9]),
)
steps = st.one_of(
    st.tuples(st.just("add"), st.lists(records, min_size=1, max_size=6)),
    st.tuples(st.just("pending"), st.lists(records, min_size=1, max_size=4)),
    st.tuples(st.just("catch_up"), st.integers(1, 3)),
    st.tuples(st.just("update"), st.tuples(st.integers(0, 40), records)),
    st.tuples(st.just("remove"), st.lists(st.integers(0, 40), max_size=5)),
    st.tuples(st.just("clear"), st.none()),
)


def record_of(key, made):
    text, speaker, kind, occurred_at = made
    return RecordInput(key=key, kind=kind, text=text, speaker=speaker, occurred_at=occurred_at)


def vectors_of(made):
    return EMBEDDER.embed_documents([record.text for record in made])


class Run:
    """Applies steps to an owner, and makes keys that are never used twice."""

    def __init__(self, database, key):
        self.database = database
        self.index = SearchIndex(database)
        self.owner = database.write(lambda connection: get_or_create_owner(connection, "THREAD", "tests", key).id)
        self.count = 0

    def take(self, step, value):
        self.database.write(lambda connection: getattr(self, step)(connection, value))

    def fresh(self, made):
        self.count += len(made)
        return [record_of(f"k{self.count - at}", each) for at, each in enumerate(made)]

    def add(self, connection, made):
        new = self.fresh(made)
        slots = self.index.add(connection, self.owner, new, vectors_of(new), profile=EMBEDDER.profile_id)
        assert self.index.add(connection, self.owner, new, vectors_of(new), profile=EMBEDDER.profile_id) == slots

    def pending(self, connection, made):
        new = self.fresh(made)
        self.index.add_pending(connection, self.owner, new, vectors_of(new), profile=EMBEDDER.profile_id)

    def catch_up(self, connection, limit):
        self.index.catch_up(connection, self.owner, limit=limit)

    def update(self, connection, value):
        position, made = value
        new = self.fresh([made])[0]
        self.index.update(connection, slot_of(self.owner, position), new, vectors_of([new])[0], profile="test-hash")

    def remove(self, connection, positions):
        self.index.remove(connection, [slot_of(self.owner, position) for position in positions])

    def clear(self, connection, _):
        self.index.remove_owner(connection, self.owner)


def postings_found(connection, owner):
    found = {}
    for term, first, data in read_all_postings(connection, owner):
        for position, frequency in decode(first, data):
            assert (term, position) not in found
            found[term, position] = frequency
    return found


def check(database, owner):
    """Compare everything the index says of an owner with its records."""
    with database.read() as connection:
        state = read_state(connection, owner)
        stored = {owner_and_position(row.slot)[1]: row.record for row in read_records(connection, owner, 0, 10_000)}
        documents = {
            position: analyse_document(record.text, caption=record.caption, occurred_at=record.occurred_at)
            for position, record in stored.items()
            if position < state.posted
        }
        assert postings_found(connection, owner) == {
            (term, position): frequency
            for position, document in documents.items()
            for term, frequency in document.terms.items()
        }
        packed = read_attributes(connection, owner)
        assert len(packed) == state.posted * ATTRIBUTE.size
        names = {
            field: {n: name for name, n in read_names(connection, owner, field).items()}
            for field in ("speaker", "kind")
        }
        for position, values in enumerate(ATTRIBUTE.iter_unpack(packed)):
            row = Attributes(*values)
            document = documents.get(position)
            if document is None:
                assert row.flags == row.length == row.words == 0
                continue
            spoken = flags.SPOKEN if stored[position].speaker or stored[position].occurred_at else 0
            assert (row.length, row.words) == (document.length, document.words)
            assert row.flags == document.bits | flags.ALIVE | spoken
            assert names["speaker"].get(row.speaker) == stored[position].speaker
            assert names["kind"][row.kind] == stored[position].kind
        assert state.alive == len(documents)
        assert state.length == sum(document.length for document in documents.values())
        vectors = {slot for (slot,) in connection.execute("SELECT slot FROM vector WHERE slot >> 32 = ?", (owner,))}
        assert vectors == {slot_of(owner, position) for position in stored}


def run(taken):
    database = Database(":memory:")
    runs = [Run(database, "one"), Run(database, "two")]
    # a searcher that asks after every step keeps its caches current by what changed alone
    watching = Searcher(database, EMBEDDER)
    request = SearchRequest(text="When was the boat at the river bank?", k=100, explain=True)
    for which, (step, value) in taken:
        runs[which].take(step, value)
        assert watching.search(request) == Searcher(database, EMBEDDER).search(request)
    for each in runs:
        check(database, each.owner)
    posted = Counter()
    with database.read() as connection:
        for each in runs:
            posted[each.owner] = read_state(connection, each.owner).alive
    assert Counter(hit.owner for hit in watching.search(request)) == +posted
    database.close()


sequences = st.lists(st.tuples(st.integers(0, 1), steps), max_size=12)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sequences)
def test_the_index_equals_a_look_through_the_records(taken):
    run(taken)


@pytest.mark.exhaustive
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 1), steps), max_size=40))
def test_the_index_equals_a_look_through_the_records_after_long_histories(taken):
    run(taken)


def test_a_term_of_many_records_survives_removals_in_its_middle(database):
    one = Run(database, "one")
    one.take("add", [("river", None, "event", None)] * 700)
    one.take("remove", list(range(100, 600, 3)))
    one.take("update", (255, ("boat river river", None, "event", None)))
    one.take("add", [("river boat", None, "event", None)] * 10)
    check(database, one.owner)


def test_records_indexed_by_another_analysis_are_removed_whole(database):
    one = Run(database, "one")
    one.take("add", [("secret river", None, "event", None), ("boat", None, "event", None)])
    with database.read() as connection:
        assert ("secret", 0) in postings_found(connection, one.owner)
    database.write(lambda connection: connection.execute("UPDATE posting SET term = 'old-' || term"))
    database.write(lambda connection: connection.execute("UPDATE index_state SET analysis = 0"))
    one.take("remove", [0])
    with database.read() as connection:
        assert set(postings_found(connection, one.owner)) == {("old-boat", 1)}
