"""Several processes on one file, ours and strangers: nothing lost, no gap, no error."""

import itertools
import threading
import time

from libctx_core.testing.processes import Child
from tests.faults import children
from tests.faults.children import open_library


def test_two_processes_write_one_thread(tmp_path):
    """Their events interleave; both indexers share the work and index nothing twice."""
    path, count = tmp_path / "library.sqlite", 120
    with open_library(path) as library:
        governor = library.open_context_governor("shared")
        writers = [Child(children.write_thread, str(path), prefix, str(count)) for prefix in "ab"]
        for writer in writers:
            assert writer.hear() == "ready"
        for writer in writers:
            writer.go()
        for writer in writers:
            assert writer.join()[-1] == "done"
            assert not writer.complaints
        events = list(governor.history())
        assert [event.sequence for event in events] == list(range(1, 2 * count + 1))
        for prefix in "ab":
            own = [event.event_id for event in events if event.event_id.startswith(prefix)]
            assert own == [f"{prefix}-{number}" for number in range(count)]
        changes = sum(one.event_id[0] != other.event_id[0] for one, other in itertools.pairwise(events))
        assert changes > 4, "they took turns"
        assert library.flush(30)
        assert library.stats().records == 2 * count
        for prefix in "ab":
            assert f"{prefix}-77" in [hit.event_id for hit in governor.recall(f"word{prefix}77")]


def test_no_process_starves(tmp_path):
    """While one writes without a pause, another gets its turn every time."""
    path = tmp_path / "library.sqlite"
    with open_library(path) as library:
        governor = library.open_context_governor("shared")
        with Child(children.write_thread, str(path), "a", "100000") as writer:
            writer.hear()
            writer.go()
            waits = []
            for number in range(30):
                start = time.monotonic()
                governor.record("user", f"mine {number}")
                waits.append(time.monotonic() - start)
            writer.kill()
        assert max(waits) < 5


def test_a_stranger_that_reads_and_checkpoints_harms_nothing(tmp_path):
    path = tmp_path / "library.sqlite"
    with open_library(path) as library:
        governor = library.open_context_governor("s", token_budget=2_000)
        governor.record("user", "before", event_id="before")
        with Child(children.read_from_outside, str(path)) as stranger:
            stranger.hear()
            written = ["before"]
            finished = threading.Event()

            def write():
                while not finished.is_set():
                    written.append(governor.prepare(f"turn {len(written)}", event_id=f"e{len(written)}").event_id)

            writer = threading.Thread(target=write)
            writer.start()
            counts = stranger.join()[-1]
            finished.set()
            writer.join()
        assert counts == sorted(counts)
        assert [event.event_id for event in governor.history()] == written
        assert library.flush(60)
        assert governor.status().healthy
        assert library.database.exclusive(lambda c: c.execute("PRAGMA integrity_check").get) == "ok"


def test_a_stranger_that_keeps_a_snapshot_delays_nobody_for_long(tmp_path):
    """A redaction cannot empty the log while it is being read, says so, and goes on."""
    path = tmp_path / "library.sqlite"
    with open_library(path) as library:
        governor = library.open_context_governor("s")
        governor.record("user", "my number is 555-0100", event_id="e1")
        with Child(children.hold_a_snapshot, str(path)) as stranger:
            assert stranger.hear() == 1
            governor.record("user", "more", event_id="e2")
            start = time.monotonic()
            receipt = governor.redact("e1")
            governor.record("user", "and more", event_id="e3")
            assert time.monotonic() - start < 10
            assert not receipt.wal_truncated
            stranger.go()
            assert stranger.hear() == 1, "its snapshot did not move"
            stranger.kill()
        assert governor.redact("e2").wal_truncated
        assert b"555-0100" not in path.read_bytes() + (tmp_path / "library.sqlite-wal").read_bytes()
