"""`library.memory`: what a caller without an event loop sees."""

import threading

import pytest

from libctx_core.artifacts import ArtifactRef
from libctx_core.errors import (
    ArtifactNotFoundError,
    CapabilityNotSupportedError,
    InvalidInputError,
    InvalidMemoryCandidateError,
    MemoryEntryConflictError,
    MemoryEntryInactiveError,
    MemoryEntryNotFoundError,
    RevisionConflictError,
)
from libctx_core.memory import Proposal, event_proposals, memory_content_hash
from libctx_core.memory.events import pieces
from libctx_core.models import ContextEvent
from libctx_core.sources import SourceRef
from libctx_core.store import Database


def ref(name: str) -> SourceRef:
    return SourceRef(source_type="content", source_id=name)


def test_what_was_remembered_is_cited_and_found(memories):
    done = memories.remember("Deploys happen every Friday.", kind="decision", sources=[ref("a")], tags=["ops"])
    assert (done.memory_ref, done.written) == (ArtifactRef(family="memory", artifact_id="memory", revision=1), 1)
    version = memories.cite(done.citations[0])
    assert (version.kind, version.text, version.sources) == ("decision", "Deploys happen every Friday.", (ref("a"),))
    (hit,) = memories.search("deploying on a Friday").hits
    assert hit.citation == done.citations[0]
    assert "Deploys happen every Friday." in memories.search("deploying")._repr_html_()
    assert memories.expand([hit]) == (version,)


def test_remembering_again_returns_the_same_citation(memories):
    first = memories.remember("One.")
    again = memories.remember(" One. ")
    assert again.written == 0
    assert again.citations == first.citations


def test_many_entries_make_one_revision_with_all_their_evidence(memories):
    done = memories.remember_many(
        [
            Proposal(kind="fact", text="One.", sources=(ref("b"),)),
            Proposal(kind="fact", text="Two.", sources=(ref("a"), ref("b"))),
            Proposal(kind="fact", text="One.", sources=(ref("b"),)),
        ]
    )
    assert done.written == 2
    assert done.citations[0] == done.citations[2]
    assert [view.text for view in memories.entries()] == ["One.", "Two."]
    assert memories.head().lineage.sources == (ref("a"), ref("b"))


def test_an_expected_revision_guards_a_write(memories):
    memories.remember("One.", expected_revision=0)
    with pytest.raises(RevisionConflictError):
        memories.remember("Two.", expected_revision=0)
    memories.remember("Two.", expected_revision=1)
    with pytest.raises(RevisionConflictError) as caught:
        memories.remember("Three.", expected_revision=1)
    assert caught.value.current.revision == 2


def test_an_expected_state_version_guards_one_entry_alone(memories):
    first, second = (memories.remember(text).citations[0].entry_id for text in ("One.", "Two."))
    seen = memories.entry(first)
    memories.revise(second, "Two and a half.")
    memories.revise(first, "One and a half.", expected_version=seen.state_version)
    with pytest.raises(MemoryEntryConflictError) as caught:
        memories.revise(first, "One and two thirds.", expected_version=seen.state_version)
    assert (caught.value.entry_id, caught.value.expected, caught.value.current) == (first, 1, 2)


def test_the_life_of_an_entry(memories):
    entry = memories.remember("One.", reason="heard").citations[0].entry_id
    memories.revise(entry, "Two.", kind="decision", sources=[ref("x")], reason="corrected")
    memories.forget(entry, reason="outdated")
    assert memories.search("two").hits == ()
    assert memories.entries() == ()
    (view,) = memories.entries(include_inactive=True)
    assert (view.state, view.kind, view.text, view.version) == ("inactive", "decision", "Two.", 2)
    with pytest.raises(MemoryEntryInactiveError):
        memories.revise(entry, "Three.")
    newest = memories.reactivate(entry)
    assert newest.revision == 4
    assert memories.reactivate(entry) == newest
    assert [version.text for version in memories.history(entry)] == ["One.", "Two."]
    changes = [(g.memory_ref.revision, c.op, c.reason) for g in memories.changes(0) for c in g.changes]
    assert changes == [
        (1, "add", "heard"),
        (2, "revise", "corrected"),
        (3, "deactivate", "outdated"),
        (4, "reactivate", None),
    ]


