"""The part of the storage suite about work to be done: leases, fencing, watermarks, quarantine."""

from pathlib import Path

import pytest

from libctx_core.models import Watermarks
from libctx_core.testing.storage_log import EventLog, StorageTests, ids_of


class OutboxTests(StorageTests):
    """Work is done once by whoever holds its lease, and nothing is forgotten."""

    def three(self, path: Path) -> EventLog:
        """Return a log with three events that wait to be indexed."""
        log = self.open_log(path / "store")
        log.append("s", ("e1", "one"), ("e2", "two"), ("e3", "three"))
        return log

    # -- leases ---------------------------------------------------------------

    def test_two_workers_share_the_work(self, tmp_path: Path) -> None:
        """What one has leased is not offered to the other."""
        log = self.three(tmp_path)
        assert ids_of(log.claim("ann", limit=2)) == ["e1", "e2"]
        assert ids_of(log.claim("bob")) == ["e3"]
        assert log.claim("cyd") is None
        assert sorted(log.owners()) == ["ann", "bob"]
        log.close()

    def test_finished_work_leaves_the_outbox(self, tmp_path: Path) -> None:
        """And is not offered again."""
        log = self.three(tmp_path)
        claim = log.claim("ann")
        assert claim is not None
        log.complete(claim)
        assert log.pending() == 0
        assert log.claim("ann") is None
        log.close()

    def test_a_lease_expires(self, tmp_path: Path) -> None:
        """Not before its time, and then anybody may take over."""
        log = self.three(tmp_path)
        log.claim("ann", now=100.0, lease=30.0)
        assert log.claim("bob", now=129.0) is None
        assert ids_of(log.claim("bob", now=131.0)) == ["e1", "e2", "e3"]
        log.close()

    def test_a_dead_owner_is_succeeded_at_once(self, tmp_path: Path) -> None:
        """Whoever is proven dead need not be waited for."""
        log = self.three(tmp_path)
        log.claim("ann", now=100.0)
        assert ids_of(log.claim("bob", now=101.0, dead=["ann"])) == ["e1", "e2", "e3"]
        assert log.owners() == ["bob"]
        log.close()

    def test_an_owner_may_lease_again_what_it_gave_up(self, tmp_path: Path) -> None:
        """A worker whose batch failed on a full disk must not wait for its own lease."""
        log = self.three(tmp_path)
        log.claim("ann", now=100.0)
        assert ids_of(log.claim("ann", now=101.0)) == ["e1", "e2", "e3"]
        log.close()

    def test_a_busy_thread_does_not_keep_the_others_waiting(self, tmp_path: Path) -> None:
        """Claims go round: the next begins beyond the thread of the last."""
        log = self.open_log(tmp_path / "store")
        for session in ("busy", "quiet"):
            log.append(session, *((f"{session}-{number}", "text") for number in range(3)))
        first = log.claim("ann", limit=2)
        assert ids_of(first) == ["busy-0", "busy-1"]
        assert first is not None
        log.complete(first)
        assert ids_of(log.claim("ann", limit=2, beyond=log.thread("busy"))) == ["quiet-0", "quiet-1"]
        assert ids_of(log.claim("bob", limit=9, beyond=log.thread("busy"))) == ["quiet-2", "busy-2"]
        log.close()

    # -- fencing --------------------------------------------------------------

    def test_an_obsolete_token_completes_nothing(self, tmp_path: Path) -> None:
        """A worker that was taken for dead and wakes up again changes nothing."""
        log = self.three(tmp_path)
        late = log.claim("ann", now=100.0)
        now = log.claim("bob", now=200.0)
        assert late is not None
        assert now is not None
        log.complete(late)
        log.postpone(late, "e1", not_before=999.0)
        log.quarantine(late, "e2", error="late")
        assert log.pending() == 3
        assert log.quarantined() == []
        log.complete(now)
        assert log.pending() == 0
        log.close()

    def test_the_same_owner_is_fenced_from_its_own_past(self, tmp_path: Path) -> None:
        """The token decides, not the name."""
        log = self.three(tmp_path)
        late = log.claim("ann", now=100.0, token="first")  # noqa: S106 - a lease, no secret
        log.claim("ann", now=101.0, token="second")  # noqa: S106
        assert late is not None
        log.complete(late)
        assert log.pending() == 3
        log.close()

    def test_an_event_amended_meanwhile_is_done_again(self, tmp_path: Path) -> None:
        """What was embedded is no longer what the event says."""
        log = self.three(tmp_path)
        claim = log.claim("ann")
        assert claim is not None
        log.amend("s", "e2", "two, corrected")
        log.complete(claim)
        again = log.claim("ann", now=1.0)
        assert again is not None
        assert [(event.event_id, event.content) for _, event, _ in again.items] == [("e2", "two, corrected")]
        log.close()

    def test_an_event_redacted_meanwhile_is_not_done_at_all(self, tmp_path: Path) -> None:
        """Its row is gone with its words."""
        log = self.three(tmp_path)
        claim = log.claim("ann")
        assert claim is not None
        log.redact("s", "e2")
        assert log.pending() == 2
        log.complete(claim)
        assert log.claim("ann", now=1.0) is None
        log.close()

    def test_a_deleted_thread_takes_its_work_along(self, tmp_path: Path) -> None:
        """Nothing is left that names an event which is no longer there."""
        log = self.three(tmp_path)
        log.append("other", ("o1", "stays"))
        claim = log.claim("ann", limit=1)
        assert claim is not None
        log.quarantine(claim, "e1", error="poisoned")
        log.delete("s")
        assert ids_of(log.claim("bob", now=1.0)) == ["o1"]
        assert log.quarantined() == []
        log.close()

    # -- watermarks -----------------------------------------------------------

    def test_watermarks_follow_the_first_event_that_waits(self, tmp_path: Path) -> None:
        """Work finished out of order does not move them over what is still waiting."""
        log = self.three(tmp_path)
        assert log.watermarks("s") == Watermarks(3, 0, 0)
        claim = log.claim("ann")
        assert claim is not None
        log.complete(claim, "e2")
        assert log.watermarks("s") == Watermarks(3, 0, 0)
        log.complete(claim, "e1")
        assert log.watermarks("s") == Watermarks(3, 2, 2)
        log.complete(claim, "e3")
        assert log.watermarks("s") == Watermarks(3, 3, 3)
        log.close()

    def test_watermarks_of_an_empty_thread_are_zero(self, tmp_path: Path) -> None:
        """Nothing recorded, nothing behind."""
        log = self.open_log(tmp_path / "store")
        assert log.watermarks("nobody") == Watermarks(0, 0, 0)
        log.close()

    def test_watermarks_pass_over_what_is_set_aside(self, tmp_path: Path) -> None:
        """One poisoned event must not freeze its thread."""
        log = self.three(tmp_path)
        claim = log.claim("ann")
        assert claim is not None
        log.quarantine(claim, "e1", error="ValueError")
        log.complete(claim)
        assert log.watermarks("s") == Watermarks(3, 3, 3)
        log.close()

    def test_watermarks_do_not_fall_back(self, tmp_path: Path) -> None:
        """An event that is amended or tried again waits without undoing what the marks said."""
        log = self.three(tmp_path)
        claim = log.claim("ann")
        assert claim is not None
        log.quarantine(claim, "e1", error="ValueError")
        log.complete(claim)
        assert log.retry("s", "e1")
        log.amend("s", "e2", "two, corrected")
        assert log.watermarks("s") == Watermarks(3, 3, 3)
        assert log.pending() == 2
        log.close()

    # -- failures -------------------------------------------------------------

    def test_a_failed_attempt_is_counted_and_waits(self, tmp_path: Path) -> None:
        """It comes back at its time, with the number of attempts; others go on meanwhile."""
        log = self.three(tmp_path)
        claim = log.claim("ann", now=100.0)
        assert claim is not None
        log.postpone(claim, "e1", not_before=110.0)
        log.complete(claim)
        assert log.pending() == 1
        assert log.claim("ann", now=109.0) is None
        again = log.claim("bob", now=111.0)
        assert again is not None
        assert [attempts for _, _, attempts in again.items] == [1]
        log.close()

    def test_what_is_set_aside_is_listed_with_its_error(self, tmp_path: Path) -> None:
        """With its place and the number of attempts, and it is not offered again."""
        log = self.three(tmp_path)
        for now in (100.0, 200.0):
            claim = log.claim("ann", now=now, limit=1)
            assert claim is not None
            log.postpone(claim, "e1", not_before=now)
        claim = log.claim("ann", now=300.0, limit=1)
        assert claim is not None
        log.quarantine(claim, "e1", error="ValueError: no vector")
        (found,) = log.quarantined()
        assert (found.event_id, found.sequence, found.attempts, found.error) == ("e1", 1, 3, "ValueError: no vector")
        assert ids_of(log.claim("ann", now=400.0)) == ["e2", "e3"]
        log.close()

    def test_what_is_set_aside_can_be_tried_again(self, tmp_path: Path) -> None:
        """Once, from the first attempt on."""
        log = self.three(tmp_path)
        claim = log.claim("ann", limit=1)
        assert claim is not None
        log.quarantine(claim, "e1", error="ValueError")
        assert log.retry("s", "e1")
        assert not log.retry("s", "e1")
        assert log.quarantined() == []
        again = log.claim("bob", now=1.0, limit=1)
        assert again is not None
        assert [(event.event_id, attempts) for _, event, attempts in again.items] == [("e1", 0)]
        log.close()

    def test_amending_gives_an_event_a_new_chance(self, tmp_path: Path) -> None:
        """What could not be indexed may be able to say it differently."""
        log = self.three(tmp_path)
        claim = log.claim("ann", limit=1)
        assert claim is not None
        log.quarantine(claim, "e1", error="ValueError")
        log.amend("s", "e1", "one, readable")
        assert log.quarantined() == []
        assert "e1" in ids_of(log.claim("bob", now=1.0))
        log.close()

    @pytest.mark.parametrize("event_id", ["e1", "e3"])
    def test_retrying_what_is_not_set_aside_does_nothing(self, tmp_path: Path, event_id: str) -> None:
        """Neither for what waits nor for what is done."""
        log = self.three(tmp_path)
        claim = log.claim("ann", limit=1)
        assert claim is not None
        log.complete(claim)
        assert not log.retry("s", event_id)
        assert log.pending() == 2
        log.close()
