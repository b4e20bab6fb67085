"""Waiting for search to catch up: on a condition, bounded, and without blocking anybody."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from libctx_core.errors import FreshnessTimeout


def test_the_timeout_names_both_watermarks_and_the_event_stays(governor, moody):
    governor.record("user", "mooring one")
    assert governor.flush(30)
    moody.hang()
    with pytest.raises(FreshnessTimeout) as caught:
        governor.prepare("where is the boat?", event_id="q", strict_freshness=True, timeout=0.2)
    assert (caught.value.recorded_through, caught.value.indexed_through) == (2, 1)
    assert isinstance(caught.value, TimeoutError)
    assert [event.text for event in governor.history()][-1] == "where is the boat?"
    moody.may_go_on.set()
    prompt = governor.prepare("where is the boat?", event_id="q", strict_freshness=True, timeout=30)
    assert prompt.watermarks.indexed_through == 2


def test_whoever_waits_blocks_nobody(library, governor, moody):
    """Other threads of the program read and write as if nobody waited."""
    moody.hang()
    outcome = []

    def wait():
        try:
            governor.prepare("I wait", strict_freshness=True, timeout=1.5)
        except FreshnessTimeout as error:
            outcome.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert moody.entered.wait(10)
    other, done = library.open_context_governor("other"), 0
    while waiter.is_alive():
        other.record("user", f"mine {done}")
        governor.record("user", f"also {done}")
        assert other.status().watermarks.recorded_through == done + 1
        done += 1
    waiter.join()
    assert len(outcome) == 1
    assert done > 10


def test_many_wait_together_and_all_go_on_at_once(governor, moody):
    moody.hang()
    governor.record("user", "mooring")
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(governor.flush, 30) for _ in range(8)]
        assert moody.entered.wait(10)
        time.sleep(0.1)
        assert not any(one.done() for one in waiting)
        moody.may_go_on.set()
        assert all(one.result(timeout=30) for one in waiting)


def test_a_wait_ends_when_the_work_is_done_not_at_the_next_look(governor, moody, monkeypatch):
    """Nobody polls: with a poll of a minute the waiter still goes on at once."""
    from libctx_core.governor import indexer

    monkeypatch.setattr(indexer, "IDLE_POLL", 60.0)
    for _ in range(5):
        governor.record("user", "mooring")
        start = time.monotonic()
        assert governor.flush(50)
        assert time.monotonic() - start < 20


def test_a_wait_does_not_wait_for_what_comes_later(governor, library, moody):
    """Others write on; the waiter is content with what was there when it asked."""
    stop = threading.Event()

    def write():
        while not stop.is_set():
            library.open_context_governor("busy").record("user", "and another")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        prompt = governor.prepare("where is the boat?", strict_freshness=True, timeout=30)
        assert prompt.watermarks.indexed_through >= 1
    finally:
        stop.set()
        writer.join()


def test_what_is_set_aside_is_not_waited_for(governor):
    governor.record("user", "poison")
    assert governor.flush(30)
    prompt = governor.prepare("where is the boat?", strict_freshness=True, timeout=30)
    assert prompt.watermarks.indexed_through == 2


def test_an_amendment_is_waited_for(governor, moody):
    """Flushed means: found by what it says now."""
    governor.record("user", "the boat is at berth 26", event_id="e1")
    assert governor.flush(30)
    governor.amend("e1", "the boat lies in the harbour")
    assert governor.flush(30)
    assert governor.recall("harbour")[0].event_id == "e1"


async def test_the_event_loop_goes_on_while_it_waits(governor, moody):
    import asyncio

    moody.hang()
    ticks = []

    async def tick():
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    with pytest.raises(FreshnessTimeout):
        await governor.aprepare("I wait", strict_freshness=True, timeout=0.5)
    ticking.cancel()
    assert len(ticks) > 5
