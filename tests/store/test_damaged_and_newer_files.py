"""Damaged pages and files of a newer release: refused with what to do, and never changed."""

import pytest

from libctx_core import LibraryOfContext
from libctx_core.errors import NewerSchemaError, StoreCorruptError
from libctx_core.store.database import Database

PAGE = 4096


def library_of(path, events=300):
    with LibraryOfContext(path, embedder=False, tokenizer=len) as library:
        library.open_context_governor("s").record_many(
            {"role": "user", "content": f"event {number} " + "x" * 400, "event_id": f"e{number}"}
            for number in range(events)
        )
        assert library.flush(30)
        with library.database.read() as connection:
            return connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'event'").get


def damage(path, *, first, last=None):
    """Overwrite pages, counted from 1, with noise."""
    content = bytearray(path.read_bytes())
    end = len(content) if last is None else last * PAGE
    for at in range((first - 1) * PAGE, min(end, len(content))):
        content[at] = (at * 7 + 13) % 256
    path.write_bytes(content)


def test_a_damaged_page_is_named_as_such_where_it_is_read(tmp_path):
    path = tmp_path / "library.sqlite"
    root = library_of(path)
    damage(path, first=root, last=root)
    with LibraryOfContext(path, embedder=False, tokenizer=len) as library:
        governor = library.open_context_governor("s")
        for operation in (lambda: list(governor.history()), lambda: governor.record("user", "more")):
            with pytest.raises(StoreCorruptError, match="restore a backup, or export what is readable"):
                operation()


def test_what_does_not_touch_the_damage_goes_on(tmp_path):
    """Other threads' pages are readable, so that they can be exported."""
    path = tmp_path / "library.sqlite"
    with LibraryOfContext(path, embedder=False, tokenizer=len) as library:
        library.open_context_governor("first").record("user", "hello", event_id="f1")
        last = library.open_context_governor("last")
        last.record_many({"role": "user", "content": "x" * 3000} for _ in range(100))
        assert library.flush(30)
        with library.database.read() as connection:
            uid = connection.execute("SELECT max(uid) FROM event").get
            pages = [
                page
                for page, name in connection.execute("SELECT pageno, name FROM dbstat WHERE name = 'event'")
                if page > 20
            ]
        assert uid == 101
    for page in pages[len(pages) // 2 :]:
        damage(path, first=page, last=page)
    with LibraryOfContext(path, embedder=False, tokenizer=len) as library:
        assert [event.event_id for event in library.open_context_governor("first").history()] == ["f1"]
        with pytest.raises(StoreCorruptError):
            list(library.open_context_governor("last").history())


def test_a_damaged_schema_is_reported_at_opening(tmp_path):
    path = tmp_path / "library.sqlite"
    library_of(path, events=5)
    content = bytearray(path.read_bytes())
    content[100:400] = b"\xff" * 300
    path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(StoreCorruptError):
        LibraryOfContext(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("component", ["owners", "events", "records", "index"])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_component_is_refused_and_the_file_left_as_it_was(tmp_path, component, read_only):
    path = tmp_path / "library.sqlite"
    library_of(path, events=3)
    raise_version(path, component)
    before = path.read_bytes()
    with pytest.raises(NewerSchemaError, match="upgrade libctx-core") as caught:
        LibraryOfContext(path, embedder=False, read_only=read_only)
    assert caught.value.component == component
    assert caught.value.found == caught.value.supported + 7
    assert path.read_bytes() == before


def test_a_file_that_is_newer_in_all_its_parts_is_refused(tmp_path):
    path = tmp_path / "library.sqlite"
    library_of(path, events=3)
    raise_version(path, None)
    with pytest.raises(NewerSchemaError):
        LibraryOfContext(path, embedder=False)


def test_a_part_this_release_does_not_know_is_no_obstacle(tmp_path):
    """A plugin keeps tables of its own in the file; it need not be installed to read the rest."""
    path = tmp_path / "library.sqlite"
    library_of(path, events=3)
    database = Database(path)
    database.write(lambda connection: connection.execute("INSERT INTO schema_component VALUES('a-plugin', 9)"))
    database.close()
    with LibraryOfContext(path, embedder=False, tokenizer=len) as library:
        assert len(list(library.open_context_governor("s").history())) == 3


def raise_version(path, component):
    database = Database(path)
    database.write(
        lambda connection: connection.execute(
            "UPDATE schema_component SET version = version + 7 WHERE ?1 IS NULL OR name = ?1", (component,)
        )
    )
    database.close()
