"""Every adapter passes the suite that third parties run."""

import shutil
from pathlib import Path

import pytest
from libctx_sources import (
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
)
from libctx_sources.adapters import ADAPTERS

from libctx_core.sources import ContentAdapter, ContentCapture
from libctx_core.testing.sources import SourceAdapterSuite


class Folder(SourceAdapterSuite):
    """Inputs that are files of the folder the samples lie in."""

    adapter = ""

    def make_adapter(self):
        return ADAPTERS[self.adapter]()

    @pytest.fixture(autouse=True)
    def material(self, samples, repository, tmp_path):
        self.samples, self.repository = samples, repository

    def twin(self, name: str, old: str, new: str) -> Path:
        """Return a second file of a kind, with other material."""
        path = self.samples[name].with_name(f"twin-{name}")
        path.write_text(self.samples[name].read_text().replace(old, new))
        return path

    def destroy(self, folder):
        shutil.rmtree(folder / "material")
        shutil.rmtree(self.repository)


class TestContent(SourceAdapterSuite):
    def make_adapter(self):
        return ContentAdapter()

    def make_inputs(self, folder):
        return [ContentCapture(source_id="a", content="one"), ContentCapture(source_id="b", content="two")]


class TestText(Folder):
    adapter = "text"

    def make_inputs(self, folder):
        return [TextInput(text="one", origin="a"), TextInput(text="two", origin="a")]


class TestFile(Folder):
    adapter = "file"

    def make_inputs(self, folder):
        return [
            FileInput(path=self.samples["notes.md"]),
            FileInput(path=self.samples["code.py"]),
            FileInput(path=self.samples["code.py"], capture=False),
        ]


class TestDirectory(Folder):
    adapter = "directory"

    def make_inputs(self, folder):
        inner = folder / "material" / "inner"
        inner.mkdir(exist_ok=True)
        (inner / "x.txt").write_text("x")
        return [DirectoryInput(path=folder / "material"), DirectoryInput(path=inner)]


class TestGit(Folder):
    adapter = "git"

    def make_inputs(self, folder):
        return [
            GitInput(repository=self.repository, path="run.py"),
            GitInput(repository=self.repository, path="run.py", commit="HEAD~1"),
            GitInput(repository=self.repository, path="docs/a b.md", capture=True),
        ]


class TestHtml(Folder):
    adapter = "html"

    def make_inputs(self, folder):
        return [HtmlInput(path=self.samples["page.html"]), HtmlInput(data=b"<p>Another page</p>")]


class TestNotebook(Folder):
    adapter = "notebook"

    def make_inputs(self, folder):
        return [
            NotebookInput(path=self.samples["book.ipynb"]),
            NotebookInput(path=self.twin("book.ipynb", "Harbour", "River")),
        ]


class TestOpenAIExport(Folder):
    adapter = "openai-export"

    def make_inputs(self, folder):
        return [
            OpenAIExport(path=self.samples["openai.json"]),
            OpenAIExport(path=self.twin("openai.json", "Lisbon", "Porto")),
        ]


class TestClaudeExport(Folder):
    adapter = "claude-export"

    def make_inputs(self, folder):
        return [
            ClaudeExport(path=self.samples["claude.json"]),
            ClaudeExport(path=self.twin("claude.json", "sourdough", "rye")),
        ]


class TestLocomo(Folder):
    adapter = "locomo"

    def make_inputs(self, folder):
        return [
            LocomoFile(path=self.samples["locomo.json"]),
            LocomoFile(path=self.twin("locomo.json", "Pepper", "Salt")),
        ]


class TestLangChain(Folder):
    adapter = "langchain-document"

    def make_inputs(self, folder):
        documents = pytest.importorskip("langchain_core.documents")
        return [
            LangChainDocument(documents.Document(page_content="one", id="a")),
            LangChainDocument(documents.Document(page_content="two", id="a")),
        ]


class TestLlamaIndex(Folder):
    adapter = "llamaindex-document"

    def make_inputs(self, folder):
        core = pytest.importorskip("llama_index.core")
        return [
            LlamaIndexDocument(core.Document(text="one", id_="a")),
            LlamaIndexDocument(core.Document(text="two", id_="a")),
        ]


class TestLangChainLoader(Folder):
    adapter = "langchain-loader"

    def make_inputs(self, folder):
        documents = pytest.importorskip("langchain_core.documents")

        class Loader:
            def __init__(self, *texts):
                self.texts = texts

            def lazy_load(self):
                for text in self.texts:
                    yield documents.Document(page_content=text)

        return [LangChainLoader(Loader("one", "two"), origin="a"), LangChainLoader(Loader("one"), origin="a")]


class TestLlamaIndexReader(Folder):
    adapter = "llamaindex-reader"

    def make_inputs(self, folder):
        core = pytest.importorskip("llama_index.core")

        class Reader:
            def load_data(self, texts):
                return [core.Document(text=text, id_=text) for text in texts]

        return [
            LlamaIndexReader(Reader(), origin="a", arguments={"texts": ["one", "two"]}),
            LlamaIndexReader(Reader(), origin="a", arguments={"texts": ["one"]}),
        ]