def test_entries_that_do_not_exist(memories):
    with pytest.raises(ArtifactNotFoundError):
        memories.head()
    with pytest.raises(ArtifactNotFoundError):
        memories.forget("nobody")
    memories.remember("One.")
    for call in (memories.forget, memories.reactivate, memories.entry, memories.history, memories.purge):
        with pytest.raises(MemoryEntryNotFoundError):
            call("nobody")
    assert memories.head().revision == 1


def test_tags_filter_and_change_without_a_revision(memories):
    first = memories.remember("Deploys on Friday.", tags=["ops", "ops", " time "]).citations[0].entry_id
    memories.remember("Deploys need a review.", tags=["ops"])
    assert memories.entry(first).tags == ("ops", "time")
    assert len(memories.search("deploys", tags=["ops"]).hits) == 2
    assert [hit.entry_id for hit in memories.search("deploys", tags=["ops", "time"]).hits] == [first]
    view = memories.tag(first, add=["new"], remove=["time"])
    assert view.tags == ("new", "ops")
    assert view.state_version == 2
    assert memories.head().revision == 2
    assert memories.search("deploys", tags=["time"]).hits == ()
    for bad in ("", "x" * 129, "a\x00"):
        with pytest.raises(InvalidInputError):
            memories.tag(first, add=[bad])


def test_kinds_filter(memories):
    memories.remember("Deploys on Friday.", kind="decision")
    memories.remember("Deploys are slow.", kind="fact")
    assert [hit.text for hit in memories.search("deploys", kinds=["fact"]).hits] == ["Deploys are slow."]
    assert memories.search("deploys", kinds=["nothing"]).hits == ()


def test_memories_of_a_collection_are_apart_and_searched_together(memories):
    memories.remember("Deploys on Friday.", memory="work")
    memories.remember("Cake on Friday.", memory="home")
    assert memories.names() == ("home", "work")
    assert len(memories.search("Friday").hits) == 2
    (hit,) = memories.search("Friday", memories=["home"]).hits
    assert hit.memory_ref.artifact_id == "home"
    with pytest.raises(ArtifactNotFoundError):
        memories.search("Friday", memories=["nowhere"])


def test_collections_do_not_meet(database, open_memories, memories):
    memories.remember("Deploys on Friday.")
    other = open_memories(database, "other")
    assert other.search("Friday").hits == ()
    other.remember("Cake on Friday.")
    assert [hit.text for hit in memories.search("Friday").hits] == ["Deploys on Friday."]


@pytest.mark.parametrize(("text", "kind"), [("", "fact"), ("x", " "), ("x" * 8193, "fact"), ("x", "k" * 129)])
def test_what_cannot_be_remembered_leaves_nothing(memories, text, kind):
    with pytest.raises(InvalidMemoryCandidateError):
        memories.remember(text, kind=kind)
    assert memories.names() == ()
    assert memories.status().entries == 0


def test_search_never_fails_on_a_long_query(memories):
    memories.remember("Deploys on Friday.")
    assert memories.search("when do deploys happen? " * 2000).hits


def test_modes_without_an_embedder(database, open_memories):
    memories = open_memories(database, vectors=False)
    memories.remember("Deploys on Friday.")
    assert memories.search("deploy").mode == "fts"
    assert not memories.capabilities.vector
    for mode in ("vector", "hybrid"):
        with pytest.raises(CapabilityNotSupportedError):
            memories.search("deploy", mode=mode)


def test_a_receipt_says_which_channel_which_rank_and_what_was_left_out(memories):
    for day in ("Monday", "Tuesday", "Wednesday"):
        memories.remember(f"The deploy of {day} went well.")
    result = memories.search("deploy on Tuesday", limit=1, explain=True)
    receipt = result.receipt
    assert receipt.candidates == 3
    (first,) = receipt.hits
    assert (first.rank, first.entry_id) == (1, result.hits[0].entry_id)
    assert first.channel_ranks["fts"] == 1
    assert first.signals
    assert [(omission.rank, omission.reason) for omission in receipt.omitted] == [(2, "limit"), (3, "limit")]
    assert "deploy" in receipt.terms
    strict = memories.search("deploy on Tuesday", limit=3, explain=True, min_relevance=2.0)
    assert strict.hits == ()
    assert {omission.reason for omission in strict.receipt.omitted} == {"relevance"}


