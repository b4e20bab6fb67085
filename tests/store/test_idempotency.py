"""The matrix of repeated calls: same id, role and content is the stored event; anything else changes nothing."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from libctx_core import LibraryOfContext
from libctx_core.errors import EventConflictError
from libctx_core.governor.agent import GovernedTextAgent
from libctx_core.testing.processes import Child
from tests.store import children


@pytest.fixture
def library(tmp_path):
    with LibraryOfContext(tmp_path / "library.sqlite", embedder=False, tokenizer=len) as opened:
        yield opened


@pytest.fixture
def governor(library):
    return library.open_context_governor("s", token_budget=4_000)


def stored(governor):
    return [(event.event_id, event.text) for event in governor.history()]


# -- what is the same -------------------------------------------------------------


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool"])
def test_same_id_role_and_content_is_the_stored_event(governor, role):
    first = governor.record(role, "hello", event_id="e1")
    assert governor.record(role, "hello", event_id="e1") == first
    assert stored(governor) == [("e1", "hello")]


def test_blocks_are_compared_as_what_they_say(governor):
    first = governor.record("user", [{"type": "text", "text": "hello"}, {"type": "file", "name": "a"}], event_id="e1")
    again = governor.record("user", ["hello", {"name": "a", "type": "file"}], event_id="e1")
    assert again == first


@pytest.mark.parametrize(
    "changed",
    [{"importance": 0.9}, {"protected": True}, {"label": "other"}, {"speaker": "Ada"}, {"occurred_at": 5.0}],
)
def test_what_is_not_identity_may_differ_and_the_stored_value_stays(governor, changed):
    first = governor.record("user", "hello", event_id="e1", importance=0.2)
    assert governor.record("user", "hello", event_id="e1", **changed) == first
    assert stored(governor) == [("e1", "hello")]


def test_another_tokenizer_does_not_make_another_event(library, governor):
    first = governor.record("user", "hello", event_id="e1")
    other = library.open_context_governor("s", token_budget=4_000, tokenizer=lambda text: 2 * len(text))
    assert other.record("user", "hello", event_id="e1") == first


@pytest.mark.parametrize(
    ("metadata", "same"),
    [
        ({"tags": ("a", "b"), "n": 1}, {"n": 1, "tags": ["a", "b"]}),
        ({"deep": {"pair": (1, (2, 3))}}, {"deep": {"pair": [1, [2, 3]]}}),
        ({1: "number"}, {"1": "number"}),
        ({"a": 1}, None),
    ],
)
def test_metadata_is_compared_as_json_holds_it(governor, metadata, same):
    first = governor.record("user", "hello", event_id="e1", metadata=metadata)
    assert governor.record("user", "hello", event_id="e1", metadata=same) == first
    assert governor.record("user", "hello", event_id="e1", metadata=metadata) == first


def test_released_then_retried_stays_released(governor):
    governor.protect("never open the seacock", event_id="p1")
    assert governor.release("p1")
    again = governor.protect("never open the seacock", event_id="p1")
    assert not again.protected
    assert len(stored(governor)) == 1


def test_protected_then_retried_stays_protected(governor):
    governor.record("user", "hello", event_id="e1")
    governor.protect_event("e1")
    assert governor.record("user", "hello", event_id="e1", protected=False).protected


def test_a_retry_after_an_amendment_is_the_amended_event(governor):
    """With the words as they were, and with the words as they are."""
    governor.record("user", "the berth is 26", event_id="e1")
    amended = governor.amend("e1", "the berth is 27")
    assert governor.record("user", "the berth is 26", event_id="e1") == amended
    assert governor.record("user", "the berth is 27", event_id="e1") == amended
    with pytest.raises(EventConflictError):
        governor.record("user", "the berth is 28", event_id="e1")


def test_a_retry_after_a_redaction_is_the_tombstone(governor):
    """The words do not come back, whoever says them again."""
    governor.record("user", "my number is 555-0100", event_id="e1", metadata={"secret": True})
    governor.redact("e1")
    again = governor.record("user", "my number is 555-0100", event_id="e1")
    assert again.redacted
    assert again.content == ""
    assert again.metadata is None
    assert stored(governor) == [("e1", "")]


def test_an_event_of_another_thread_is_another_event(library, governor):
    governor.record("user", "hello", event_id="e1")
    other = library.open_context_governor("other").record("user", "good bye", event_id="e1")
    assert other.text == "good bye"


# -- what is not ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "content", "metadata"),
    [
        ("user", "hello!", {"a": 1}),
        ("user", [{"type": "text", "text": "hello"}], {"a": 1}),
        ("assistant", "hello", {"a": 1}),
        ("user", "hello", {"a": 2}),
        ("user", "hello", {}),
    ],
)
def test_other_content_role_or_metadata_is_a_conflict_and_nothing_is_written(governor, role, content, metadata):
    first = governor.record("user", "hello", event_id="e1", metadata={"a": 1})
    before = governor.status()
    with pytest.raises(EventConflictError, match="use another id, or amend") as caught:
        governor.record(role, content, event_id="e1", metadata=metadata)
    assert (caught.value.event_id, caught.value.stored_role) == ("e1", "user")
    assert "hello" not in str(caught.value)
    assert list(governor.history()) == [first]
    assert governor.status().watermarks.recorded_through == before.watermarks.recorded_through


def test_a_conflict_inside_a_batch_writes_none_of_it(governor):
    governor.record("user", "hello", event_id="e2")
    batch = [{"role": "user", "content": f"text {number}", "event_id": f"e{number}"} for number in range(5)]
    with pytest.raises(EventConflictError):
        governor.record_many(batch)
    assert stored(governor) == [("e2", "hello")]


def test_a_batch_repeated_in_part_stores_the_missing_part(governor):
    batch = [{"role": "user", "content": f"text {number}", "event_id": f"e{number}"} for number in range(6)]
    governor.record_many(batch[:3])
    assert [event.sequence for event in governor.record_many(batch)] == [1, 2, 3, 4, 5, 6]
    assert [event.sequence for event in governor.record_many(batch)] == [1, 2, 3, 4, 5, 6]
    assert len(stored(governor)) == 6


def test_an_id_twice_in_one_batch_is_one_event(governor):
    one = {"role": "user", "content": "hello", "event_id": "e1"}
    first, second = governor.record_many([one, one])
    assert first == second
    with pytest.raises(EventConflictError):
        governor.record_many([{**one, "event_id": "e2"}, {**one, "event_id": "e2", "content": "other"}])
    assert stored(governor) == [("e1", "hello")]


# -- turns ------------------------------------------------------------------------


def last(prompt):
    return prompt.messages[-1]


def test_a_prepare_retried_builds_the_same_request(governor):
    governor.record("user", "the mooring is berth 27")
    governor.record("assistant", "noted")
    first = governor.prepare("where is the boat?", event_id="u1")
    again = governor.prepare("where is the boat?", event_id="u1")
    assert again.messages == first.messages
    assert again.answer is None
    assert len(stored(governor)) == 3


def test_a_prepare_retried_after_its_commit_ends_with_its_turn_and_knows_the_answer(governor):
    governor.prepare("where is the boat?", event_id="u1")
    answer = governor.commit("at berth 27", event_id="a1")
    prompt = governor.prepare("where is the boat?", event_id="u1")
    assert last(prompt)["role"] == "user"
    assert "where is the boat?" in str(last(prompt)["content"])
    assert prompt.answer == answer
    assert [event_id for event_id, _ in stored(governor)] == ["u1", "a1"]


def test_a_prepare_retried_much_later_is_built_as_of_its_turn(governor):
    governor.prepare("where is the boat?", event_id="u1")
    governor.commit("at berth 27", event_id="a1")
    governor.prepare("and the dinghy?", event_id="u2")
    governor.commit("on deck", event_id="a2")
    prompt = governor.prepare("where is the boat?", event_id="u1")
    assert "where is the boat?" in str(last(prompt)["content"])
    assert "dinghy" not in str(prompt.messages)
    assert prompt.answer.event_id == "a1"
    assert governor.prepare("and the dinghy?", event_id="u2").answer.event_id == "a2"


def test_a_commit_retried_is_the_stored_answer(governor):
    governor.prepare("where is the boat?", event_id="u1")
    first = governor.commit("at berth 27", event_id="a1")
    assert governor.commit("at berth 27", event_id="a1") == first
    with pytest.raises(EventConflictError):
        governor.commit("at berth 28", event_id="a1")
    assert len(stored(governor)) == 2


def test_an_agent_retried_calls_the_model_once(governor):
    calls = []

    def model(messages):
        calls.append(messages)
        return f"answer {len(calls)}"

    agent = GovernedTextAgent(governor, model)
    first = agent.run("where is the boat?", event_id="u1")
    again = agent.run("where is the boat?", event_id="u1")
    assert (first.value, again.value) == ("answer 1", "answer 1")
    assert again.repeated
    assert again.event == first.event
    assert len(calls) == 1


async def test_an_agent_retried_calls_the_model_once_in_the_other_colour(governor):
    calls = []

    async def model(messages):
        calls.append(messages)
        await asyncio.sleep(0)
        return "answer"

    agent = GovernedTextAgent(governor, lambda messages: pytest.fail("the other model"), async_model=model)
    await agent.arun("where is the boat?", event_id="u1")
    assert (await agent.arun("where is the boat?", event_id="u1")).repeated
    assert len(calls) == 1


def test_a_turn_whose_model_failed_can_be_retried(governor):
    """The user's words are stored before the model is called, and only once."""
    outcomes = [RuntimeError("no network"), "answer"]

    def model(messages):
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    agent = GovernedTextAgent(governor, model)
    with pytest.raises(RuntimeError, match="no network"):
        agent.run("where is the boat?", event_id="u1")
    assert agent.run("where is the boat?", event_id="u1").value == "answer"
    assert [text for _, text in stored(governor)] == ["where is the boat?", "answer"]


