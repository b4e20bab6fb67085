"""A disk that fills up: what was acknowledged stays, what was not is not there, and work goes on after."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from libctx_core import LibraryOfContext
from libctx_core.errors import StoreFullError
from libctx_core.plugins import hookimpl
from libctx_core.store.database import Database


class SmallDisk:
    """Every connection may grow the file to so many pages."""

    def __init__(self, pages):
        self.pages = pages

    @hookimpl
    def sqlite_connect(self, connection):
        connection.pragma("max_page_count", self.pages)


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def fill(governor, size=1000):
    """Record until the disk is full; return the acknowledged ids and the one that failed."""
    acknowledged = []
    for number in range(10_000):
        try:
            acknowledged.append(governor.record("user", "x" * size, event_id=f"e{number}").event_id)
        except StoreFullError as error:
            assert "disk is full" in str(error)
            return acknowledged, f"e{number}"
    return pytest.fail("the disk was never full")


def test_what_was_acknowledged_stays_and_what_failed_is_not_there(tmp_path):
    path = tmp_path / "library.sqlite"
    with LibraryOfContext(path, embedder=False, tokenizer=len, plugins=[SmallDisk(200)]) as library:
        governor = library.open_context_governor("s")
        acknowledged, failed = fill(governor)
        assert [event.event_id for event in governor.history()] == acknowledged
    with LibraryOfContext(path, embedder=False, tokenizer=len) as library:
        governor = library.open_context_governor("s")
        assert [event.event_id for event in governor.history()] == acknowledged
        # with room again the same call stores the event, once
        assert governor.record("user", "x" * 1000, event_id=failed).sequence == len(acknowledged) + 1
        assert governor.record("user", "x" * 1000, event_id=failed).sequence == len(acknowledged) + 1
        assert library.flush(30)
        assert governor.status().watermarks.indexed_through == len(acknowledged) + 1


def test_a_batch_that_does_not_fit_is_not_stored_in_part(tmp_path):
    with LibraryOfContext(
        tmp_path / "library.sqlite", embedder=False, tokenizer=len, plugins=[SmallDisk(200)]
    ) as library:
        governor = library.open_context_governor("s")
        governor.record("user", "small", event_id="small")
        with pytest.raises(StoreFullError):
            governor.record_many({"role": "user", "content": "x" * 1000} for _ in range(2_000))
        assert [event.event_id for event in governor.history()] == ["small"]
        assert governor.status().pending <= 1
        assert governor.record("user", "still small").sequence == 2


def test_writers_that_meet_a_full_disk_fail_each_for_itself(tmp_path):
    """The one that does not fit takes nobody along, though they share a commit."""
    database = Database(tmp_path / "store", on_connect=lambda connection: connection.pragma("max_page_count", 100))
    database.write(lambda connection: connection.execute("CREATE TABLE t(name TEXT PRIMARY KEY, data BLOB)"))

    def store(worker):
        large = worker % 4 == 0
        data = b"x" * (1_000_000 if large else 100)
        try:
            database.write(lambda connection: connection.execute("INSERT INTO t VALUES(?, ?)", (f"w{worker}", data)))
        except StoreFullError:
            return f"w{worker}", False
        return f"w{worker}", True

    with ThreadPoolExecutor(16) as pool:
        outcome = dict(pool.map(store, range(64)))
    with database.read() as connection:
        stored = {name for (name,) in connection.execute("SELECT name FROM t")}
    assert {name for name, kept in outcome.items() if kept} == stored
    assert {name for name, kept in outcome.items() if not kept} == {f"w{worker}" for worker in range(0, 64, 4)}
    database.close()


def test_a_full_disk_is_no_reason_to_set_events_aside(tmp_path):
    """The indexer waits for room; it does not blame the events."""
    disk = SmallDisk(120)
    path = tmp_path / "library.sqlite"
    with LibraryOfContext(path, embedder=False, tokenizer=len, plugins=[disk]) as library:
        governor = library.open_context_governor("s")
        words = " ".join(f"word{number}" for number in range(400))
        for number in range(10_000):
            try:
                governor.record("user", words, event_id=f"e{number}")
            except StoreFullError:
                break
        wait_until(lambda: governor.status().indexer_error)
        assert "StoreFullError" in governor.status().indexer_error
        assert governor.status().quarantined == ()
        assert not library.flush(0.2)
        library.database.exclusive(lambda connection: connection.pragma("max_page_count", 1_000_000))
        assert library.flush(30)
        wait_until(lambda: governor.status().healthy)
        assert governor.recall("word7", k=1)


def test_a_backup_that_does_not_fit_leaves_nothing_behind(tmp_path, monkeypatch):
    from libctx_core.store import database as module

    original = module._copy

    def too_large(source, target):
        import apsw

        original(source, target)
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(module, "_copy", too_large)
    database = Database(tmp_path / "store")
    with pytest.raises(StoreFullError):
        database.backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    database.close()


@pytest.fixture
def tiny_disk(tmp_path):
    """A real file system of 2 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    if (
        sys.platform != "linux"
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.exhaustive
def test_a_file_system_that_is_really_full(tiny_disk):
    with LibraryOfContext(tiny_disk / "library.sqlite", tokenizer=len) as library:
        governor = library.open_context_governor("s")
        acknowledged, failed = fill(governor)
        assert [event.event_id for event in governor.history()] == acknowledged
        for _ in range(5):
            with pytest.raises(StoreFullError):
                governor.record("user", "x" * 1000, event_id=failed)
        with pytest.raises(StoreFullError):
            library.backup(tiny_disk / "copy.sqlite")
        assert not (tiny_disk / "copy.sqlite").exists()
        subprocess.run(["mount", "-o", "remount,size=32m", tiny_disk], check=True)
        assert governor.record("user", "x" * 1000, event_id=failed).sequence == len(acknowledged) + 1
        assert library.flush(60)
        assert library.database.exclusive(lambda c: c.execute("PRAGMA integrity_check").get) == "ok"
