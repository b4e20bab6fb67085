"""Acknowledged means it survives ``kill -9`` at any instruction; no process waits for a dead one."""

import random
import time

import pytest

from libctx_core.store.database import Database
from libctx_core.testing.processes import Child
from tests.faults import children
from tests.faults.children import Lengths, open_library

KILLS = [12, pytest.param(200, marks=[pytest.mark.exhaustive, pytest.mark.timeout(3600)])]

NEITHER_QUEUED_NOR_INDEXED = (
    "SELECT count(*) FROM event WHERE content <> ''"
    " AND NOT EXISTS(SELECT 1 FROM outbox WHERE outbox.thread = event.thread AND outbox.sequence = event.sequence)"
    " AND NOT EXISTS(SELECT 1 FROM record WHERE record.owner = event.thread AND record.key = event.event_id)"
)


def look(path):
    """Return the events of the file, in order, and check what must hold at any moment."""
    database = Database(path, read_only=True)
    with database.read() as connection:
        rows = connection.execute("SELECT sequence, event_id, content FROM event ORDER BY sequence").fetchall()
        has_records = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'record'").get
        lost = connection.execute(NEITHER_QUEUED_NOR_INDEXED).get if has_records else 0
        doubled = connection.execute("SELECT count(*) - count(DISTINCT key) FROM record").get if has_records else 0
    database.close()
    assert [sequence for sequence, _, _ in rows] == list(range(1, len(rows) + 1))
    assert (lost, doubled) == (0, 0)
    return {event_id: content for _, event_id, content in rows}


@pytest.mark.parametrize("kills", KILLS)
def test_nothing_acknowledged_is_lost(tmp_path, kills):
    path = tmp_path / "library.sqlite"
    moments = random.Random(20_261_130)
    acknowledged = set()
    for kill in range(kills):
        durability = ("full", "normal")[kill % 2]
        with Child(children.live_until_killed, str(path), durability, f"k{kill}") as child:
            child.hear()
            time.sleep(moments.expovariate(20))
            child.kill()
        assert not child.complaints
        acknowledged.update(child.heard)
        stored = look(path)
        assert acknowledged <= set(stored)
        # a batch of three is the most that can be stored and not yet said
        assert len(stored) <= len(acknowledged) + 3 * (kill + 1)
    with open_library(path) as library:
        governor = library.open_context_governor("s", token_budget=2_000)
        assert library.flush(60)
        assert governor.status().healthy
        assert {event.event_id for event in governor.history()} == set(stored)
        assert library.stats().records == len(stored)
        for event_id in random.Random(1).sample(sorted(acknowledged), 5):
            text = governor.open_event(event_id).text
            assert event_id in {hit.event_id for hit in governor.recall(text, k=20)}
        assert library.database.exclusive(lambda c: c.execute("PRAGMA integrity_check").get) == "ok"


def test_a_killed_writer_does_not_disturb_the_one_beside_it(tmp_path):
    path = tmp_path / "library.sqlite"
    moments = random.Random(3)
    with open_library(path) as library:
        governor = library.open_context_governor("s")
        for kill in range(3):
            with Child(children.live_until_killed, str(path), "full", f"k{kill}") as child:
                child.hear()
                until = time.monotonic() + moments.uniform(0.05, 0.2)
                number = 0
                while time.monotonic() < until or number < 5:
                    governor.record("user", f"mine {kill}/{number}", event_id=f"mine-{kill}-{number}")
                    number += 1
                child.kill()
            governor.record("user", "right after the kill", event_id=f"after-{kill}")
            assert set(child.heard) <= set(look(path))
        assert library.flush(60)
        assert governor.status().healthy


# -- searchable again -------------------------------------------------------------


def test_searchable_within_two_seconds_of_opening_after_a_kill(tmp_path):
    path = tmp_path / "library.sqlite"
    warm(tmp_path)
    fill_without_indexing(path)
    with Child(children.stick_while_indexing, str(path)) as child:
        assert child.hear() > 0
        child.kill()
    start = time.monotonic()
    with open_library(path, embedder=Lengths()) as library:
        governor = library.open_context_governor("s")
        assert governor.flush(2)
        assert governor.recall("mooring number 7")
        assert time.monotonic() - start <= 2
        assert governor.status().watermarks.lag == 0


def test_searchable_within_two_seconds_where_another_process_has_the_library_open(tmp_path):
    """It does not have to be asked: it looks by itself."""
    path = tmp_path / "library.sqlite"
    warm(tmp_path)
    fill_without_indexing(path)
    with Child(children.stick_while_indexing, str(path)) as child:
        assert child.hear() > 0
        with open_library(path, embedder=Lengths()) as library:
            governor = library.open_context_governor("s")
            assert not governor.flush(0.7), "the lease of a living process is respected"
            child.kill()
            start = time.monotonic()
            while governor.status().watermarks.lag:
                assert time.monotonic() - start <= 2
                time.sleep(0.01)
            assert governor.recall("mooring number 7")


def warm(tmp_path):
    """Load what is loaded lazily once per process, which is reported apart."""
    with open_library(tmp_path / "warm.sqlite", embedder=Lengths()) as library:
        library.open_context_governor("s").record("user", "warm")
        library.flush(30)
        library.open_context_governor("s").recall("warm")


def fill_without_indexing(path):
    with open_library(path, embedder=Lengths()) as library:
        library.runtime.indexer.close()
        library.open_context_governor("s").record_many(
            {"role": "user", "content": f"mooring number {number}"} for number in range(50)
        )
        assert library.open_context_governor("s").status().pending == 50
