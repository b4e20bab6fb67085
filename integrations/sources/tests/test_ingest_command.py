"""``libctx ingest``, the plugin, and what importing them costs."""

import json
import subprocess
import sys

import pytest
from libctx_sources import Ingestion, Passage, TextInput

from libctx_core import LibraryOfContext
from libctx_core.cli.app import run
from libctx_core.plugins import hookimpl
from libctx_core.sources import BaseSourceAdapter, Source, SourceMaterialization


def ingest(*arguments: str) -> int:
    return run(["ingest", *arguments])


def test_a_folder_is_taken_in_and_answers_questions(samples, folder, tmp_path, capsys):
    library = tmp_path / "new.db"
    (folder / "bad.json").write_text('{"a":')
    assert ingest(str(folder), "--library", str(library), "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert {item["source_type"] for item in report["sources"]} == {
        "file", "html", "notebook", "openai-export", "claude-export", "locomo",
    }  # fmt: skip
    assert [item["code"] for item in report["refused"]] == ["source_unreadable"]
    assert report["refused"][0]["origin"].endswith("bad.json")
    with LibraryOfContext(library) as opened:
        (hit, *_) = opened.consult("When is the boiler serviced?", 3, everything=True)
    assert "March" in hit.text
    assert "notes.md" in hit.citation
    assert ingest(str(folder), "--library", str(library), "--json") == 0
    assert all(item["known"] for item in json.loads(capsys.readouterr().out)["sources"])


def test_the_table_and_the_errors(samples, folder, tmp_path, capsys):
    assert ingest(str(samples["notes.md"]), str(tmp_path / "missing"), "-l", str(tmp_path / "x.db")) == 0
    printed = capsys.readouterr()
    assert "notes.md" in printed.out
    assert "error[source_vanished]" in printed.err
    assert "1 sources, 1 new chunks, 1 refused" in printed.err


def test_nothing_but_refusals_is_a_failure(tmp_path, capsys):
    assert ingest(str(tmp_path / "missing"), "-l", str(tmp_path / "x.db")) == 1


def test_a_repository_at_a_commit(repository, tmp_path, capsys):
    assert ingest(str(repository), "--commit", "HEAD~1", "-l", str(tmp_path / "x.db"), "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [item["source_type"] for item in report["sources"]] == ["git", "git"]
    assert ingest(str(tmp_path), "--commit", "HEAD", "-l", str(tmp_path / "x.db")) == 1
    assert "error[source_unreadable]" in capsys.readouterr().err


def test_collections_and_references(samples, tmp_path, capsys):
    library = tmp_path / "x.db"
    assert ingest(str(samples["notes.md"]), "-l", str(library), "-c", "house", "--reference") == 0
    with LibraryOfContext(library) as opened:
        (source,) = Ingestion.into(opened, "house").shelf.list()
        assert source.content is None
        assert Ingestion.into(opened).shelf.list() == ()


def test_the_plugin_brings_the_adapters(tmp_path):
    with LibraryOfContext(tmp_path / "x.db") as library:
        assert library.plugins.source_adapter("file").name == "file"
        done = Ingestion.into(library).ingest(TextInput(text="The boiler is blue.", origin="note"))
        assert done.chunks == 1
        assert library.consult("boiler", 1, everything=True)[0].text == "The boiler is blue."


def test_an_ingestion_takes_what_other_plugins_bring_adapters_for():
    class Letter:
        text = "The ferry is late on Mondays."

    class LetterSource(Source):
        text: str

    class LetterAdapter(BaseSourceAdapter):
        input_class, name, source_class = Letter, "letter", LetterSource

        def describe(self, value, /):
            return LetterSource(name="7", materialization=SourceMaterialization.CAPTURED, text=value.text)

        def load(self, source, /):
            return source.text

        def passages(self, source, value, /):
            yield Passage(value)

    class Post:
        @hookimpl
        def register_source_adapters(self):
            return {"letter": LetterAdapter}

    for plugins in ([Post()], ["sources", Post()]):
        with LibraryOfContext(":memory:", plugins=plugins) as library:
            ingestion = Ingestion.into(library)
            done = ingestion.ingest(Letter())
            assert (done.chunks, done.ref.source_type) == (1, "letter")
            assert ingestion.shelf.read(ingestion.shelf.get(done.ref).source) == Letter.text
            assert "ferry" in library.consult("when is the ferry late?", 1, everything=True)[0].text


@pytest.mark.parametrize("module", ["libctx_sources.plugin", "libctx_sources.adapters", "libctx_sources.ingestion"])
def test_importing_brings_no_framework(module):
    code = (
        f"import {module}, sys\n"
        "heavy = {'langchain_core', 'llama_index', 'bs4', 'semantic_text_splitter', 'tree_sitter_python'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_plugin_itself_loads_nothing_of_the_adapters():
    code = (
        "import libctx_sources.plugin, sys\n"
        "loaded = {name for name in sys.modules if name.startswith('libctx_sources.')}\n"
        "assert loaded == {'libctx_sources.plugin'}, loaded\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_public_names_load_on_demand():
    import libctx_sources

    for name in libctx_sources.__all__:
        assert getattr(libctx_sources, name) is not None
    with pytest.raises(AttributeError):
        libctx_sources.nothing  # noqa: B018
