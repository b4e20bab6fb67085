"""What each field of a request does."""

import pytest

from libctx_core.errors import EmbeddingProfileError
from libctx_core.search.index import SearchIndex
from libctx_core.search.ranking import DEFAULT_WEIGHTS, SignalWeights
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from libctx_core.store.records import RecordInput
from tests.search.library import HashEmbedder, add, keys, records_of

TALK = [
    ("Ana", "My bakery opens in the old harbour next month."),
    ("Ben", "Which harbour do you mean?"),
    ("Ana", "The one beside the lighthouse, where the ferries leave."),
    ("Ben", "I play the violin on Sundays."),
    ("Ana", "Bring the violin to the opening of the bakery!"),
    ("Ben", "The weather was terrible."),
]


@pytest.fixture
def talk(database):
    return add(database, "talk", records_of(TALK))


def ask(database, text, embedder=None, **fields):
    return Searcher(database, embedder).search(SearchRequest(text=text, **fields))


def test_excluded_records_take_no_place(database, talk):
    owner, _slots = talk
    every = ask(database, "violin bakery", owners=[owner], k=6)
    rest = ask(database, "violin bakery", owners=[owner], k=5, exclude={every[0].slot})
    assert keys(rest) == keys(every)[1:]


def test_only_allowed_slots_are_found(database, talk):
    owner, slots = talk
    hits = ask(database, "violin bakery", owners=[owner], where=slots[2:4])
    assert {hit.slot for hit in hits} == set(slots[2:4])
    assert ask(database, "violin", owners=[owner], where=[]) == []
    assert ask(database, "violin", owners=[owner], where=[slots[0] + 10_000, 7]) == []


def test_only_the_wanted_kinds_are_found(database):
    add(database, "mixed", [RecordInput(key=kind, kind=kind, text="the ferry") for kind in ("event", "book", "chunk")])
    assert set(keys(ask(database, "ferry", kinds={"book", "chunk", "unheard of"}))) == {"book", "chunk"}
    assert ask(database, "ferry", kinds=()) == []


def test_expired_records_are_not_found(database):
    made = [RecordInput(key=str(at), kind="event", text="the ferry", expires_at=at) for at in (10.0, 20.0, None)]
    add(database, "mixed", made)
    assert len(ask(database, "ferry")) == 3
    assert set(keys(ask(database, "ferry", now=20.0))) == {"None"}
    assert set(keys(ask(database, "ferry", now=19.9))) == {"20.0", "None"}


@pytest.mark.parametrize("text", ["violin", "", "zzz", "the of and", "Ana", "Ana Ben"])
@pytest.mark.parametrize("mode", ["auto", "lexical", "vector", "hybrid"])
@pytest.mark.parametrize("fusion", ["signals", "rrf"])
def test_no_question_comes_back_empty(database, text, mode, fusion):
    owner, _ = add(database, "talk", records_of(TALK), embedder=HashEmbedder())
    hits = ask(database, text, HashEmbedder(), owners=[owner], k=4, mode=mode, fusion=fusion)
    assert len(hits) == 4


@pytest.mark.parametrize("k", [0, -1])
def test_no_hits_wanted_gives_none(database, talk, k):
    assert ask(database, "violin", k=k) == []


def test_more_hits_wanted_than_there_are_records(database, talk):
    assert len(ask(database, "violin", k=1_000)) == len(TALK)


def test_explained_parts_add_up_to_the_score(database):
    owner, _ = add(database, "talk", records_of(TALK, occurred_at=1.7e9), embedder=HashEmbedder())
    for hit in ask(database, "When does Ana open the bakery?", HashEmbedder(), owners=[owner], explain=True):
        assert sum(hit.signals.values()) == pytest.approx(hit.score, abs=1e-4)
        assert set(hit.signals) <= set(SignalWeights.__slots__)
    assert ask(database, "bakery", owners=[owner])[0].signals == {}


def test_hits_come_best_first_and_ties_by_place(database):
    add(database, "same", records_of(["a ferry"] * 5, session=None))
    hits = ask(database, "ferry", k=5)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    add(database, "alone", [RecordInput(key=str(at), kind="node", text="a lamp") for at in range(9)])
    alike = [hit for hit in ask(database, "lamp", k=9, mode="lexical") if hit.kind == "node"]
    first_words = [hit.slot for hit in alike[1:]]
    assert first_words == sorted(first_words)


def test_the_same_question_gets_the_same_answer(database, talk):
    request = SearchRequest(text="Where is the bakery?", explain=True)
    searcher = Searcher(database)
    assert searcher.search(request) == searcher.search(request) == Searcher(database).search(request)


def test_named_speakers_are_heard_and_their_names_not_searched(database):
    add(
        database, "talk", records_of([("Ana", "I sing."), ("Ben", "Ana sings."), ("Ana", "It rains."), ("Ben", "Yes.")])
    )
    hits = ask(database, "What does Ana paint?", explain=True, k=4)
    assert {hit.speaker for hit in hits if hit.signals["speaker"]} == {"Ana"}
    assert not any("lexical" in hit.matched_by for hit in hits)


