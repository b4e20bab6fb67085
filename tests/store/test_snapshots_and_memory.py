"""Readers see one moment; a library in memory behaves like a file."""

from concurrent.futures import ThreadPoolExecutor

import apsw
import pytest

from libctx_core import LibraryOfContext
from libctx_core.errors import StorePathError
from libctx_core.store.connection import load_vector_extension
from libctx_core.store.database import Database


@pytest.fixture
def database(tmp_path):
    opened = Database(tmp_path / "store")
    opened.write(lambda connection: connection.execute("CREATE TABLE t(a INTEGER, b INTEGER)").fetchall())
    opened.write(lambda connection: connection.execute("INSERT INTO t VALUES(0, 0)"))
    yield opened
    opened.close()


def both(connection):
    return (connection.execute("SELECT max(a) FROM t").get, connection.execute("SELECT min(b) FROM t").get)


# -- snapshots --------------------------------------------------------------------


def test_two_statements_of_one_read_never_see_two_moments(database):
    """A writer keeps both columns equal; a reader that asks for them apart finds them equal."""
    stop = []

    def write():
        number = 0
        while not stop:
            number += 1
            database.write(lambda c, n=number: c.execute("UPDATE t SET a = ?, b = ?", (n, n)), durable=False)

    with ThreadPoolExecutor(5) as pool:
        writer = pool.submit(write)

        def read():
            seen = []
            for _ in range(200):
                with database.read() as connection:
                    seen.append(both(connection))
            return seen

        readers = [pool.submit(read) for _ in range(4)]
        seen = [pair for reader in readers for pair in reader.result()]
        stop.append(True)
        writer.result()
    assert all(a == b for a, b in seen)
    assert len(set(seen)) > 1


def test_a_reader_is_not_blocked_by_a_writer_and_does_not_see_it(database):
    with ThreadPoolExecutor(1) as pool:

        def work(connection):
            connection.execute("UPDATE t SET a = 7, b = 7")
            return pool.submit(look).result(timeout=30)

        def look():
            with database.read() as connection:
                return both(connection)

        assert database.write(work) == (0, 0)
    assert look() == (7, 7)


def test_a_reader_cannot_write(database):
    with database.read() as connection, pytest.raises(apsw.ReadOnlyError):
        connection.execute("UPDATE t SET a = 1")


@pytest.mark.parametrize("leave", ["normally", "with an error", "with rows unread"])
def test_a_reader_used_again_sees_the_present(database, leave):
    """Whatever the one before left behind on the connection."""
    database.write(lambda connection: connection.execute("INSERT INTO t VALUES(1, 1)"))
    kept = []
    for _ in range(3):
        try:
            with database.read() as connection:
                kept.append(connection.execute("SELECT a FROM t"))
                next(kept[-1])
                if leave == "with an error":
                    raise LookupError
                if leave == "normally":
                    kept.pop().close()
        except LookupError:
            pass
    database.write(lambda connection: connection.execute("UPDATE t SET a = 5, b = 5"))
    with database.read() as connection:
        assert both(connection) == (5, 5)
    assert database.truncate_wal()


def test_many_readers_at_once_are_served(database):
    with ThreadPoolExecutor(32) as pool:

        def read(_):
            with database.read() as connection:
                return both(connection)

        assert set(pool.map(read, range(300))) == {(0, 0)}


# -- the whole file ---------------------------------------------------------------


def test_a_backup_while_others_write_is_of_one_moment(database, tmp_path):
    stop = []

    def write():
        number = 0
        while not stop:
            number += 1
            database.write(lambda c, n=number: c.execute("UPDATE t SET a = ?, b = ?", (n, n)), durable=False)
            database.write(lambda c: c.execute("INSERT INTO t SELECT a, b FROM t LIMIT 1"), durable=False)

    with ThreadPoolExecutor(2) as pool:
        writer = pool.submit(write)
        for number in range(5):
            database.backup(tmp_path / f"copy{number}")
        stop.append(True)
        writer.result()
    for number in range(5):
        copy = apsw.Connection(str(tmp_path / f"copy{number}"))
        assert copy.execute("PRAGMA integrity_check").get == "ok"
        assert copy.execute("SELECT count(*) FROM t WHERE a <> b").get == 0
        assert copy.execute("SELECT count(DISTINCT a) FROM t").get == 1
        copy.close()


