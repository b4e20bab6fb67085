"""LangChain documents and loaders; LangChain itself is imported only to give documents back."""

from collections.abc import Iterator
from typing import Any, Protocol

from libctx_core.errors import OptionalDependencyError
from libctx_core.sources import BaseSourceAdapter
from libctx_sources.documents import (
    CapturedDocument,
    DocumentsSource,
    captured,
    describe_documents,
    document_passages,
)
from libctx_sources.passages import Passage


class DocumentShape(Protocol):
    """What a LangChain document has."""

    page_content: str
    metadata: dict[str, Any]
    id: str | None


class LoaderShape(Protocol):
    """What a LangChain document loader has."""

    def lazy_load(self) -> Iterator[Any]:
        """Yield documents."""
        ...


class LangChainDocument:
    """A LangChain document to be captured.

    Args:
        document: The document.
        origin: What it is called; its id or its metadata's ``source`` by default.
    """

    def __init__(self, document: DocumentShape, *, origin: str | None = None) -> None:
        self.document = document
        self.origin = origin


class LangChainLoader:
    """A LangChain loader whose documents are to be captured; it is run once.

    Args:
        loader: The loader; whatever it reads, it reads with its own means.
        origin: What its documents are called together.
    """

    def __init__(self, loader: LoaderShape, *, origin: str) -> None:
        self.loader = loader
        self.origin = origin


class LangChainDocumentSource(DocumentsSource):
    """One captured LangChain document."""


class LangChainLoaderSource(DocumentsSource):
    """The captured documents of a LangChain loader."""


def _restored(source: DocumentsSource) -> tuple[Any, ...]:
    try:
        from langchain_core.documents import Document
    except ImportError as error:
        raise OptionalDependencyError("giving LangChain documents back", "langchain-core") from error
    return tuple(Document(page_content=d.text, metadata=dict(d.metadata), id=d.identity) for d in source.documents)


def _kept(document: DocumentShape, origin: str) -> CapturedDocument:
    return captured(
        getattr(document, "page_content", None),
        getattr(document, "metadata", None),
        getattr(document, "id", None),
        origin,
    )


class LangChainDocumentAdapter(BaseSourceAdapter[LangChainDocument, LangChainDocumentSource, Any]):
    """Captures one document; `load` gives an equal one back."""

    input_class = LangChainDocument
    name = "langchain-document"
    source_class = LangChainDocumentSource

    def describe(self, value: LangChainDocument, /) -> LangChainDocumentSource:
        """Return a captured source of the document."""
        document = value.document
        named = getattr(document, "id", None) or (getattr(document, "metadata", None) or {}).get("source")
        origin = value.origin or str(named or "document")
        return LangChainDocumentSource(**describe_documents([_kept(document, origin)], origin))

    def load(self, source: LangChainDocumentSource, /) -> Any:
        """Return the document.

        Raises:
            OptionalDependencyError: LangChain is not installed.
        """
        return _restored(source)[0]

    def passages(self, source: LangChainDocumentSource, value: object, /) -> Iterator[Passage]:
        """Yield its text."""
        return document_passages(source)


class LangChainLoaderAdapter(BaseSourceAdapter[LangChainLoader, LangChainLoaderSource, "tuple[Any, ...]"]):
    """Captures what a loader yields; `load` gives equal documents back."""

    input_class = LangChainLoader
    name = "langchain-loader"
    source_class = LangChainLoaderSource

    def describe(self, value: LangChainLoader, /) -> LangChainLoaderSource:
        """Run the loader and return a captured source of its documents."""

        def documents() -> Iterator[CapturedDocument]:
            # called within, where its failures are reported
            for document in value.loader.lazy_load():
                yield _kept(document, value.origin)

        return LangChainLoaderSource(**describe_documents(documents(), value.origin))

    def load(self, source: LangChainLoaderSource, /) -> tuple[Any, ...]:
        """Return the documents.

        Raises:
            OptionalDependencyError: LangChain is not installed.
        """
        return _restored(source)

    def passages(self, source: LangChainLoaderSource, value: object, /) -> Iterator[Passage]:
        """Yield the text of every document."""
        return document_passages(source)
