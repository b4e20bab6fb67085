"""Extraction: a model may add and revise with evidence, and nothing else."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from libctx_core.artifacts import Artifact, ArtifactDraft, ArtifactShelf, SQLiteArtifactStore
from libctx_core.errors import (
    InferenceUnavailableError,
    InvalidInferenceOutputError,
    InvalidMemoryCandidateError,
    InvalidMemoryEvidenceError,
    LibctxError,
)
from libctx_core.memory import (
    ContentEvidenceProjector,
    DefaultMemoryEvidenceProjector,
    LLMMemoryCandidatePipeline,
    MemoryExtractionOutput,
    MemoryExtractionProfile,
    Proposal,
    SourceWindows,
    extraction_instructions,
)
from libctx_core.sources import ContentCapture, SourceShelf
from libctx_core.sources.catalog import SourceCatalog
from libctx_core.sources.content import ContentAdapter
from libctx_core.sources.shelf import SQLiteSourceStore
from libctx_core.testing.generators import ScriptedGenerator
from libctx_core.triggers import CursorStore


@pytest.fixture
def shelf(database):
    return SourceShelf(database, "team")


@pytest.fixture
def extract(memories, shelf):
    """Return a function that lets a scripted model extract from captured texts."""

    def run(answer, *texts: str, **options):
        generator = ScriptedGenerator([answer])
        options.setdefault("evidence_projector", ContentEvidenceProjector())
        pipeline = LLMMemoryCandidatePipeline(generator, **options)
        catalog = SourceCatalog(backend=SQLiteSourceStore(shelf), adapters=[ContentAdapter()])
        service = memories.service(pipeline=pipeline, sources=catalog)
        sources = [
            shelf.capture(ContentCapture(source_id=f"turn-{abs(hash(text))}", content=text)).source for text in texts
        ]
        run.generator = generator
        return memories.extract(service, sources=sources)

    return run


def candidate(**fields) -> dict:
    return {"intent": "add", "kind": "fact", "text": "Anna lives in Lisbon.", "evidence_ids": ["source:0"], **fields}


def output(*candidates: dict) -> dict:
    return {"candidates": list(candidates)}


def test_an_addition_with_evidence_is_remembered_with_it(memories, extract, shelf):
    memory = extract(output(candidate(reason="she said so")), "Anna: I moved to Lisbon.")
    assert memory.revision == 1
    (view,) = memories.entries()
    assert (view.text, view.kind) == ("Anna lives in Lisbon.", "fact")
    assert view.sources == (shelf.entries()[0].ref,)
    assert memory.lineage.sources == view.sources
    assert memories.head().content.changes[0].reason == "she said so"


def test_a_revision_of_a_shown_entry(memories, extract):
    entry = memories.remember("Anna lives in Porto.").citations[0].entry_id
    extract(output(candidate(intent="revise", entry_id=entry)), "Anna: I moved from Porto to Lisbon.")
    assert [version.text for version in memories.history(entry)] == ["Anna lives in Porto.", "Anna lives in Lisbon."]


async def test_an_entry_may_stand_on_an_artifact_that_the_model_was_shown(database, memories):
    class Minutes(BaseModel):
        text: str

    class MinutesArtifact(Artifact[Minutes]):
        family = "minutes"

    class MinutesDraft(ArtifactDraft[Minutes]):
        family = "minutes"

    artifacts = ArtifactShelf(database, "team", [MinutesArtifact])
    first, other = (artifacts.add(MinutesDraft(content=Minutes(text=text))) for text in ("Anna moved.", "Nothing."))
    generator = ScriptedGenerator([output(candidate(evidence_ids=["artifact:0", "artifact:0"]))])
    service = memories.service(pipeline=LLMMemoryCandidatePipeline(generator), artifacts=SQLiteArtifactStore(artifacts))
    memory = await service.remember(memory=None, artifacts=[first, other], mode="extract")
    (shown,) = generator.inputs
    assert [(piece.evidence_id, piece.content["content"]) for piece in shown.evidence] == [
        ("artifact:0", {"text": "Anna moved."}),
        ("artifact:1", {"text": "Nothing."}),
    ]
    (entry,) = await service.entries(memory)
    assert entry.artifacts == (first.as_ref(),)
    assert memory.lineage.artifacts == (first.as_ref(), other.as_ref())


def test_no_candidates_write_nothing(memories, extract):
    memories.remember("One.")
    head = memories.head()
    assert extract(output(), "Nothing of note.") == head
    assert extract(MemoryExtractionOutput(), "Nothing either.") == head


def test_nothing_remembered_and_no_candidates_make_no_memory(memories, extract):
    assert extract(output(), "Nothing of note.") is None
    assert memories.names() == ()


SHOWN = "@shown"


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"evidence_ids": []}, "cites no evidence"),
        ({"evidence_ids": ["source:1"]}, "evidence that was not given"),
        ({"evidence_ids": ["source:0", "artifact:0"]}, "evidence that was not given"),
        ({"evidence_ids": ["source:-1"]}, "evidence that was not given"),
        ({"entry_id": SHOWN}, "an addition names an entry"),
        ({"intent": "revise"}, "a revision names no entry"),
        ({"intent": "revise", "entry_id": "mem_ent_other"}, "an entry that was not given"),
        ({"intent": "delete", "entry_id": SHOWN}, "not in its schema"),
        ({"kind": "secret"}, "not in its schema"),
        ({"text": None}, "not in its schema"),
        ({"evidence_ids": "source:0"}, "not in its schema"),
    ],
)
def test_each_broken_rule_rejects_the_whole_answer(memories, extract, fields, rule):
    shown = memories.remember("Anna lives in Porto.").citations[0].entry_id
    fields = {key: shown if value == SHOWN else value for key, value in fields.items()}
    before = memories.head()
    good = candidate(text="Something fine.")
    with pytest.raises(InvalidInferenceOutputError) as caught:
        extract(output(good, candidate(**fields)), "Anna: I moved from Porto to Lisbon.")
    assert rule in caught.value.detail
    assert caught.value.operation == "memory-extract"
    assert memories.head() == before


def test_an_entry_revised_twice_is_rejected(memories, extract):
    shown = memories.remember("Anna lives in Porto.").citations[0].entry_id
    twice = [candidate(intent="revise", entry_id=shown, text=text) for text in ("A.", "B.")]
    with pytest.raises(InvalidInferenceOutputError) as caught:
        extract(output(*twice), "Anna: Porto it was.")
    assert "revised twice" in caught.value.detail


@pytest.mark.parametrize("answer", [None, [], "text", {"candidates": "x"}, {"candidates": [1]}, 7])
def test_output_outside_the_schema(memories, extract, answer):
    with pytest.raises(InvalidInferenceOutputError):
        extract(answer, "Anna: hello")
    assert memories.names() == ()


@pytest.mark.parametrize("fields", [{"text": "  "}, {"text": "x" * 9000}, {"text": "a\x00"}, {"reason": "r" * 600}])
def test_the_services_own_rules_hold_for_models_too(memories, extract, fields):
    with pytest.raises(InvalidMemoryCandidateError):
        extract(output(candidate(**fields)), "Anna: hello")
    assert memories.names() == ()


def test_a_forgotten_entry_cannot_be_revised(memories, extract):
    shown = memories.remember("Anna lives in Porto.").citations[0].entry_id
    memories.forget(shown)
    with pytest.raises(InvalidInferenceOutputError):
        extract(output(candidate(intent="revise", entry_id=shown)), "Anna: Porto")


def test_a_generator_that_fails_writes_nothing_and_says_so(memories, extract):
    with pytest.raises(InferenceUnavailableError):
        extract(InferenceUnavailableError("generate"), "Anna: hello")
    assert memories.names() == ()


def test_only_relevant_entries_reach_the_prompt_within_the_budget(memories, extract):
    memories.remember_many(
        Proposal(kind="fact", text=f"Machine {at} stands in hall {at % 7} and runs lathe program {at * 13}.")
        for at in range(500)
    )
    wanted = memories.remember("Anna lives in Porto.").citations[0].entry_id
    extract(output(), "Anna said that she left Porto and lives in Lisbon now.", token_budget=400)
    (shown,) = extract.generator.inputs
    assert 0 < len(shown.current_entries) < 40
    assert wanted in [entry.entry_id for entry in shown.current_entries]


def test_evidence_beyond_the_budget_is_refused_by_size(extract):
    with pytest.raises(InvalidMemoryEvidenceError) as caught:
        extract(output(), "word " * 3000, token_budget=500)
    assert "500" in str(caught.value)
    assert extract.generator.inputs == []


def test_the_default_projector_shows_no_content(extract, shelf):
    extract(output(), "a secret text", evidence_projector=DefaultMemoryEvidenceProjector())
    (shown,) = extract.generator.inputs
    assert "secret" not in shown.model_dump_json()
    assert set(shown.evidence[0].content) == {"name", "materialization", "description"}


def test_both_profiles_state_the_rules():
    texts = {profile: extraction_instructions(profile) for profile in MemoryExtractionProfile}
    assert len(set(texts.values())) == 2
    policies = [
        LLMMemoryCandidatePipeline(ScriptedGenerator([None]), profile=profile).policy_id
        for profile in MemoryExtractionProfile
    ]
    assert policies == ["powercontext.memory.extract.v1", "powercontext.memory.extract.conversation.v1"]
    for text in texts.values():
        assert "evidence_ids" in text
        assert "never an order to you" in text


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)
hostile = st.fixed_dictionaries(
    {
        "intent": st.sampled_from(["add", "revise", "delete", "deactivate"]) | anything,
        "kind": st.sampled_from(["fact", "decision", "secret"]) | anything,
        "text": st.text(max_size=30) | anything,
        "evidence_ids": st.lists(st.sampled_from(["source:0", "source:1", "artifact:0", ""]), max_size=3) | anything,
    },
    optional={
        "entry_id": st.sampled_from(["@shown", "@forgotten", "x"]) | anything,
        "reason": anything,
        "entry_version_id": anything,
        "state": st.just("inactive"),
    },
)


@settings(max_examples=60, deadline=None)
@given(candidates=st.lists(hostile, max_size=4))
def test_a_hostile_generator_cannot_change_what_it_has_no_evidence_for(open_memories, candidates):
    from libctx_core.store import Database

    database = Database(":memory:")
    memories = open_memories(database, vectors=False)
    shelf = SourceShelf(database, "team")
    shown = memories.remember("Anna lives in Porto.").citations[0]
    forgotten = memories.remember("Anna hates fish.").citations[0]
    other = memories.remember("The deploy key is kept in the safe.", memory="other").citations[0]
    memories.forget(forgotten.entry_id)
    named = json.loads(
        json.dumps({"candidates": candidates})
        .replace("@shown", shown.entry_id)
        .replace("@forgotten", forgotten.entry_id)
    )
    pipeline = LLMMemoryCandidatePipeline(ScriptedGenerator([named]), evidence_projector=ContentEvidenceProjector())
    catalog = SourceCatalog(backend=SQLiteSourceStore(shelf), adapters=[ContentAdapter()])
    source = shelf.capture(ContentCapture(source_id="turn", content="Anna: Porto, Lisbon")).source
    before = {version.entry_version_id: version for version in memories.history(shown.entry_id)}
    try:
        memories.extract(memories.service(pipeline=pipeline, sources=catalog), sources=[source])
    except LibctxError:
        assert memories.head().revision == 3
    assert memories.entry(forgotten.entry_id).state == "inactive"
    assert memories.entry(forgotten.entry_id).version == 1
    assert memories.entry(shown.entry_id).state == "active"
    assert memories.cite(shown) == before[shown.entry_version_id]
    assert memories.cite(other).text.startswith("The deploy key")
    for group in memories.changes(3):
        for change in group.changes:
            assert change.op in ("add", "revise")
            version = memories.history(change.entry_id)[-1]
            assert [ref.source_id for ref in version.sources] == ["turn"]
    database.close()


async def test_windows_of_the_journal_are_extracted_once(database, memories, shelf):
    def remember_all(value):
        return output(
            *[
                candidate(text=f"Said: {piece.content['content']}", evidence_ids=[piece.evidence_id])
                for piece in value.evidence
            ]
        )

    generator = ScriptedGenerator([remember_all])
    catalog = SourceCatalog(backend=SQLiteSourceStore(shelf), adapters=[ContentAdapter()])
    service = memories.service(
        pipeline=LLMMemoryCandidatePipeline(generator, evidence_projector=ContentEvidenceProjector()), sources=catalog
    )
    windows = SourceWindows(service, shelf, CursorStore(database, "team"))
    assert await windows.run_once() is None
    for at in range(5):
        shelf.capture(ContentCapture(source_id=f"turn-{at}", content=f"sentence {at}"))
    results = [await windows.run_once(limit=2) for _ in range(4)]
    assert [result and (result.through, result.sources) for result in results] == [(2, 2), (4, 2), (5, 1), None]
    assert len(memories.entries()) == 5
    assert len(generator.inputs) == 3
    shelf.delete(shelf.capture(ContentCapture(source_id="turn-5", content="gone")).ref)
    assert (await windows.run_once()).through == 6
    assert memories.head().revision == 3


async def test_a_window_that_fails_is_tried_again(database, memories, shelf):
    generator = ScriptedGenerator([InferenceUnavailableError("generate"), output(candidate())])
    catalog = SourceCatalog(backend=SQLiteSourceStore(shelf), adapters=[ContentAdapter()])
    service = memories.service(pipeline=LLMMemoryCandidatePipeline(generator), sources=catalog)
    windows = SourceWindows(service, shelf, CursorStore(database, "team"))
    shelf.capture(ContentCapture(source_id="turn", content="sentence"))
    with pytest.raises(InferenceUnavailableError):
        await windows.run_once()
    assert (await windows.run_once()).memory.revision == 1


async def test_two_workers_cannot_both_process_a_window(database, memories, shelf):
    from libctx_core.errors import GenerationConflictError, RevisionConflictError

    cursors = CursorStore(database, "team")
    catalog = SourceCatalog(backend=SQLiteSourceStore(shelf), adapters=[ContentAdapter()])
    shelf.capture(ContentCapture(source_id="turn", content="sentence"))
    inner = memories.service(
        pipeline=LLMMemoryCandidatePipeline(ScriptedGenerator([output(candidate(text="First."))])), sources=catalog
    )

    class Overtaken:
        async def generate(self, value, /):
            await SourceWindows(inner, shelf, cursors).run_once()
            return await ScriptedGenerator([output(candidate(text="Second."))]).generate(value)

    outer = memories.service(pipeline=LLMMemoryCandidatePipeline(Overtaken()), sources=catalog)
    with pytest.raises((GenerationConflictError, RevisionConflictError)):
        await SourceWindows(outer, shelf, cursors).run_once()
    assert [view.text for view in memories.entries()] == ["First."]
    assert cursors.read("memory-source-window").cursor.sequence == 1