def test_a_backup_never_overwrites(database, tmp_path):
    (tmp_path / "copy").write_text("mine")
    with pytest.raises(StorePathError, match="never overwrites"):
        database.backup(tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "mine"


def test_a_backup_is_a_library_with_its_pending_work(tmp_path):
    with LibraryOfContext(tmp_path / "library", tokenizer=len, embedder=False) as library:
        library.open_context_governor("s").record("user", "the mooring is berth 27", event_id="e1")
        library.backup(tmp_path / "copy")
    with LibraryOfContext(tmp_path / "copy", tokenizer=len, embedder=False) as copy:
        assert copy.flush(30)
        assert copy.open_context_governor("s").recall("mooring")[0].event_id == "e1"


def test_vacuum_returns_pages_and_keeps_everything(tmp_path):
    with LibraryOfContext(tmp_path / "library", tokenizer=len, embedder=False) as library:
        library.open_context_governor("gone").record_many({"role": "user", "content": "x" * 5000} for _ in range(200))
        library.open_context_governor("kept").record("user", "the mooring is berth 27", event_id="e1")
        assert library.flush(30)
        library.delete_thread("gone")
        before = library.database.size()
        library.vacuum()
        assert library.database.size() < before / 2
        assert library.open_context_governor("kept").recall("mooring")[0].event_id == "e1"


def test_an_emptied_log_leaves_no_bytes_beside_the_file(database, tmp_path):
    assert (tmp_path / "store-wal").stat().st_size > 0
    assert database.truncate_wal()
    assert (tmp_path / "store-wal").stat().st_size == 0


# -- in memory --------------------------------------------------------------------


def test_a_library_in_memory_does_what_a_file_does():
    with LibraryOfContext(":memory:", tokenizer=len) as library:
        governor = library.open_context_governor("s", token_budget=2000)
        governor.prepare("The mooring is berth 27.", event_id="u1")
        governor.commit("Noted.", event_id="a1")
        assert governor.flush(30)
        assert governor.recall("mooring")[0].event_id == "u1"
        assert governor.status().watermarks.indexed_through == 2
        governor.redact("u1")
        assert [event.text for event in governor.history()] == ["", "Noted."]
        library.vacuum()
        assert library.database.truncate_wal()


def test_threads_share_a_library_in_memory():
    with LibraryOfContext(":memory:", tokenizer=len, embedder=False) as library:
        governor = library.open_context_governor("s", token_budget=4000)

        def work(worker):
            for number in range(20):
                governor.record("user", f"{worker} says {number}", event_id=f"{worker}-{number}")
                governor.build_prompt()
                assert governor.open_event(f"{worker}-{number}").sequence > 0

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert [event.sequence for event in governor.history()] == list(range(1, 161))
        assert library.flush(30)


def test_two_libraries_in_memory_are_strangers():
    with LibraryOfContext(":memory:", tokenizer=len) as one, LibraryOfContext(":memory:", tokenizer=len) as other:
        one.open_context_governor("s").record("user", "hello")
        assert list(other.open_context_governor("s").history()) == []


def test_a_library_in_memory_can_be_kept(tmp_path):
    with LibraryOfContext(":memory:", tokenizer=len, embedder=False) as library:
        library.open_context_governor("s").record("user", "hello", event_id="e1")
        library.backup(tmp_path / "kept")
    with LibraryOfContext(tmp_path / "kept", tokenizer=len, embedder=False) as kept:
        assert [event.event_id for event in kept.open_context_governor("s").history()] == ["e1"]


# -- the vector extension ---------------------------------------------------------


def test_sqlite_vec_really_loads_and_computes(database):
    with database.read() as connection:
        assert connection.execute("SELECT vec_version()").get.startswith("v0.1.9")
        assert connection.execute("SELECT vec_distance_l2('[0, 3]', '[4, 0]')").get == 5.0
    connection = apsw.Connection(":memory:")
    assert load_vector_extension(connection) is not None
    connection.execute("CREATE VIRTUAL TABLE v USING vec0(embedding float[2])")
    connection.execute("INSERT INTO v(rowid, embedding) VALUES(1, '[1, 0]'), (2, '[0, 1]')")
    assert connection.execute("SELECT rowid FROM v WHERE embedding MATCH '[0.1, 0.9]' AND k = 1").get == 2
    connection.close()


def test_extensions_cannot_be_loaded_from_statements(database):
    """The library loads one by its path; text that reaches SQL loads none."""
    with database.read() as connection, pytest.raises(apsw.SQLError):
        connection.execute("SELECT load_extension('anything')").fetchall()
