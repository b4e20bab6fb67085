"""Every adapter: reads back byte for byte, notices change and loss, survives being stored."""

import json
import shutil

import pytest
from libctx_sources import (
    ADAPTERS,
    ClaudeExport,
    DirectoryInput,
    FileInput,
    GitInput,
    HtmlInput,
    LangChainDocument,
    LangChainLoader,
    LlamaIndexDocument,
    LlamaIndexReader,
    LocomoFile,
    NotebookInput,
    OpenAIExport,
    TextInput,
    git_files,
)

from libctx_core.errors import (
    InvalidInputError,
    OptionalDependencyError,
    SourceChangedError,
    SourceUnreadableError,
    SourceVanishedError,
)
from libctx_core.sources import SourceMaterialization

CAPTURED = SourceMaterialization.CAPTURED
REFERENCED = SourceMaterialization.REFERENCED


@pytest.fixture
def shelf(ingestion):
    return ingestion.shelf


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("notes.md", lambda path: FileInput(path=path)),
        ("code.py", lambda path: FileInput(path=path, capture=False)),
        ("plain.txt", lambda path: FileInput(path=path)),
        ("page.html", lambda path: HtmlInput(path=path)),
        ("book.ipynb", lambda path: NotebookInput(path=path)),
        ("openai.json", lambda path: OpenAIExport(path=path)),
        ("claude.json", lambda path: ClaudeExport(path=path)),
        ("locomo.json", lambda path: LocomoFile(path=path)),
    ],
)
def test_files_read_back_byte_for_byte_after_being_stored(shelf, samples, name, make):
    entry = shelf.capture(make(samples[name]))
    stored = shelf.get(entry.ref).source
    assert stored == entry.source
    assert shelf.read(stored) == samples[name].read_bytes()
    assert stored.origin == str(samples[name])
    assert shelf.capture(make(samples[name])).position == entry.position


def test_any_bytes_can_be_captured(shelf, folder):
    path = folder / "any.bin"
    path.write_bytes(bytes(range(256)) * 3)
    assert shelf.read(shelf.get(shelf.capture(FileInput(path=path)).ref).source) == path.read_bytes()


def test_text_reads_back(shelf):
    entry = shelf.capture(TextInput(text="Überall — \n\n", origin="note"))
    assert shelf.read(shelf.get(entry.ref).source) == "Überall — \n\n".encode()
    assert entry.source.materialization is CAPTURED


def test_a_captured_file_outlives_its_file(shelf, samples):
    entry = shelf.capture(FileInput(path=samples["notes.md"]))
    before = samples["notes.md"].read_bytes()
    samples["notes.md"].unlink()
    assert shelf.read(entry.source) == before


def test_a_referenced_file_that_changed_or_vanished_says_so(shelf, samples):
    path = samples["notes.md"]
    entry = shelf.capture(FileInput(path=path, capture=False))
    assert entry.source.materialization is REFERENCED
    assert entry.source.content is None
    path.write_text("other")
    with pytest.raises(SourceChangedError) as changed:
        shelf.read(entry.source)
    assert changed.value.origin == str(path)
    path.write_text("")
    with pytest.raises(SourceChangedError):
        shelf.read(entry.source)
    path.unlink()
    with pytest.raises(SourceVanishedError) as vanished:
        shelf.read(entry.source)
    assert isinstance(vanished.value, LookupError)


def test_a_directory(shelf, samples, folder):
    (folder / ".hidden").write_text("x")
    (folder / "sub").mkdir()
    (folder / "sub" / "deep.txt").write_text("deep")
    (folder / "sub" / "empty.txt").write_text("")
    entry = shelf.capture(DirectoryInput(path=folder))
    assert shelf.read(entry.source) == {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in [*samples.values(), folder / "sub/deep.txt"]
    }
    hidden = shelf.capture(DirectoryInput(path=folder, hidden=True))
    assert ".hidden" in shelf.read(hidden.source)
    (folder / "new.txt").write_text("new")
    with pytest.raises(SourceChangedError) as caught:
        shelf.read(entry.source)
    assert "added" in caught.value.detail
    (folder / "new.txt").unlink()
    samples["notes.md"].write_text("changed")
    with pytest.raises(SourceChangedError):
        shelf.read(entry.source)
    shutil.rmtree(folder)
    with pytest.raises(SourceVanishedError):
        shelf.read(entry.source)


