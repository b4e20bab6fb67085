"""Consecutive requests begin with the same bytes, and one build is like another."""

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libctx_core import LibraryOfContext
from libctx_core.governor.budget import resolve_budgets, window_start


def shared_messages(one, two) -> int:
    """Return how many leading messages are equal."""
    for place, (before, after) in enumerate(zip(one, two, strict=False)):
        if before != after:
            return place
    return min(len(one), len(two))


def test_requests_share_their_prefix_up_to_the_desk_between_two_moves_of_the_window() -> None:
    source = random.Random(3)
    with LibraryOfContext(":memory:", plugins=[]) as library:
        governor = library.open_context_governor("t", token_budget=2_000)
        governor.protect("Be kind.")
        before, moves, turns = None, 0, 60
        for _turn in range(turns):
            prompt = governor.prepare(" ".join(f"word{source.randrange(100_000)}" for _ in range(12)))
            if before is not None and shared_messages(before.messages, prompt.messages) < before.stable_messages:
                moves += 1
            before = prompt
            governor.commit("indeed " * 40)
        assert 0 < moves <= turns // 6


def test_the_calls_of_one_turn_share_everything_before_their_own_steps() -> None:
    with LibraryOfContext(":memory:", plugins=[]) as library:
        governor = library.open_context_governor("t", token_budget=1_500)
        governor.prepare("The beehive permit number is 88-XY.")
        governor.commit("Noted.")
        for number in range(12):
            governor.prepare(f"Remark {number} " + "about nothing " * 30)
            governor.commit("indeed " * 40)
        governor.flush()
        first = governor.prepare("Which beehive permit number did I give you?")
        assert "88-XY" in str(first.messages)
        call = {"type": "tool_call", "id": "c1", "name": "look", "args": {}}
        governor.commit([call])
        governor.record("tool", [{"type": "tool_result", "tool_call_id": "c1", "content": "nothing new"}])
        governor.flush()
        second = governor.build_prompt()
        assert second.messages[: len(first.messages)] == first.messages


def test_a_request_is_the_same_before_and_after_a_restart(tmp_path) -> None:
    path = tmp_path / "restart.sqlite"
    with LibraryOfContext(path, plugins=[]) as library:
        governor = library.open_context_governor("t", token_budget=900)
        for number in range(30):
            governor.record("user" if number % 2 == 0 else "assistant", f"Sentence {number} about kites and wind.")
        governor.flush()
        governor.prepare("Kites?", event_id="k")
        governor.flush()
        before = governor.build_prompt()
    with LibraryOfContext(path, plugins=[]) as library:
        after = library.open_context_governor("t", token_budget=900).build_prompt()
    assert after.messages == before.messages


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**7), st.integers(1, 50_000))
def test_the_window_starts_where_it_must_and_moves_in_steps(total, high) -> None:
    start = window_start(total, high)
    assert 0 <= start <= total
    assert total - start <= high
    if total > high:
        assert total - start > high // 4 - 1
    later = window_start(total + 1, high)
    assert later >= start


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 10**6))
def test_default_shares_fit_any_budget(total) -> None:
    budgets = resolve_budgets(total)
    assert 0 <= budgets.protected <= budgets.total
    assert budgets.recent + budgets.desk_floor <= budgets.total
