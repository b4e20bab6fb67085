"""Chunks: cut at seams, complete, and each exactly where it says."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libctx_sources import (
    ClaudeExport,
    DirectoryInput,
    FileInput,
    GitInput,
    HtmlInput,
    Ingestion,
    LocomoFile,
    NotebookInput,
    OpenAIExport,
    Passage,
    TextInput,
    chunks,
)
from libctx_sources.choosing import input_for

from libctx_core import LibraryOfContext
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher

SYNTAXES = st.sampled_from(["text", "markdown", "python"])
LINES = st.lists(
    st.sampled_from(["# Title", "## Part", "A sentence. Another one!", "- item", "```", "    code()", "def f():",
                     "    return 'é'", "日本語の文章です。", "", "\t", "🙂 emoji"]) | st.text(max_size=30),
    max_size=30,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(LINES, SYNTAXES, st.integers(10, 300))
def test_chunks_stand_where_they_say_and_leave_out_only_white_space(lines, syntax, size):
    text = "\n".join(lines)
    end = 0
    for chunk in chunks(Passage(text, syntax=syntax), size=size):
        assert text[chunk.start : chunk.end] == chunk.text
        assert len(chunk.text) <= size
        assert not text[end : chunk.start].strip()
        assert chunk.first_line == text.count("\n", 0, chunk.start) + 1
        assert chunk.last_line == text.count("\n", 0, chunk.end) + 1
        end = chunk.end
    assert not text[end:].strip()


def test_code_is_cut_between_definitions():
    source = "\n\n".join(f"def function_{at}(value):\n    return value + {at}\n" for at in range(30))
    found = list(chunks(Passage(source, syntax="python"), size=200))
    assert len(found) > 3
    for chunk in found:
        assert chunk.text.startswith("def ")
        compile(chunk.text, "chunk", "exec")


def test_markdown_is_cut_at_headings_and_code_stays_whole():
    block = "```python\ndef kept():\n    return 'whole'\n```"
    source = "\n\n".join(f"# Part {at}\n\n{'Words of the part. ' * 6}\n\n{block}" for at in range(6))
    found = [chunk.text for chunk in chunks(Passage(source, syntax="markdown"), size=300)]
    assert sum(block in text for text in found) == 6
    assert all(text.count("```") % 2 == 0 for text in found)


@pytest.fixture
def every_kind(samples, repository, folder):
    return [
        FileInput(path=samples["notes.md"]),
        FileInput(path=samples["code.py"], capture=False),
        HtmlInput(path=samples["page.html"]),
        NotebookInput(path=samples["book.ipynb"]),
        OpenAIExport(path=samples["openai.json"]),
        ClaudeExport(path=samples["claude.json"]),
        LocomoFile(path=samples["locomo.json"]),
        GitInput(repository=repository, path="docs/a b.md"),
        TextInput(text="word " * 2000, origin="long note"),
        DirectoryInput(path=folder),
    ]


def records_of(database, owner: int) -> list[tuple[str, str, dict]]:
    with database.read() as connection:
        return [
            (key, text, json.loads(metadata))
            for key, text, metadata in connection.execute(
                "SELECT key, text, metadata FROM record WHERE owner = ? ORDER BY slot", (owner,)
            )
        ]


def test_every_chunk_of_every_kind_is_found_at_its_place_in_the_source(ingestion, database, every_kind):
    for value in every_kind:
        done = ingestion.ingest(value)
        entry = ingestion.shelf.get(done.ref)
        adapter = ingestion.shelf.router.for_source(entry.source)
        passages = {p.locator: p.text for p in adapter.passages(entry.source, ingestion.shelf.read(entry.source))}
        found = records_of(database, entry.owner_id)
        assert len(found) == done.chunks > 0
        assert len({key for key, _, _ in found}) == done.chunks
        for key, text, metadata in found:
            assert metadata["place"] == key
            assert (metadata["source_type"], metadata["source_id"]) == (done.ref.source_type, done.ref.source_id)
            locator, _, span = key.rpartition(":L")
            if not span:
                locator, span = "", key.removeprefix("L")
            lines, _, offsets = span.removeprefix("L").partition("@")
            start, end = map(int, offsets.split("-"))
            assert passages[locator][start:end] == text
            first = passages[locator].count("\n", 0, start) + 1
            assert lines.split("-")[0] == str(first)


def test_chunks_are_found_by_search_with_speaker_and_time(ingestion, database, embedder, samples):
    done = ingestion.ingest(LocomoFile(path=samples["locomo.json"]))
    owner = ingestion.shelf.get(done.ref).owner_id
    (hit, *_) = Searcher(database, embedder).search(SearchRequest(text="brown dog photo", owners=[owner], k=3))
    assert (hit.text, hit.kind, hit.speaker, hit.session) == ("I adopted a dog.", "chunk", "Ana", "conv-0 session_1")
    assert hit.occurred_at == 1_683_554_160.0


def test_indexing_again_makes_the_vectors_that_taking_in_made(samples, tmp_path):
    def vectors(library) -> list[tuple]:
        with library.database.read() as connection:
            return list(connection.execute("SELECT slot, data FROM vector ORDER BY slot"))

    with LibraryOfContext(tmp_path / "chats.db") as library:
        Ingestion.into(library).ingest(LocomoFile(path=samples["locomo.json"]))
        before = vectors(library)
        assert library.reindex() == len(before) == 3
        assert vectors(library) == before


def test_taking_in_the_same_again_changes_nothing(ingestion, samples):
    first = ingestion.ingest(FileInput(path=samples["notes.md"]))
    again = ingestion.ingest(FileInput(path=samples["notes.md"]))
    assert (first.known, again.known, again.chunks) == (False, True, 0)
    assert again.ref == first.ref


def test_a_source_that_was_only_stored_gets_its_chunks(ingestion, samples):
    ingestion.shelf.capture(FileInput(path=samples["notes.md"]))
    done = ingestion.ingest(FileInput(path=samples["notes.md"]))
    assert (done.known, done.chunks) == (False, 1)


def test_a_changed_file_replaces_its_chunks_and_may_change_back(ingestion, database, embedder, samples):
    path = samples["notes.md"]
    before = path.read_text()
    searcher = Searcher(database, embedder)

    def texts() -> set[str]:
        return {hit.text for hit in searcher.search(SearchRequest(text="boiler serviced", k=20))}

    ingestion.ingest(FileInput(path=path))
    assert any("March" in text for text in texts())
    path.write_text(before.replace("March", "October"))
    done = ingestion.ingest(FileInput(path=path))
    assert done.superseded == 1
    assert any("October" in text for text in texts())
    assert not any("March" in text for text in texts())
    path.write_text(before)
    back = ingestion.ingest(FileInput(path=path))
    assert (back.superseded, back.known) == (1, False)
    assert any("March" in text for text in texts())
    assert not any("October" in text for text in texts())
    assert len(ingestion.shelf.list()) == 1
    assert len(ingestion.shelf.list(superseded=True)) == 2


def test_deleting_a_source_deletes_its_chunks(ingestion, database, samples):
    done = ingestion.ingest(FileInput(path=samples["notes.md"]))
    assert ingestion.shelf.delete(done.ref)
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM record").get == 0


def test_the_adapter_of_a_file_is_chosen_by_name_and_shape(samples):
    chosen = {name: type(input_for(path)).__name__ for name, path in samples.items()}
    assert chosen == {
        "notes.md": "FileInput",
        "code.py": "FileInput",
        "plain.txt": "FileInput",
        "page.html": "HtmlInput",
        "book.ipynb": "NotebookInput",
        "openai.json": "OpenAIExport",
        "claude.json": "ClaudeExport",
        "locomo.json": "LocomoFile",
        "data.json": "FileInput",
    }