def test_a_git_file_stays_what_it_was_at_its_commit(shelf, repository, git):
    first = git(repository, "rev-parse", "HEAD~1")
    entry = shelf.capture(GitInput(repository=repository, path="docs/a b.md", commit=first))
    assert shelf.read(entry.source) == b"# First\n\nThe pump is blue.\n"
    head = shelf.capture(GitInput(repository=repository, path="docs/a b.md"))
    assert shelf.read(head.source) == b"# Second\n\nThe pump is red.\n"
    assert head.source.commit == git(repository, "rev-parse", "HEAD")
    (repository / "docs" / "a b.md").write_text("uncommitted")
    assert shelf.read(head.source) == b"# Second\n\nThe pump is red.\n"
    kept = shelf.capture(GitInput(repository=repository, path="run.py", capture=True))
    shutil.rmtree(repository)
    assert shelf.read(kept.source) == b"def run():\n    return 1\n"
    with pytest.raises(SourceVanishedError):
        shelf.read(entry.source)


def test_the_files_of_a_commit(repository):
    found = [value.path for value in git_files(repository, "HEAD~1")]
    assert found == ["docs/a b.md", "run.py"]


@pytest.mark.parametrize(
    ("path", "commit"),
    [("missing.md", "HEAD"), ("run.py", "no-such-branch"), ("link", "HEAD"), ("run.py", "--help"), ("*.py", "HEAD")],
)
def test_what_a_repository_does_not_hold(shelf, repository, path, commit):
    with pytest.raises(SourceUnreadableError):
        shelf.capture(GitInput(repository=repository, path=path, commit=commit))
    assert shelf.position() == 0


def test_a_directory_that_is_no_repository(shelf, folder):
    with pytest.raises(SourceUnreadableError):
        shelf.capture(GitInput(repository=folder, path="x"))
    with pytest.raises(SourceUnreadableError):
        shelf.capture(GitInput(repository=folder / "missing", path="x"))


def test_a_vanished_object_of_a_repository(shelf, repository):
    entry = shelf.capture(GitInput(repository=repository, path="run.py"))
    loose = repository / ".git" / "objects" / entry.source.blob[:2] / entry.source.blob[2:]
    loose.chmod(0o600)
    loose.unlink()
    with pytest.raises(SourceVanishedError):
        shelf.read(entry.source)


def test_a_page_from_bytes_keeps_them_and_shows_its_text(shelf, samples, ingestion):
    data = samples["page.html"].read_bytes()
    entry = shelf.capture(HtmlInput(data=data, url="https://ferries.example/timetable"))
    assert shelf.read(shelf.get(entry.ref).source) == data
    assert (entry.source.title, entry.source.url) == ("Ferry timetable", "https://ferries.example/timetable")
    (passage,) = ingestion.shelf.router.for_source(entry.source).passages(entry.source, data)
    assert passage.text == "Ferries\nThe last ferry leaves at 23:10.\nMondays: none"
    for both in (HtmlInput(), HtmlInput(path=samples["page.html"], data=data)):
        with pytest.raises(InvalidInputError):
            shelf.capture(both)


def test_messages_carry_speaker_session_and_time(samples, shelf):
    def passages(value):
        source = shelf.resolve(value)
        adapter = shelf.router.for_source(source)
        return [
            (p.locator, p.text, p.speaker, p.session, p.occurred_at, p.caption)
            for p in adapter.passages(source, adapter.load(source))
        ]

    assert passages(OpenAIExport(path=samples["openai.json"])) == [
        ("message a", "I moved to Lisbon.", "user", "Moving house", 1_700_000_001.5, "map.png"),
        ("message c", "Lisbon is lovely in autumn.", "assistant", "Moving house", 1_700_000_002.0, None),
    ]
    assert passages(ClaudeExport(path=samples["claude.json"])) == [
        ("message m1", "How long must sourdough rest?", "human", "Bread", 1_714_557_600.0, "recipe.pdf"),
        ("message m2", "Twelve hours in the fridge.", "assistant", "Bread", 1_714_557_605.25, None),
    ]
    assert [(p[0], p[1], p[2], p[3], p[5]) for p in passages(LocomoFile(path=samples["locomo.json"]))] == [
        ("message conv-0 D1:1", "I adopted a dog.", "Ana", "conv-0 session_1", "a small brown dog"),
        ("message conv-0 D1:2", "What is her name?", "Ben", "conv-0 session_1", None),
        ("message conv-0 D2:1", "Pepper.", "Ana", "conv-0 session_2", None),
    ]


