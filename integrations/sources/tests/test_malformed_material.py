"""Bad material: one clear error each, and nothing half-stored."""

import json
import os
import sys
from pathlib import Path

import pytest
from libctx_sources import (
    ClaudeExport,
    FileInput,
    HtmlInput,
    LocomoFile,
    NotebookInput,
    OpenAIExport,
    TextInput,
    reading,
)
from libctx_sources.choosing import input_for
from libctx_sources.directories import DirectoryInput, walk

from libctx_core.errors import SourceChangedError, SourceError, SourceTooLargeError, SourceUnreadableError


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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_text_with_a_byte_order_mark_is_read(ingestion, folder, encoding):
    path = folder / "fine.txt"
    path.write_bytes("Grüße aus Köln".encode(encoding))
    assert ingestion.ingest(FileInput(path=path)).chunks == 1


@pytest.mark.parametrize("name", ["huge.txt", "huge.json", "huge.html", "huge.ipynb"])
def test_a_hundred_megabytes(ingestion, database, folder, name):
    path = folder / name
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    make = {"json": OpenAIExport, "html": HtmlInput, "ipynb": NotebookInput}.get(path.suffix[1:], FileInput)
    error = refused(ingestion, database, make(path=path), SourceTooLargeError)
    assert (error.size, error.limit) == (100 * 1024 * 1024, reading.MAX_MATERIAL_BYTES)


def test_a_loop_of_symbolic_links(ingestion, database, folder):
    (folder / "a").symlink_to(folder / "b")
    (folder / "b").symlink_to(folder / "a")
    (folder / "self").symlink_to(folder)
    refused(ingestion, database, FileInput(path=folder / "a"))
    (folder / "real.txt").write_text("real")
    assert [path.name for path in walk(folder)] == ["real.txt"]
    assert ingestion.ingest(DirectoryInput(path=folder)).chunks == 1


def test_a_file_that_changes_while_it_is_read(ingestion, database, folder, monkeypatch):
    path = folder / "busy.txt"
    path.write_text("before")
    real, calls = os.fstat, []

    def fstat(descriptor):
        calls.append(descriptor)
        if len(calls) == 2:
            with path.open("a") as file:
                file.write(" and after")
        return real(descriptor)

    monkeypatch.setattr(reading.os, "fstat", fstat)
    error = refused(ingestion, database, FileInput(path=path), SourceChangedError)
    assert "while it was read" in str(error)


@pytest.mark.parametrize("make", [FileInput, NotebookInput, OpenAIExport])
def test_what_is_not_there(ingestion, database, folder, make):
    refused(ingestion, database, make(path=folder / "missing"), SourceError)


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
