"""What a path may be, who may read the file, and what is said where it cannot be used."""

import os
import sqlite3
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from libctx_core import LibraryOfContext
from libctx_core.errors import (
    ForeignDatabaseError,
    LibctxError,
    StoreClosedError,
    StoreCorruptError,
    StoreMissingError,
    StorePathError,
    StoreReadOnlyError,
)
from libctx_core.store.database import Database
from libctx_core.testing.processes import Child
from tests.store import children

needs_modes = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no file modes")


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


@pytest.fixture
def open_mask():
    """A umask that would let everybody read and write."""
    before = os.umask(0)
    yield
    os.umask(before)


# -- for the owner only -----------------------------------------------------------


@needs_modes
def test_file_log_and_folder_are_for_their_owner_only(tmp_path, open_mask):
    path = tmp_path / "private" / "library.sqlite"
    with LibraryOfContext(path, embedder=False) as library:
        library.open_context_governor("s").record("user", "hello")
        assert mode(path.parent) == 0o700
        for suffix in ("", "-wal", "-shm"):
            assert mode(f"{path}{suffix}") == 0o600
        library.backup(tmp_path / "copy.sqlite")
    assert mode(tmp_path / "copy.sqlite") == 0o600


@needs_modes
def test_the_mode_is_set_before_sqlite_sees_the_file(tmp_path, open_mask):
    """The hook runs on the first connection, before a byte is written."""
    path = tmp_path / "private" / "library.sqlite"
    seen = []
    Database(path, on_connect=lambda connection: seen.append((mode(path), path.stat().st_size))).close()
    assert seen[0] == (0o600, 0)


@needs_modes
def test_a_library_left_open_to_others_is_closed_to_them(tmp_path):
    path = tmp_path / "library.sqlite"
    Database(path).close()
    path.chmod(0o666)
    database = Database(path)
    database.write(lambda connection: connection.pragma("user_version", 1))
    for suffix in ("", "-wal", "-shm"):
        assert mode(f"{path}{suffix}") == 0o600
    database.close()


@needs_modes
def test_an_existing_folder_keeps_its_mode(tmp_path):
    tmp_path.chmod(0o755)
    Database(tmp_path / "library.sqlite").close()
    assert mode(tmp_path) == 0o755


# -- no place for a library -------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
def test_a_directory_is_no_library(tmp_path, read_only):
    with pytest.raises(StorePathError, match="directory; name a file"):
        LibraryOfContext(tmp_path, read_only=read_only)


def test_a_missing_file_is_not_created_for_reading(tmp_path):
    path = tmp_path / "missing.sqlite"
    with pytest.raises(StoreMissingError, match="does not exist") as caught:
        LibraryOfContext(path, read_only=True)
    assert isinstance(caught.value, FileNotFoundError)
    assert not path.exists()


def test_a_file_below_a_file_has_no_place(tmp_path):
    (tmp_path / "file").write_text("I am a file")
    with pytest.raises(StorePathError):
        LibraryOfContext(tmp_path / "file" / "library.sqlite")


@pytest.mark.parametrize("name", ["x" * 300, "nul\0nul"])
def test_a_name_the_system_refuses_is_an_error_of_ours(tmp_path, name):
    with pytest.raises(StorePathError):
        LibraryOfContext(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_no_library(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorePathError, match="no regular file"):
        LibraryOfContext(tmp_path / "pipe")


# -- somebody else's file ---------------------------------------------------------


@needs_modes
@pytest.mark.parametrize("read_only", [False, True])
def test_a_foreign_database_is_refused_and_left_as_it_was(tmp_path, read_only):
    path = tmp_path / "foreign.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs(x)")
    connection.commit()
    connection.close()
    path.chmod(0o644)
    before = path.read_bytes()
    with pytest.raises(ForeignDatabaseError, match="name another file"):
        LibraryOfContext(path, read_only=read_only)
    assert path.read_bytes() == before
    assert mode(path) == 0o644
    assert [file.name for file in tmp_path.iterdir()] == ["foreign.sqlite"]