def test_speakers_of_two_words_are_meant_by_both(database):
    spoken = [("Project Manager", "We ship in May."), ("User Interface", "The project is late.")]
    add(database, "meeting", records_of(spoken))
    named = ask(database, "What did the project manager say?", explain=True)
    assert {hit.key: hit.signals["speaker"] > 0 for hit in named} == {"r0": True, "r1": False}
    assert "speaker" not in ask(database, "How is the project?", explain=True)[0].signals


def test_a_name_that_is_a_common_word_is_meant_where_it_is_written_as_a_name(database):
    add(database, "talk", records_of([("Will", "I sing."), ("Ana", "It rains.")]))
    assert "speaker" not in ask(database, "What will happen?", explain=True)[0].signals
    assert "speaker" not in ask(database, "Will it rain?", explain=True)[0].signals
    assert "speaker" in ask(database, "What does Will do?", explain=True)[0].signals


def test_neighbours_come_along_and_stay_in_their_session(database):
    made = records_of(["north", "harbour", "south"], session="one") + records_of(
        ["east", "west"], prefix="s", session="two"
    )
    owner, slots = add(database, "talk", made)
    hit = ask(database, "harbour", owners=[owner], k=1, neighbours=2)[0]
    assert keys(hit.neighbours) == ["r0", "r2"]
    last = ask(database, "harbour", owners=[owner], k=1, neighbours=2, exclude={slots[0]})[0]
    assert keys(last.neighbours) == ["r2"]
    assert ask(database, "harbour", owners=[owner], k=1)[0].neighbours == ()


def test_near_duplicates_make_room(database):
    lines = ["the ferry leaves at six", "The ferry leaves at six!", "THE FERRY leaves at six.", "a ferry sank", "rain"]
    add(database, "talk", records_of(lines))
    assert len({hit.text.lower().strip("!.") for hit in ask(database, "ferry leaves at six", k=3, dedupe=True)}) == 3


def test_a_relevance_gate_empties_the_answer_of_an_unrelated_question(database):
    owner, _ = add(database, "talk", records_of(TALK))
    searcher = Searcher(database)
    related = searcher.search(SearchRequest(text="Which harbour has the bakery?", owners=[owner], min_relevance=0.5))
    unrelated = searcher.search(SearchRequest(text="Explain gradient descent", owners=[owner], min_relevance=0.5))
    assert related[0].key == "r0"
    assert unrelated == []


def test_relevance_lies_between_0_and_1_and_does_not_depend_on_other_hits(database, talk):
    owner, slots = talk
    every = {hit.slot: hit.relevance for hit in ask(database, "violin bakery", owners=[owner], k=6)}
    assert all(0 < value < 1 for value in every.values())
    for hit in ask(database, "violin bakery", owners=[owner], k=3, exclude=slots[:2]):
        assert hit.relevance == every[hit.slot]


def test_channels_say_what_they_matched(database):
    lines = ["quartz lamp", *(f"filler{at} word{at} thing{at}" for at in range(40))]
    add(database, "talk", records_of(lines), embedder=HashEmbedder())
    assert ask(database, "quartz lamp", HashEmbedder(), k=1)[0].matched_by == ("lexical", "vector")
    assert ask(database, "quartz lamp", k=1)[0].matched_by == ("lexical",)


def test_records_without_conversation_degrade_to_words(database):
    made = [
        RecordInput(key=str(at), kind="node", text=text)
        for at, text in enumerate(["ferry", "lamp", "a ferry? a lamp?"])
    ]
    add(database, "nodes", made)
    best = ask(database, "ferry lamp", explain=True)
    assert keys(best)[0] == "2"
    assert "speaker" not in best[0].signals
    assert len({(hit.signals["news"], hit.signals["verbosity"], hit.signals["question"]) for hit in best}) == 1
    # a record that stands alone has no neighbours to gain from
    assert {hit.key: hit.signals["window"] for hit in best}["1"] < best[0].signals["window"]


def test_vectors_of_another_embedder_are_never_compared(database):
    class Other(HashEmbedder):
        profile_id = "other"

    add(database, "talk", records_of(TALK), embedder=HashEmbedder())
    hits = ask(database, "violin", Other(), explain=True)
    assert "vector" not in hits[0].signals
    for mode in ("vector", "hybrid"):
        with pytest.raises(EmbeddingProfileError):
            ask(database, "violin", Other(), mode=mode)


def test_an_updated_record_keeps_its_place(database, talk):
    owner, slots = talk
    new = RecordInput(key="r3", kind="event", text="I play the cello on Sundays.", speaker="Ben", role="user")
    database.write(lambda connection: SearchIndex(database).update(connection, slots[3], new, None))
    assert ask(database, "cello", owners=[owner], k=1)[0].slot == slots[3]
    assert ask(database, "violin", owners=[owner], k=1)[0].slot == slots[4]


def test_weights_can_be_exchanged(database, talk):
    owner, _ = talk
    plain = SignalWeights(**dict.fromkeys(SignalWeights.__slots__, 0.0) | {"verbosity": 1.0})
    hits = Searcher(database, weights=plain).search(SearchRequest(text="violin", owners=[owner], k=1))
    assert hits[0].key != Searcher(database).search(SearchRequest(text="violin", owners=[owner], k=1))[0].key
    assert SignalWeights() == DEFAULT_WEIGHTS
