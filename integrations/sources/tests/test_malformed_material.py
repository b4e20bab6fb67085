"""Bad material: one clear error each, and nothing half-stored."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from libctx_sources import (
    ClaudeExport,
    FileInput,
    GitInput,
    HtmlInput,
    LangChainLoader,
    LlamaIndexReader,
    LocomoFile,
    NotebookInput,
    OpenAIExport,
    TextInput,
    directories,
    reading,
)
from libctx_sources.choosing import input_for
from libctx_sources.directories import DirectoryInput, walk

from libctx_core.errors import (
    SourceChangedError,
    SourceError,
    SourceTooLargeError,
    SourceUnreadableError,
    SourceVanishedError,
)


def nothing_stored(database) -> bool:
    with database.read() as connection:
        counts = [connection.execute(f"SELECT count(*) FROM {table}").get for table in ("source", "record", "owner")]
    return counts == [0, 0, 0]


def refused(ingestion, database, value, kind=SourceUnreadableError) -> SourceError:
    with pytest.raises(kind) as caught:
        ingestion.ingest(value)
    assert nothing_stored(database)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("make", [OpenAIExport, ClaudeExport, LocomoFile, NotebookInput])
@pytest.mark.parametrize(
    "text",
    [
        '[{"mapping": {"a": ', "{", "[]", "{}", "null", "7", '"text"', "[1, 2]", '[{"mapping": 3}]',
        '[{"chat_messages": 3}]', '[{"chat_messages": [3]}]', '[{"conversation": 3}]', '[{"conversation": {}}]',
        '{"nbformat": 3}', '{"nbformat": 4}', '{"nbformat": 4, "cells": [3]}', "[" * 100_000,
    ],
)  # fmt: skip
def test_json_that_is_truncated_or_something_else(ingestion, database, folder, make, text):
    path = folder / "broken.json"
    path.write_text(text)
    error = refused(ingestion, database, make(path=path))
    assert error.origin == str(path)


def test_an_export_that_loops_is_read_to_where_it_closes(ingestion, folder):
    nodes = {
        "a": {"message": {"author": {"role": "user"}, "content": {"parts": ["one"]}}, "parent": "b"},
        "b": {"message": {"author": {"role": "user"}, "content": {"parts": ["two"]}}, "parent": "a"},
    }
    path = folder / "loop.json"
    path.write_text(json.dumps([{"title": "t", "current_node": "a", "mapping": nodes}]))
    assert ingestion.ingest(OpenAIExport(path=path)).chunks == 2


@pytest.mark.parametrize(
    "value",
    [
        {"title": None, "mapping": {"a": None, "b": {"message": 3, "children": []}, "c": {"message": {}}}},
        {"mapping": {"a": {"message": {"author": 3, "content": {"parts": 3}}, "children": []}}, "current_node": 9},
    ],
)
def test_odd_nodes_of_an_export_are_skipped(ingestion, database, folder, value):
    path = folder / "odd.json"
    path.write_text(json.dumps([value]))
    error = refused(ingestion, database, OpenAIExport(path=path))
    assert "no messages" in str(error)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("grüße".encode("latin-1"), "not UTF-8"),
        ("grüße".encode("utf-16-le"), "binary"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\xff", "binary"),
        (b"text\x00text", "binary"),
        (b"", "empty"),
        (b" \n\t ", "white space"),
    ],
)
def test_bytes_that_are_no_text(ingestion, database, folder, data, words):
    path = folder / "odd.txt"
    path.write_bytes(data)
    assert words in str(refused(ingestion, database, FileInput(path=path)))


def all_in_one(path):
    return DirectoryInput(path=path.parent)


READERS = [FileInput, HtmlInput, NotebookInput, OpenAIExport, ClaudeExport, LocomoFile, all_in_one]
"""Every adapter that reads files of its own."""


def reading_of(make, path):
    return make(path) if make is all_in_one else make(path=path)


@pytest.mark.parametrize("make", READERS)
@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n\x00\x00\x00\xff", b"{\x00\x01}", b" \n"])
def test_every_reader_refuses_what_is_empty_or_binary(ingestion, database, folder, make, data):
    (folder / "odd").write_bytes(data)
    refused(ingestion, database, reading_of(make, folder / "odd"))


@pytest.mark.parametrize("make", [reader for reader in READERS if reader is not HtmlInput])
def test_every_reader_refuses_an_encoding_it_does_not_know(ingestion, database, folder, make):
    (folder / "odd").write_bytes('{"text": "grüße"}'.encode("latin-1"))
    assert "not UTF-8" in str(refused(ingestion, database, reading_of(make, folder / "odd")))


def test_a_page_is_read_in_the_encoding_it_names(ingestion):
    page = '<meta charset="latin-1"><p>Grüße aus Köln</p>'.encode("latin-1")
    source = ingestion.shelf.resolve(HtmlInput(data=page))
    (passage,) = ingestion.shelf.router.for_source(source).passages(source, page)
    assert passage.text == "Grüße aus Köln"


@pytest.mark.parametrize("make", READERS)
def test_every_reader_refuses_a_hundred_megabytes_before_it_reads_them(ingestion, database, folder, make):
    with (folder / "huge").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    error = refused(ingestion, database, reading_of(make, folder / "huge"), SourceTooLargeError)
    assert (error.size, error.limit) == (100 * 1024 * 1024, reading.MAX_MATERIAL_BYTES)


@pytest.mark.parametrize("make", READERS)
def test_every_reader_refuses_a_file_that_changes_while_it_is_read(ingestion, database, folder, monkeypatch, make):
    path = folder / "busy"
    path.write_text("[")
    real, calls = os.fstat, []

    def fstat(descriptor):
        calls.append(descriptor)
        if len(calls) == 2:
            with path.open("a") as file:
                file.write("]")
        return real(descriptor)

    monkeypatch.setattr(reading.os, "fstat", fstat)
    error = refused(ingestion, database, reading_of(make, path), SourceChangedError)
    assert "while it was read" in str(error)


@pytest.mark.parametrize("make", [reader for reader in READERS if reader is not all_in_one])
def test_every_reader_refuses_a_loop_of_symbolic_links_and_what_is_not_there(ingestion, database, folder, make):
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    refused(ingestion, database, make(path=folder / "a"))
    refused(ingestion, database, make(path=folder / "missing"), SourceVanishedError)


def test_a_directory_is_bounded_as_a_whole(ingestion, database, folder, monkeypatch):
    for name in "abc":
        (folder / name).write_text("x" * 10)
    monkeypatch.setattr(directories, "MAX_DIRECTORY_BYTES", 25)
    assert refused(ingestion, database, DirectoryInput(path=folder), SourceTooLargeError).size == 30
    monkeypatch.setattr(directories, "MAX_FILES", 2)
    assert "more than 2 files" in str(refused(ingestion, database, DirectoryInput(path=folder)))


def test_a_file_that_vanishes_while_its_directory_is_read(ingestion, database, folder, monkeypatch):
    (folder / "a").write_text("here")

    def listed(root, *, hidden=False):
        yield folder / "a"
        yield folder / "gone"

    monkeypatch.setattr(directories, "walk", listed)
    assert "vanished" in str(refused(ingestion, database, DirectoryInput(path=folder), SourceChangedError))


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("empty", b"", SourceUnreadableError),
        ("blank", b" \n", SourceUnreadableError),
        ("binary", b"a\x00b\xff", SourceUnreadableError),
        ("latin", "grüße".encode("latin-1"), SourceUnreadableError),
        ("huge", b"x" * (reading.MAX_MATERIAL_BYTES + 1), SourceTooLargeError),
    ],
    # a name made of the data would not fit the environment that git is started in
    ids=["empty", "blank", "binary", "latin", "huge"],
)
def test_odd_files_of_a_repository(ingestion, database, repository, git, name, data, kind):
    (repository / name).write_bytes(data)
    git(repository, "add", name)
    git(repository, "-c", "core.compression=0", "commit", "-q", "-m", name)
    refused(ingestion, database, GitInput(repository=repository, path=name), kind)


class Endless:
    """A loader and a reader that never stop."""

    asked = 0

    def lazy_load(self):
        while True:
            self.asked += 1
            yield SimpleNamespace(page_content="x" * 1_000_000, metadata={}, id=None)

    def load_data(self):
        for document in self.lazy_load():
            text = document.page_content
            yield SimpleNamespace(
                id_="a", metadata={}, get_content=lambda text=text: text, to_dict=lambda text=text: {"text": text}
            )


class Failing:
    """A loader and a reader that fail, and whose message may quote what they read."""

    def lazy_load(self):
        yield SimpleNamespace(page_content="one", metadata={}, id=None)
        raise FileNotFoundError("a secret path")

    def load_data(self):
        raise FileNotFoundError("a secret path")


@pytest.mark.parametrize("make", [LangChainLoader, LlamaIndexReader])
def test_loaders_and_readers_that_fail_or_never_stop(ingestion, database, make):
    error = refused(ingestion, database, make(Failing(), origin="a"))
    assert "FileNotFoundError" in str(error)
    assert "secret" not in str(error)
    endless = Endless()
    refused(ingestion, database, make(endless, origin="a"), SourceTooLargeError)
    assert endless.asked < 40
    refused(ingestion, database, make(SimpleNamespace(lazy_load=list, load_data=list), origin="a"))
    nothing = SimpleNamespace(lazy_load=lambda: [7], load_data=lambda: [7])
    assert "no document" in str(refused(ingestion, database, make(nothing, origin="a")))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_text_with_a_byte_order_mark_is_read(ingestion, folder, encoding):
    path = folder / "fine.txt"
    path.write_bytes("Grüße aus Köln".encode(encoding))
    assert ingestion.ingest(FileInput(path=path)).chunks == 1


def test_a_loop_of_symbolic_links(ingestion, database, folder):
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    (folder / "self").symlink_to(folder)
    refused(ingestion, database, FileInput(path=folder / "a"))
    (folder / "real.txt").write_text("real")
    assert [path.name for path in walk(folder)] == ["real.txt"]
    assert ingestion.ingest(DirectoryInput(path=folder)).chunks == 1


def test_a_directory_is_no_file_and_a_file_no_directory(ingestion, database, folder):
    refused(ingestion, database, FileInput(path=folder))
    (folder / "file").write_text("x")
    refused(ingestion, database, DirectoryInput(path=folder / "file"))
    (folder / "file").unlink()
    refused(ingestion, database, DirectoryInput(path=folder))


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are files of POSIX systems")
def test_a_pipe_is_not_waited_for(ingestion, database, folder):
    os.mkfifo(folder / "pipe")
    assert "no regular file" in str(refused(ingestion, database, FileInput(path=folder / "pipe")))
    assert list(walk(folder)) == []


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read(ingestion, database, folder):
    path = folder / "secret.txt"
    path.write_text("x")
    path.chmod(0)
    refused(ingestion, database, FileInput(path=path))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_path_that_is_not_utf_8(ingestion, database, folder):
    path = os.fsdecode(os.fsencode(folder) + b"/\xff.txt")
    Path(path).write_text("x")
    refused(ingestion, database, FileInput(path=path))


def test_an_open_database_is_never_opened_a_second_time(ingestion, database, tmp_path):
    ingestion.ingest(TextInput(text="kept", origin="note"))
    for name in ("library.db", "library.db-wal", "library.db-shm"):
        with pytest.raises(SourceUnreadableError) as caught:
            ingestion.ingest(FileInput(path=tmp_path / name))
        assert "database in use" in str(caught.value)
    assert "library.db" not in [path.name for path in walk(tmp_path)]


@pytest.mark.parametrize("page", [b"\x00\x01\x02", b"<head><title>only</title></head>", b"<script>x</script>"])
def test_pages_without_text(ingestion, database, page):
    refused(ingestion, database, HtmlInput(data=page))


@pytest.mark.parametrize("page", [b"<p>open <b>never closed", b"<<<>>> text & &bogus;", b"plain", b"<p" * 5000 + b">x"])
def test_malformed_pages_are_read_as_far_as_they_go(ingestion, page):
    assert ingestion.ingest(HtmlInput(data=page)).chunks >= 1


def test_blank_text(ingestion, database):
    refused(ingestion, database, TextInput(text=" \n", origin="note"))


def test_an_embedder_that_fails_leaves_nothing(ingestion, database, samples, monkeypatch):
    class Failing:
        profile_id = "failing"
        dimension = 3

        def embed_documents(self, texts):
            raise RuntimeError("no model")

    monkeypatch.setattr(ingestion, "_embedder", Failing())
    with pytest.raises(RuntimeError):
        ingestion.ingest(FileInput(path=samples["notes.md"]))
    assert nothing_stored(database)


def test_an_index_that_fails_leaves_nothing(ingestion, database, samples, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("disk")

    monkeypatch.setattr(ingestion._index, "add", fail)
    with pytest.raises(RuntimeError):
        ingestion.ingest(FileInput(path=samples["notes.md"]))
    assert nothing_stored(database)


def test_one_bad_file_does_not_stop_the_others(ingestion, samples, folder):
    (folder / "bad.json").write_text('{"a":')
    values = [
        FileInput(path=samples["notes.md"]),
        OpenAIExport(path=folder / "bad.json"),
        FileInput(path=samples["code.py"]),
    ]
    results = list(ingestion.ingest_all(values))
    assert [result.error is None for result in results] == [True, False, True]
    assert results[1].origin == str(folder / "bad.json")


def test_a_file_named_like_json_that_is_none_is_refused_when_chosen(folder):
    (folder / "bad.json").write_text('{"a":')
    with pytest.raises(SourceUnreadableError):
        input_for(folder / "bad.json")
