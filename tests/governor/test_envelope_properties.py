"""The invariants of a request, over random histories, budgets and kinds of content."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libctx_core import LibraryOfContext
from libctx_core.errors import TurnTooLargeError
from libctx_core.governor import GovernedPrompt
from libctx_core.models import ContextEvent
from tests.governor.histories import BUDGET, ENCODING, HISTORY, SYSTEM, TEXT, TOOLS
from tests.governor.validity import check_valid

QUICK = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
FULL = settings(max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def library():
    with LibraryOfContext(":memory:", plugins=[]) as opened:
        yield opened


def build(library, history, budget, encoding, question, system, tools, overflow):
    """Play a history into a fresh thread; return the governor and the request for one more question."""
    from libctx_core.models import new_id

    governor = library.open_context_governor(
        new_id("thread"), token_budget=budget, tokenizer=encoding, overflow=overflow
    )
    governor.record_many(history)
    governor.flush(30)
    prompt = governor.prepare(question, system_prompt=system, tools=tools)
    return governor, prompt


def check_bounds(governor, prompt: GovernedPrompt, tools) -> None:
    """Assert that the request is within its budget, counted again from scratch."""
    counted = governor.counter.count_messages(prompt.messages)
    counted += governor.counter.count_tools(tools) if tools else 0
    assert counted <= prompt.token_budget
    assert prompt.token_count >= counted
    if prompt.exact:
        assert prompt.token_count == counted
    assert prompt.token_count == counted or not governor.counter.lines_add_up
    assert len(prompt.parts) == len(prompt.messages)


def check_nothing_is_silent(events: list[ContextEvent], prompt: GovernedPrompt) -> None:
    """Assert that every event is shown or listed among what was left out."""
    shown = {part.event_id for part in prompt.parts if part.event_id}
    pinned = {record for part in prompt.parts if part.origin == "protected" for record in part.record_ids}
    omitted = {item.event_id for item in prompt.omitted_protected}
    for event in events:
        if event.event_id in shown or event.recall_id in pinned or event.event_id in omitted:
            continue
        assert any(
            event.event_id in omission.event_ids or omission.first_sequence <= event.sequence <= omission.last_sequence
            for omission in prompt.omitted
        ), f"event {event.sequence} ({event.role}) vanished"
    protected = {event.event_id for event in events if event.protected}
    visible = shown | {event.event_id for event in events if event.recall_id in pinned}
    assert protected <= visible | omitted
    assert prompt.paged_out_events == len(events) - len(visible)


def check_once(prompt: GovernedPrompt) -> None:
    """Assert that no event is shown twice, on the desk or elsewhere."""
    direct = [part.event_id for part in prompt.parts if part.event_id]
    assert len(direct) == len(set(direct))
    on_desk = [item.hit.event_id for item in prompt.desk]
    assert len(on_desk) == len(set(on_desk))
    assert not set(direct) & set(on_desk)


def check_question_is_whole(prompt: GovernedPrompt, question: str) -> None:
    """Assert that the user's turn ends the request, whole unless it says that it was cut."""
    last = prompt.messages[-1]
    assert last["role"] == "user"
    if not prompt.parts[-1].cut:
        assert last["content"] == question


def check(library, history, budget, encoding, question, system, tools, overflow) -> None:
    try:
        governor, prompt = build(library, history, budget, encoding, question, system, tools, overflow)
    except TurnTooLargeError as error:
        assert error.budget < error.required
        return
    check_valid(prompt.messages)
    check_bounds(governor, prompt, tools)
    check_once(prompt)
    check_question_is_whole(prompt, question)
    check_nothing_is_silent(list(governor.history()), prompt)
    again = governor.build_prompt(system_prompt=system, tools=tools)
    assert again.messages == prompt.messages, "building again gives the same bytes"


ARGUMENTS = (
    HISTORY,
    BUDGET,
    ENCODING,
    TEXT,
    SYSTEM,
    TOOLS,
    st.sampled_from(["error", "truncate_top", "truncate_middle", "truncate_bottom"]),
)


@QUICK
@given(*ARGUMENTS)
def test_requests_are_bounded_valid_and_complete(
    library, history, budget, encoding, question, system, tools, overflow
) -> None:
    check(library, history, budget, encoding, question, system, tools, overflow)


@pytest.mark.exhaustive
@pytest.mark.timeout(3_600)
@FULL
@given(*ARGUMENTS)
def test_requests_are_bounded_valid_and_complete_at_full_size(
    library, history, budget, encoding, question, system, tools, overflow
) -> None:
    check(library, history, budget, encoding, question, system, tools, overflow)


@QUICK
@given(HISTORY, BUDGET, ENCODING)
def test_agent_steps_are_bounded_and_valid(library, history, budget, encoding) -> None:
    from libctx_core.models import new_id

    governor = library.open_context_governor(new_id("thread"), token_budget=budget, tokenizer=encoding)
    governor.record_many(history)
    try:
        prompt = governor.build_prompt()
    except TurnTooLargeError:
        return
    check_valid(prompt.messages)
    check_bounds(governor, prompt, None)
    check_nothing_is_silent(list(governor.history()), prompt)


@QUICK
@given(HISTORY, BUDGET, st.integers(0, 200))
def test_history_for_a_turn_the_caller_adds_leaves_its_tokens_free(library, history, budget, reserve) -> None:
    from libctx_core.models import new_id

    governor = library.open_context_governor(new_id("thread"), token_budget=budget)
    governor.record_many(history)
    try:
        prompt = governor.build_prompt(upcoming=True, reserve_tokens=reserve, focus="what was said")
    except TurnTooLargeError:
        return
    check_valid(prompt.messages)
    assert governor.counter.count_messages(prompt.messages) + reserve <= budget


@QUICK
@given(HISTORY)
def test_what_was_paged_out_comes_back_byte_for_byte(library, history) -> None:
    from libctx_core.models import new_id

    governor = library.open_context_governor(new_id("thread"), token_budget=200)
    stored = governor.record_many(history)
    for event, said in zip(stored, history, strict=True):
        opened = governor.open_event(event.event_id)
        assert opened.content == said["content"]
        assert governor.open_event(event.recall_id) == opened