@pytest.mark.parametrize("size", [10, 100, 5000])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(tmp_path, size):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"plain text " * (size // 11 + 1))
    before = path.read_bytes()
    with pytest.raises(ForeignDatabaseError, match="not a SQLite database"):
        LibraryOfContext(path)
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_library(tmp_path):
    """As one made by `touch`, or by a temporary-file function."""
    with tempfile.NamedTemporaryFile(dir=tmp_path, suffix=".sqlite", delete=False) as file:
        pass
    with LibraryOfContext(file.name, embedder=False) as library:
        assert library.open_context_governor("s").record("user", "hello").sequence == 1


@pytest.mark.parametrize("keep", [100, 4096, 20_000])
def test_a_file_cut_short_is_reported_as_damaged(tmp_path, keep):
    path = tmp_path / "library.sqlite"
    with LibraryOfContext(path, embedder=False) as library:
        library.open_context_governor("s").record_many({"role": "user", "content": "x" * 500} for _ in range(200))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises((StoreCorruptError, ForeignDatabaseError)), LibraryOfContext(path, embedder=False) as library:
        list(library.open_context_governor("s").history())


# -- no right to write ------------------------------------------------------------


@pytest.fixture
def shared_folder():
    """A folder that a process without privileges can reach."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _library_for(folder, name, *, file_mode, folder_mode):
    path = folder / name / "library.sqlite"
    with LibraryOfContext(path, embedder=False) as library:
        library.open_context_governor("s").record("user", "hello", event_id="e1")
        assert library.flush(30)
    if os.geteuid() == 0:
        os.chown(path, children.NOBODY, -1)
        os.chown(path.parent, children.NOBODY, -1)
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)
    return path


@needs_modes
@pytest.mark.parametrize(
    ("name", "file_mode", "folder_mode", "writing", "reading"),
    [
        ("file", 0o400, 0o700, "may not be written; open it with read_only=True", ["hello"]),
        ("folder", 0o600, 0o500, "its folder may not be written", "its folder may not be written"),
        ("both", 0o400, 0o500, "its folder may not be written", "its folder may not be written"),
    ],
)
def test_a_library_that_may_not_be_written_says_what_is_needed(
    shared_folder, name, file_mode, folder_mode, writing, reading
):
    path = _library_for(shared_folder, name, file_mode=file_mode, folder_mode=folder_mode)
    with Child(children.open_without_privileges, str(path)) as child:
        answers = dict(child.join())
    path.parent.chmod(0o700)
    assert answers["write"][0] == "store_read_only"
    assert writing in answers["write"][1]
    if isinstance(reading, str):
        assert answers["read"][0] == "store_read_only"
        assert reading in answers["read"][1]
    else:
        assert answers["read"] == reading


def test_a_library_open_for_reading_reads_everything_and_writes_nothing(tmp_path):
    path = tmp_path / "library.sqlite"
    with LibraryOfContext(path) as library:
        library.open_context_governor("s").record("user", "the mooring is berth 27", event_id="e1")
        assert library.flush(30)
    with LibraryOfContext(path, read_only=True) as library:
        governor = library.open_context_governor("s")
        assert [event.event_id for event in governor.history()] == ["e1"]
        assert governor.recall("mooring")[0].event_id == "e1"
        assert "berth 27" in str(governor.build_prompt(focus="mooring").messages)
        writes = [
            lambda: governor.record("user", "more"),
            lambda: governor.prepare("more"),
            lambda: governor.redact("e1"),
            lambda: governor.amend("e1", "less"),
            lambda: governor.protect_event("e1"),
            lambda: library.shelve("a book"),
            lambda: library.delete_thread("s"),
        ]
        for write in writes:
            with pytest.raises(StoreReadOnlyError):
                write()
    with LibraryOfContext(path, embedder=False) as library:
        assert [event.text for event in library.open_context_governor("s").history()] == ["the mooring is berth 27"]


def test_a_reader_follows_a_writer(tmp_path):
    path = tmp_path / "library.sqlite"
    with LibraryOfContext(path, embedder=False) as writer:
        writer.open_context_governor("s").record("user", "first")
        with LibraryOfContext(path, embedder=False, read_only=True) as reader:
            governor = reader.open_context_governor("s")
            writer.open_context_governor("s").record("user", "second")
            assert [event.text for event in governor.history()] == ["first", "second"]


# -- closed -----------------------------------------------------------------------


def test_a_closed_library_says_so_for_every_operation(tmp_path):
    library = LibraryOfContext(tmp_path / "library.sqlite", embedder=False)
    governor = library.open_context_governor("s")
    governor.record("user", "hello", event_id="e1")
    library.close()
    library.close()
    operations = [
        lambda: governor.record("user", "more"),
        lambda: governor.prepare("more"),
        lambda: list(governor.history()),
        lambda: governor.status(),
        lambda: governor.recall("hello"),
        lambda: library.stats(),
        lambda: library.vacuum(),
        lambda: library.backup(tmp_path / "copy.sqlite"),
    ]
    for operation in operations:
        with pytest.raises(StoreClosedError, match="is closed"):
            operation()
    assert not (tmp_path / "copy.sqlite").exists()


@pytest.mark.parametrize("make", [lambda path: path, lambda path: path.mkdir() or path])
def test_errors_of_the_store_are_ours_and_carry_the_path(tmp_path, make):
    path = make(tmp_path / "place")
    try:
        LibraryOfContext(path, read_only=True)
    except LibctxError as error:
        assert error.path == str(path)
        assert error.code.startswith("store_")
        assert isinstance(error, OSError)
    else:
        pytest.fail("opened what is not there")
