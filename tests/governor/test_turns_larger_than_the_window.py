"""Turns that are larger than the recent window: their question and their end stay in sight."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libctx_core import LibraryOfContext
from libctx_core.errors import TurnTooLargeError
from tests.governor.histories import ENCODING, HISTORY, TEXT
from tests.governor.test_envelope_properties import check_bounds, check_nothing_is_silent, check_once
from tests.governor.validity import check_valid

NO_RECALL = {"focus": ""}
"""An empty desk: what is shown is shown by the window."""


def step(number: int, result: str) -> list[dict]:
    call = {"type": "tool_call", "id": f"c{number}", "name": "read_log", "args": {"page": number}}
    answer = {"type": "tool_result", "tool_call_id": f"c{number}", "content": result}
    return [{"role": "assistant", "content": [call]}, {"role": "tool", "content": [answer]}]


def long_turn(steps: int, words: int) -> list[dict]:
    done = [event for number in range(steps) for event in step(number, f"line {number} " * words)]
    return [
        {"role": "user", "content": "Hello, I am Ada."},
        {"role": "assistant", "content": "Hello Ada."},
        {"role": "user", "content": "Why was db-3 down?"},
        *done,
        {"role": "assistant", "content": "Its disk was full."},
    ]


@pytest.fixture
def library():
    with LibraryOfContext(":memory:", plugins=[]) as opened:
        yield opened


@pytest.mark.parametrize(("steps", "words"), [(1, 30_000), (1, 2_000), (30, 300), (300, 30), (500, 5)])
@pytest.mark.parametrize("budget", [1_000, 4_000, 16_000])
def test_the_next_request_still_shows_what_was_asked_and_answered(library, steps, words, budget) -> None:
    governor = library.open_context_governor("t", token_budget=budget)
    governor.record_many(long_turn(steps, words))
    prompt = governor.prepare("And since when?", **NO_RECALL)
    check_valid(prompt.messages)
    check_bounds(governor, prompt, None)
    check_nothing_is_silent(list(governor.history()), prompt)
    texts = [message["content"] for message in prompt.messages]
    assert "Why was db-3 down?" in texts
    assert "Its disk was full." in texts
    assert texts[-1] == "And since when?"


def test_a_result_larger_than_the_window_is_a_stub_that_names_its_recall_id(library) -> None:
    governor = library.open_context_governor("t", token_budget=4_000)
    events = governor.record_many(long_turn(1, 30_000))
    result = next(event for event in events if event.role == "tool")
    prompt = governor.prepare("And since when?", **NO_RECALL)
    shown = next(part for part in prompt.parts if part.event_id == result.event_id)
    assert shown.cut
    assert result.recall_id in shown.preview
    assert governor.open_event(result.recall_id).content == result.content


def test_a_question_larger_than_the_window_is_cut_and_names_its_recall_id(library) -> None:
    governor = library.open_context_governor("t", token_budget=2_000)
    letter = "Read this. " + "A long letter about the harbour. " * 2_000 + "What is it about?"
    asked, _ = governor.record_many(
        [{"role": "user", "content": letter}, {"role": "assistant", "content": "It is about the harbour."}]
    )
    prompt = governor.prepare("Who wrote it?", **NO_RECALL)
    check_valid(prompt.messages)
    check_bounds(governor, prompt, None)
    opening = prompt.messages[0]["content"]
    assert opening.startswith("Read this.")
    assert opening.endswith("What is it about?")
    assert asked.recall_id in opening
    assert prompt.messages[1]["content"] == "It is about the harbour."


def test_the_long_turn_leaves_when_newer_turns_fill_the_floor_of_the_window(library) -> None:
    governor = library.open_context_governor("t", token_budget=4_000)
    governor.record_many(long_turn(30, 300))
    shown = []
    for number in range(30):
        prompt = governor.prepare(f"Question {number}. " + "Please explain in detail. " * 20, focus="")
        check_valid(prompt.messages)
        shown.append("Its disk was full." in [message["content"] for message in prompt.messages])
        governor.commit("An answer. " * 20)
    assert shown[:3] == [True] * 3
    assert shown == sorted(shown, reverse=True), "once gone, it stays gone"


def test_what_the_window_has_no_room_for_can_be_retrieved(library) -> None:
    governor = library.open_context_governor("t", token_budget=1_500)
    governor.record_many(
        [
            {"role": "user", "content": "Tell me about keys. " * 20},
            {"role": "assistant", "content": "The boathouse key hangs behind the barometer. " + "So. " * 600},
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": "Indeed. " * 500},
        ]
    )
    governor.flush(30)
    prompt = governor.prepare("Where does the boathouse key hang?")
    assert "behind the barometer" in str(prompt.messages)


def test_an_answer_that_is_protected_never_opens_a_request(library) -> None:
    governor = library.open_context_governor("t", token_budget=1_200, recent_token_budget=900)
    governor.record_many([{"role": "user", "content": "Boat names? " * 10}])
    governor.commit("Kestrel, Petrel, Dunlin.", protected=True)
    for number in range(6):
        governor.prepare(f"Remark {number} about boats and their names. " * 4)
        governor.commit("Noted. " * 20)
    governor.flush(30)
    prompt = governor.prepare("Which boat names did you propose, Kestrel or Petrel?")
    check_valid(prompt.messages)
    assert "Dunlin" in str(prompt.messages)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(HISTORY, st.integers(1, 40), st.integers(1, 2_000), HISTORY, st.integers(300, 6_000), ENCODING, TEXT)
def test_long_turns_anywhere_keep_requests_valid(library, before, steps, words, after, budget, encoding, asked) -> None:
    from libctx_core.models import new_id

    governor = library.open_context_governor(new_id("thread"), token_budget=budget, tokenizer=encoding)
    governor.record_many([*before, *long_turn(steps, words), *after])
    try:
        prompt = governor.prepare(asked)
    except TurnTooLargeError:
        return
    check_valid(prompt.messages)
    check_bounds(governor, prompt, None)
    check_once(prompt)
    check_nothing_is_silent(list(governor.history()), prompt)
