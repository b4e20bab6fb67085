"""An event that cannot be indexed is tried, set aside and listed; it holds nobody up."""

import itertools

import pytest

from libctx_core.errors import EventNotFoundError
from libctx_core.governor import indexer
from libctx_core.models import Watermarks
from tests.faults.children import open_library


def ids(hits):
    return {hit.event_id for hit in hits}


def test_a_poisoned_event_is_set_aside_and_the_rest_is_searchable(governor):
    governor.record_many(
        {"role": "user", "content": "poison" if number == 3 else f"mooring {number}", "event_id": f"e{number}"}
        for number in range(8)
    )
    assert governor.flush(30)
    status = governor.status()
    assert status.watermarks == Watermarks(8, 8, 8)
    (failed,) = status.quarantined
    assert (failed.event_id, failed.sequence, failed.attempts) == ("e3", 4, indexer.MAX_ATTEMPTS)
    assert not status.healthy
    assert ids(governor.recall("mooring", k=20)) == {f"e{number}" for number in range(8)} - {"e3"}


def test_the_error_is_named_without_the_words_it_was_about(governor, library):
    governor.record("user", "poison in my private words", event_id="e1")
    assert governor.flush(30)
    assert governor.status().quarantined[0].error == "ValueError"
    assert "private" not in str(governor.status())


def test_events_after_it_do_not_wait_for_its_attempts(governor, monkeypatch):
    """Its backoff is its own: what comes later is searchable at once, and only the marks wait."""
    monkeypatch.setattr(indexer, "BACKOFF", 30.0)
    governor.record("user", "mooring one", event_id="e1")
    assert governor.flush(30)
    governor.record("user", "poison", event_id="e2")
    governor.record("user", "mooring three", event_id="e3")
    assert not governor.flush(1.0)
    assert ids(governor.recall("mooring", k=20)) == {"e1", "e3"}
    assert governor.status().watermarks == Watermarks(3, 1, 1)
    assert governor.status().pending == 1


def test_other_threads_do_not_wait_either(library, governor, monkeypatch):
    monkeypatch.setattr(indexer, "BACKOFF", 30.0)
    governor.record("user", "poison")
    other = library.open_context_governor("other")
    other.record("user", "mooring one", event_id="o1")
    assert other.flush(10)
    assert ids(other.recall("mooring")) == {"o1"}


def test_attempts_are_spaced_wider_and_wider(governor, moody, monkeypatch):
    monkeypatch.setattr(indexer, "BACKOFF", 0.05)
    governor.record("user", "poison")
    assert governor.flush(30)
    times = [at for at, texts in moody.calls if texts == ["poison"]]
    assert len(times) == indexer.MAX_ATTEMPTS
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    for attempt, gap in enumerate(gaps):
        # half of the nominal pause is the least that jitter leaves
        assert gap >= 0.5 * 0.05 * 2**attempt


def test_what_was_set_aside_can_be_tried_again(governor, moody):
    governor.record("user", "poison in the mooring", event_id="e1")
    assert governor.flush(30)
    moody.poison = None
    assert governor.retry_failed("e1")
    assert governor.flush(30)
    assert governor.status().quarantined == ()
    assert ids(governor.recall("mooring")) == {"e1"}
    assert not governor.retry_failed("e1")


def test_what_fails_again_is_set_aside_again(governor):
    governor.record("user", "poison", event_id="e1")
    assert governor.flush(30)
    assert governor.retry_failed("e1")
    assert governor.flush(30)
    assert [failed.attempts for failed in governor.status().quarantined] == [indexer.MAX_ATTEMPTS]


def test_only_what_exists_can_be_tried_again(governor):
    governor.record("user", "mooring", event_id="e1")
    assert governor.flush(30)
    assert not governor.retry_failed("e1")
    with pytest.raises(EventNotFoundError):
        governor.retry_failed("e2")


def test_an_amendment_is_a_cure(governor):
    governor.record("user", "poison in the mooring", event_id="e1")
    assert governor.flush(30)
    governor.amend("e1", "the mooring")
    assert governor.flush(30)
    assert governor.status().quarantined == ()
    assert ids(governor.recall("mooring")) == {"e1"}


def test_quarantine_outlives_the_process(tmp_path, moody, impatient):
    path = tmp_path / "kept.sqlite"
    with open_library(path, embedder=moody) as library:
        library.open_context_governor("s").record("user", "poison", event_id="e1")
        assert library.flush(30)
    moody.poison = None
    with open_library(path, embedder=moody) as library:
        governor = library.open_context_governor("s")
        assert [failed.event_id for failed in governor.status().quarantined] == ["e1"]
        assert governor.retry_failed("e1")
        assert governor.flush(30)
        assert governor.status().healthy


def test_a_redacted_event_is_no_longer_listed(governor):
    governor.record("user", "poison", event_id="e1")
    assert governor.flush(30)
    governor.redact("e1")
    assert governor.status().quarantined == ()