# -- at the same time -------------------------------------------------------------


def test_threads_that_store_the_same_events_store_them_once(governor):
    def work(worker):
        return [governor.record("user", f"text {number}", event_id=f"e{number}").uid for number in range(40)]

    with ThreadPoolExecutor(8) as pool:
        uids = set(map(tuple, pool.map(work, range(8))))
    assert len(uids) == 1
    assert stored(governor) == [(f"e{number}", f"text {number}") for number in range(40)]


def test_processes_that_store_the_same_events_store_them_once(library, governor):
    writers = [Child(children.record_the_same, library.path, "40") for _ in range(2)]
    for writer in writers:
        assert writer.hear() == "ready"
    for writer in writers:
        writer.go()
    assert writers[0].join()[-1] == writers[1].join()[-1]
    assert stored(governor) == [(f"e{number}", f"text {number}") for number in range(40)]
    assert governor.flush(30)


def test_threads_that_claim_one_id_for_different_words_leave_one_winner(governor):
    def work(worker):
        try:
            return governor.record("user", f"words of {worker}", event_id="e1").text
        except EventConflictError:
            return None

    with ThreadPoolExecutor(8) as pool:
        kept = [text for text in pool.map(work, range(8)) if text is not None]
    assert stored(governor) == [("e1", kept[0])]
    assert len(kept) == 1