def test_langchain_documents_come_back_equal(shelf):
    documents = pytest.importorskip("langchain_core.documents")
    document = documents.Document(page_content="Überall\n", metadata={"source": "a.md", "n": [1, None]}, id="7")
    entry = shelf.capture(LangChainDocument(document))
    assert shelf.read(shelf.get(entry.ref).source) == document
    assert entry.source.origin == "7"

    class Loader:
        def lazy_load(self):
            yield document
            yield documents.Document(page_content="Two")

    entry = shelf.capture(LangChainLoader(Loader(), origin="two documents"))
    assert shelf.read(shelf.get(entry.ref).source) == (document, documents.Document(page_content="Two"))


def test_llama_index_documents_come_back_equal(shelf):
    core = pytest.importorskip("llama_index.core")
    document = core.Document(text="Überall\n", metadata={"a": 1}, id_="x", excluded_llm_metadata_keys=["a"])
    entry = shelf.capture(LlamaIndexDocument(document))
    assert shelf.read(shelf.get(entry.ref).source) == document

    class Reader:
        def load_data(self, folder):
            return [document, core.Document(text=folder, id_="y")]

    entry = shelf.capture(LlamaIndexReader(Reader(), origin="reader", arguments={"folder": "here"}))
    found = shelf.read(shelf.get(entry.ref).source)
    assert [item.text for item in found] == ["Überall\n", "here"]
    assert found[0] == document


class Shape:
    """A document without a framework."""

    def __init__(self, text="text", metadata=None):
        self.page_content = text
        self.metadata = {} if metadata is None else metadata
        self.id = None


@pytest.mark.parametrize(
    "document", [Shape(text=None), Shape(metadata={"x": object()}), Shape(metadata={"x": float("nan")}),
                 Shape(metadata={1: "x"}), Shape(metadata={"x": (1, 2)}), Shape(text="\ud800"), object()],
)  # fmt: skip
def test_a_document_that_cannot_be_given_back_is_refused(shelf, document):
    with pytest.raises(SourceUnreadableError):
        shelf.capture(LangChainDocument(document, origin="odd"))
    assert shelf.position() == 0


def test_documents_are_captured_without_their_framework(shelf, monkeypatch):
    import sys

    entry = shelf.capture(LangChainDocument(Shape(), origin="bare"))
    monkeypatch.setitem(sys.modules, "langchain_core.documents", None)
    with pytest.raises(OptionalDependencyError) as caught:
        shelf.read(entry.source)
    assert caught.value.package == "langchain-core"


def test_every_adapter_is_named_alike_here_and_in_the_plugin():
    from libctx_sources import plugin

    assert set(plugin.register_source_adapters()) == set(ADAPTERS) == set(plugin.NAMES)
    for name, make in plugin.register_source_adapters().items():
        assert make().name == name


async def test_the_asynchronous_half(shelf, samples):
    entry = await shelf.acapture(FileInput(path=samples["notes.md"]))
    assert await shelf.aread(entry.source) == samples["notes.md"].read_bytes()


def test_a_newer_export_supersedes_the_older_one(shelf, samples):
    shelf.capture(ClaudeExport(path=samples["claude.json"]))
    document = json.loads(samples["claude.json"].read_text())
    document[0]["chat_messages"].append({"uuid": "m3", "sender": "human", "text": "Thanks."})
    samples["claude.json"].write_text(json.dumps(document))
    shelf.capture(ClaudeExport(path=samples["claude.json"]))
    assert [source.messages for source in shelf.list()] == [3]
