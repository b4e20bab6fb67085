"""An embedder that hangs, raises or answers nonsense costs search, never events."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from libctx_core.governor import indexer
from libctx_core.testing.storage_log import EventLog
from tests.faults.children import Lengths, open_library
from tests.faults.conftest import Moody


class Wrong(Lengths):
    """Answers something that is not one row per text of the promised dimension."""

    def __init__(self, answer):
        self.answer = answer

    def embed_documents(self, texts, /):
        return self.answer(texts)


@pytest.mark.parametrize(
    "answer",
    [
        lambda texts: np.zeros((len(texts), 7), dtype=np.float32),
        lambda texts: np.zeros((0, 2), dtype=np.float32),
        lambda texts: None,
        lambda texts: [],
        lambda texts: np.full((len(texts), 2), np.nan, dtype=np.float32),
    ],
    ids=["other dimension", "no rows", "None", "a list", "not a number"],
)
def test_nonsense_is_set_aside_and_nothing_is_lost(tmp_path, impatient, answer):
    path = tmp_path / "library.sqlite"
    with open_library(path, embedder=Lengths()) as library:
        library.open_context_governor("s").record("user", "mooring one", event_id="e1")
        assert library.flush(30)
    with open_library(path, embedder=Wrong(answer)) as library:
        governor = library.open_context_governor("s")
        governor.record("user", "mooring two", event_id="e2")
        assert governor.flush(30)
        assert [failed.event_id for failed in governor.status().quarantined] == ["e2"]
        assert [event.event_id for event in governor.history()] == ["e1", "e2"]
    with open_library(path, embedder=Lengths()) as library:
        governor = library.open_context_governor("s")
        assert governor.retry_failed("e2")
        assert governor.flush(30)
        assert {hit.event_id for hit in governor.recall("mooring")} == {"e1", "e2"}


def test_turns_go_on_while_the_embedder_hangs(governor, moody):
    moody.hang()
    governor.record("user", "first")
    assert moody.entered.wait(10)
    start = time.monotonic()
    for number in range(20):
        prompt = governor.prepare(f"question {number}", event_id=f"q{number}")
        assert prompt.messages[-1]["content"] == f"question {number}"
        governor.commit(f"answer {number}")
    assert time.monotonic() - start < 20
    assert governor.status().watermarks.recorded_through == 41
    assert governor.status().watermarks.indexed_through == 0
    moody.may_go_on.set()
    assert governor.flush(30)


def test_closing_does_not_wait_for_an_embedder_that_hangs(tmp_path, moody, impatient):
    path = tmp_path / "library.sqlite"
    moody.hang()
    library = open_library(path, embedder=moody)
    library.open_context_governor("s").record("user", "mooring one", event_id="e1")
    assert moody.entered.wait(10)
    start = time.monotonic()
    library.close()
    assert time.monotonic() - start < 5
    with open_library(path, embedder=Lengths()) as again:
        governor = again.open_context_governor("s")
        assert governor.flush(5), "its lease was given back"
        # the one that hung wakes up and finds that its work is no longer its own
        moody.may_go_on.set()
        governor.record("user", "mooring two", event_id="e2")
        assert governor.flush(5)
        assert again.stats().records == 2


def test_closing_while_indexing_loses_nothing(tmp_path, impatient):
    """What was not indexed waits in the outbox for whoever opens the library next."""
    path = tmp_path / "library.sqlite"
    stored = []
    for round_number in range(4):
        with open_library(path, embedder=Lengths()) as library:
            governor = library.open_context_governor(f"s{round_number % 2}")
            stored += [
                event.uid
                for event in governor.record_many(
                    {"role": "user", "content": f"mooring {round_number}/{number}"} for number in range(400)
                )
            ]
    with open_library(path, embedder=Lengths()) as library:
        assert library.flush(60)
        assert library.stats().records == library.stats().events == len(stored) == 1600
        assert library.stats().quarantined == 0


def test_an_embedder_that_fails_for_a_while_loses_nothing(governor, moody):
    """Fewer failures than the limit, and nobody notices."""
    failures = [RuntimeError("no memory")] * (indexer.MAX_ATTEMPTS - 1)
    embed = moody.embed_documents

    def sometimes(texts, /):
        if failures:
            raise failures.pop()
        return embed(texts)

    moody.embed_documents = sometimes
    governor.record("user", "mooring", event_id="e1")
    assert governor.flush(30)
    assert governor.status().quarantined == ()
    assert governor.recall("mooring")[0].event_id == "e1"


def test_a_worker_that_was_overtaken_changes_nothing(tmp_path, impatient, moody, monkeypatch):
    """Its lease expired while it was embedding; another did the work; what it brings is refused."""
    monkeypatch.setattr(indexer, "LEASE", 0.05)
    path = tmp_path / "library.sqlite"
    moody.hang()
    with open_library(path, embedder=moody) as slow:
        slow.open_context_governor("s").record("user", "mooring", event_id="e1")
        assert moody.entered.wait(10)
        with open_library(path, embedder=Moody()) as quick:
            assert quick.flush(10), "an expired lease is taken over"
            moody.may_go_on.set()
            governor = slow.open_context_governor("s")
            governor.record("user", "mooring again", event_id="e2")
            assert governor.flush(10)
            assert quick.stats().records == 2
            assert slow.open_context_governor("s").status().quarantined == ()


def test_two_libraries_in_one_process_share_the_work(tmp_path, impatient):
    path = tmp_path / "library.sqlite"
    with open_library(path, embedder=Lengths()) as one, open_library(path, embedder=Lengths()) as other:

        def write(library):
            governor = library.open_context_governor("s")
            for number in range(60):
                governor.record("user", f"mooring {number}")

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(write, (one, other)))
        assert one.flush(30)
        assert other.flush(30)
        assert one.stats().records == 120
        assert EventLog(one.database).quarantined() == []


@pytest.mark.parametrize(
    "count", [1_000, pytest.param(10_000, marks=[pytest.mark.exhaustive, pytest.mark.timeout(600)])]
)
def test_a_backlog_drains(tmp_path, count):
    """With the embedder that comes with the library; how fast is told by the benchmark."""
    path = tmp_path / "library.sqlite"
    with open_library(path, embedder=None) as library:
        library.runtime.indexer.close()
        governor = library.open_context_governor("s", token_budget=2_000)
        governor.record_many({"role": "user", "content": f"the mooring is berth {n}"} for n in range(count))
        assert governor.status().pending == count
    with open_library(path, embedder=None) as library:
        governor = library.open_context_governor("s", token_budget=2_000)
        assert governor.flush(300)
        assert governor.status().watermarks.lag == 0
        assert library.stats().records == count
        assert library.stats().pending == 0