def test_status_and_flush(memories):
    assert memories.status().memory_ref is None
    memories.remember_many(Proposal(kind="fact", text=f"Entry {at}.") for at in range(300))
    status = memories.status()
    assert (status.entries, status.active, status.pending) == (300, 300, 300)
    assert memories.flush(limit=100) == 100
    assert memories.flush() == 200
    assert memories.status().pending == 0
    assert memories.rebuild() == 300
    assert memories.search("entry 7", limit=1).hits[0].text == "Entry 7."


def test_a_diff_shows_what_changed_as_text_and_html(memories):
    entry = memories.remember("<b>One</b>").citations[0].entry_id
    memories.revise(entry, "Two.", reason="why")
    diff = memories.diff(0)
    assert repr(diff) == "memory/memory r0..r2: +1 ~1 -0 ↺0"
    assert [(line.before, line.after) for line in diff.lines] == [("", "<b>One</b>"), ("<b>One</b>", "Two.")]
    assert "Two." in str(diff)
    assert "<b>One" not in diff._repr_html_()
    assert memories.diff(1).to_records()[0]["reason"] == "why"


def test_any_revision_can_be_read_and_hashed(memories, tmp_path, open_memories):
    for at in range(5):
        memories.remember(f"Entry {at}.")
    memories.forget(memories.entries()[0].entry_id)
    expected = [memory_content_hash(memories.revision(number).content) for number in range(1, 7)]
    assert len(memories.revision(3).content.manifest.entries) == 3
    assert [memories.content_hash(number) for number in range(1, 7)] == expected
    again = Database(tmp_path / "library.db")
    assert [open_memories(again).content_hash(number) for number in range(1, 7)] == expected
    again.close()
    with pytest.raises(ArtifactNotFoundError):
        memories.revision(7)


def test_writers_without_an_expectation_never_conflict(memories):
    def write(worker: int) -> None:
        for at in range(10):
            memories.remember(f"Worker {worker} entry {at}.")

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memories.head().revision == 40
    assert len(memories.entries()) == 40


async def test_every_operation_has_an_asynchronous_twin(memories):
    done = await memories.aremember("Deploys on Friday.")
    entry = done.citations[0].entry_id
    await memories.arevise(entry, "Deploys on Thursday.")
    await memories.aforget(entry)
    await memories.areactivate(entry)
    assert (await memories.asearch("deploys")).hits[0].text == "Deploys on Thursday."
    assert len(await memories.ahistory(entry)) == 2
    assert (await memories.aentry(entry)).version == 2
    assert (await memories.adiff(0)).after == 4
    assert (await memories.apurge(entry)).versions == 2
    public = {name for name in dir(memories) if not name.startswith("_")}
    sync = {name for name in public if callable(getattr(memories, name)) and f"a{name}" in public}
    assert sync >= {"remember", "remember_many", "revise", "forget", "reactivate", "search", "changes", "expand"}
    assert sync >= {"purge", "delete", "tag", "organize", "entries", "entry", "diff", "status", "flush", "cite"}


def test_events_become_entries_that_cite_them(memories):
    events = [
        ContextEvent(event_id="1", uid=7, sequence=1, role="user", content="I moved to Lisbon.", speaker="Anna",
                     occurred_at=1_700_000_000.0),
        ContextEvent(event_id="2", uid=8, sequence=2, role="assistant", content=""),
        ContextEvent(event_id="3", uid=9, sequence=3, role="tool", content=" ".join(f"word{at}" for at in range(2000))),
    ]  # fmt: skip
    done = memories.remember_many(event_proposals(events, session="s1"))
    assert done.written == 4
    view = memories.entry(done.citations[0].entry_id)
    assert view.sources == (SourceRef(source_type="event", source_id="e7"),)
    assert (view.context.speaker, view.context.session, view.context.occurred_at) == ("Anna", "s1", 1_700_000_000.0)
    assert "I moved to Lisbon." in [hit.text for hit in memories.search("Where did Anna move?").hits]
    assert memories.derived_from([SourceRef(source_type="event", source_id="e7")]) == {"memory": (view.entry_id,)}


def test_long_text_is_cut_between_words_and_nothing_is_lost():
    text = " ".join(f"wörd{at}" for at in range(5000))
    cut = list(pieces(text))
    assert all(len(piece.encode()) <= 8192 for piece in cut)
    assert " ".join(cut) == text
    assert "".join(pieces("x" * 20_000)) == "x" * 20_000
    assert list(pieces("  ")) == []
