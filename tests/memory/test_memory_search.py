"""One engine: entries are found as well as anything else, and nothing leaks between scopes."""

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from libctx_core.memory import EntryContext, Proposal
from libctx_core.search.index import SearchIndex
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from libctx_core.sources import SourceRef
from libctx_core.store import Database
from libctx_core.store.owners import get_or_create_owner
from libctx_core.store.records import RecordInput

DATA = Path(os.environ.get("LIBCTX_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


@pytest.mark.parametrize(
    "prompt",
    [
        "who deployed billing",
        "Use only the context below and never make anything up. Who deployed billing?",
        (
            "Could you please, when you have a moment, tell me who deployed billing? Please keep it short, use "
            "bullet points, mention how confident you are, answer in a friendly tone and do not repeat the question."
        ),
        "deploying billing on Fridays",
    ],
)
def test_a_long_polite_prompt_finds_its_fact(memories, prompt):
    wanted = memories.remember("Mara deploys the billing service every Friday evening.").citations[0]
    memories.remember_many(
        Proposal(kind="fact", text=f"The {animal} enclosure is cleaned by team {at}.")
        for at, animal in enumerate(["lion", "bear", "wolf", "otter", "heron", "lynx", "ibex", "seal", "mole", "swan"])
    )
    result = memories.search(prompt)
    assert result.hits[0].entry_id == wanted.entry_id
    for mode in ("fts", "hybrid"):
        assert memories.search(prompt, mode=mode).hits[0].entry_id == wanted.entry_id


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("会議は金曜日の午後に変更されました。", "金曜日の会議"),
        ("배포는 매주 금요일에 합니다.", "금요일 배포"),
        ("The Überprüfung is on Friday.", "uberprufung"),
        ("Don't deploy on Friday.", "dont deploy"),
    ],
)
def test_other_scripts_and_spellings(memories, text, query):
    wanted = memories.remember(text).citations[0]
    memories.remember("Something entirely different about cake.")
    assert memories.search(query, mode="fts").hits[0].entry_id == wanted.entry_id


def test_any_question_finds_something(memories):
    memories.remember("One.")
    for query in ("", "???", "the of and", "日本", "\x00", "x" * 50_000):
        assert len(memories.search(query).hits) == 1


def test_scores_in_one_collection_do_not_depend_on_another(tmp_path, open_memories):
    def scores(crowd: int) -> list[tuple[str, float]]:
        database = Database(tmp_path / f"{crowd}.db")
        mine = open_memories(database, "mine", vectors=False)
        for text in ("Deploys on Friday.", "Deploys are rare.", "Cake on Friday."):
            mine.remember(text)
        if crowd:
            other = open_memories(database, "other", vectors=False)
            other.remember_many(Proposal(kind="fact", text=f"Friday number {at}, deploy {at}.") for at in range(crowd))
            other.flush()
        found = [(hit.text, hit.score) for hit in mine.search("deploys on Friday", mode="fts").hits]
        database.close()
        return found

    assert scores(0) == scores(200)


def test_a_hit_never_says_what_the_head_does_not(memories):
    entry = memories.remember("Deploys on Friday.").citations[0].entry_id
    memories.flush()
    memories.revise(entry, "Deploys on Thursday.")
    (hit,) = memories.search("deploys").hits
    assert hit.text == "Deploys on Thursday."
    assert hit.entry_version_id == memories.entry(entry).citation.entry_version_id


def test_a_record_that_fell_behind_is_left_out_and_named(memories, monkeypatch):
    entry = memories.remember("Deploys on Friday.").citations[0].entry_id
    memories.flush()
    memories.revise(entry, "Deploys on Thursday.")
    monkeypatch.setattr(memories._indexer, "catch_up", lambda owner, limit=None: 0)
    result = memories.search("deploys", explain=True)
    assert result.hits == ()
    assert [(omission.entry_id, omission.reason) for omission in result.receipt.omitted] == [(entry, "stale")]


def locomo() -> list[dict]:
    path = DATA / "locomo-dev5.json"
    if not path.exists():
        pytest.skip(f"the evaluation data is not mounted at {DATA}")
    return json.loads(path.read_text("utf-8"))


def turns_of(conversation: dict):
    talk = conversation["conversation"]
    for number in sorted(int(found[1]) for key in talk if (found := re.fullmatch(r"session_(\d+)", key))):
        at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in talk[f"session_{number}"]:
            yield turn, at.timestamp()


def questions_of(conversation: dict, known: set[str]):
    for asked in conversation["qa"]:
        found = re.findall(r"D:?(\d+):0*(\d+)", " ".join(asked.get("evidence", ())))
        evidence = {f"D{session}:{turn}" for session, turn in found} & known
        if asked["category"] != 5 and evidence:
            yield asked["question"], evidence


@pytest.mark.parametrize(
    "number", [0, *(pytest.param(at, marks=pytest.mark.exhaustive) for at in range(1, 5))], ids=lambda at: f"dev-{at}"
)
def test_turns_as_entries_are_found_as_well_as_in_the_librarys_search(tmp_path, open_memories, embedder, number):
    conversation = locomo()[number]
    database = Database(tmp_path / "library.db")
    memories = open_memories(database)
    turns = list(turns_of(conversation))
    done = memories.remember_many(
        Proposal(
            kind="fact",
            text=turn["text"] + (f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""),
            sources=(SourceRef(source_type="locomo", source_id=turn["dia_id"]),),
            context=EntryContext(speaker=turn["speaker"], occurred_at=at),
        )
        for turn, at in turns
    )
    memories.flush()
    dia_of = {c.entry_id: turn["dia_id"] for c, (turn, _) in zip(done.citations, turns, strict=True)}
    assert len(dia_of) == len(turns)

    index, searcher = SearchIndex(database), Searcher(database, embedder)
    records = [
        RecordInput(
            key=turn["dia_id"],
            kind="event",
            text=turn["text"] + (f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""),
            speaker=turn["speaker"],
            occurred_at=at,
        )
        for turn, at in turns
    ]
    vectors = embedder.embed_documents([f"{record.speaker}: {record.text}" for record in records])

    def store(connection):
        owner = get_or_create_owner(connection, "THREAD", "plain", "s").id
        index.add(connection, owner, records, vectors, profile=embedder.profile_id)
        return owner

    owner = database.write(store)
    ours = plain = asked = 0.0
    for question, evidence in questions_of(conversation, set(dia_of.values())):
        hits = memories.search(question).hits
        assert hits
        found = {dia_of[hit.entry_id] for hit in hits}
        expected = {hit.key for hit in searcher.search(SearchRequest(text=question, owners=[owner], k=10))}
        ours += len(found & evidence) / len(evidence)
        plain += len(expected & evidence) / len(evidence)
        asked += 1
    assert asked > 50
    assert ours == pytest.approx(plain, abs=0.01 * asked)
    assert ours / asked > 0.6
    database.close()
