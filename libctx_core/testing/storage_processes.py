"""The part of the storage suite about processes: several at once, and killed ones."""

import random
import time
from pathlib import Path

from libctx_core.testing import storage_children as children
from libctx_core.testing.processes import Child, address
from libctx_core.testing.storage_log import StorageTests, ids_of


class ProcessTests(StorageTests):
    """A killed process loses nothing that was acknowledged and blocks nobody."""

    kills = 4
    """Kills of a writer at random moments; raise it for a long run."""

    def test_two_processes_write_one_thread(self, tmp_path: Path) -> None:
        """All events are there, each writer's in order, places without gaps."""
        path, count = tmp_path / "store", 60
        self.open_log(path).close()
        writers = [Child(children.append_some, *address(self), str(path), prefix, str(count)) for prefix in "ab"]
        for writer in writers:
            assert writer.hear() == "ready"
        for writer in writers:
            writer.go()
        for writer in writers:
            writer.join()
        log = self.open_log(path)
        stored = log.events("s")
        assert [event.sequence for event in stored] == list(range(1, 2 * count + 1))
        for prefix in "ab":
            own = [event.event_id for event in stored if event.event_id.startswith(prefix)]
            assert own == [f"{prefix}-{number}" for number in range(count)]
        assert log.pending() == 2 * count
        log.close()

    def test_a_writer_killed_at_random_moments_loses_nothing_acknowledged(self, tmp_path: Path) -> None:
        """Each stored event has its outbox row; at most the one in flight is stored unacknowledged."""
        path, moments = tmp_path / "store", random.Random(7)  # noqa: S311 - a seed
        acknowledged: set[str] = set()
        for kill in range(self.kills):
            with Child(children.append_until_killed, *address(self), str(path), f"k{kill}") as writer:
                writer.hear()
                time.sleep(moments.uniform(0.0, 0.1))
                writer.kill()
            acknowledged.update(writer.heard)
            log = self.open_log(path)
            stored = [event.event_id for event in log.events("s")]
            assert acknowledged <= set(stored)
            assert len(set(stored)) == len(stored) <= len(acknowledged) + kill + 1
            assert [event.sequence for event in log.events("s")] == list(range(1, len(stored) + 1))
            assert log.pending() == len(stored)
            log.close()

    def test_a_writer_killed_before_its_commit_leaves_nothing(self, tmp_path: Path) -> None:
        """And the next writer does not wait for it."""
        path = tmp_path / "store"
        log = self.open_log(path)
        with Child(children.stall_in_a_transaction, *address(self), str(path)) as writer:
            assert writer.hear() == "stored, not committed"
            assert log.events("s") == []
            writer.kill()
        log.append("s", ("e1", "hello"))
        assert [event.event_id for event in log.events("s")] == ["e1"]
        assert log.pending() == 1
        log.close()

    def test_work_of_a_killed_process_is_taken_over(self, tmp_path: Path) -> None:
        """Nothing that was leased is lost with the one who leased it."""
        path = tmp_path / "store"
        log = self.open_log(path)
        log.append("s", ("e1", "one"), ("e2", "two"))
        with Child(children.stall_with_a_lease, *address(self), str(path)) as worker:
            assert worker.hear() == ["e1", "e2"]
            assert log.claim("parent", now=101.0) is None
            worker.kill()
        assert ids_of(log.claim("parent", now=102.0, dead=["child"])) == ["e1", "e2"]
        log.close()
