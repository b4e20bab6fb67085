"""LlamaIndex documents and readers; LlamaIndex itself is imported only to give documents back."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from libctx_core.errors import OptionalDependencyError, SourceUnreadableError
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
    """What a LlamaIndex document has."""

    id_: str
    metadata: dict[str, Any]

    def get_content(self) -> str:
        """Return its text."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON."""
        ...


class ReaderShape(Protocol):
    """What a LlamaIndex reader has."""

    def load_data(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Return documents."""
        ...


class LlamaIndexDocument:
    """A LlamaIndex document to be captured.

    Args:
        document: The document.
        origin: What it is called; its id by default.
    """

    def __init__(self, document: DocumentShape, *, origin: str | None = None) -> None:
        self.document = document
        self.origin = origin


class LlamaIndexReader:
    """A LlamaIndex reader whose documents are to be captured; it is run once.

    Args:
        reader: The reader; whatever it reads, it reads with its own means.
        origin: What its documents are called together.
        arguments: Keyword arguments of its ``load_data``.
    """

    def __init__(self, reader: ReaderShape, *, origin: str, arguments: Mapping[str, Any] | None = None) -> None:
        self.reader = reader
        self.origin = origin
        self.arguments = dict(arguments or {})


class LlamaIndexDocumentSource(DocumentsSource):
    """One captured LlamaIndex document."""


class LlamaIndexReaderSource(DocumentsSource):
    """The captured documents of a LlamaIndex reader."""


def _kept(document: Any, origin: str) -> CapturedDocument:
    try:
        text, native = document.get_content(), document.to_dict()
        metadata, identity = document.metadata, document.id_
    except AttributeError as error:
        raise SourceUnreadableError(origin, "gave something that is no document") from error
    return captured(text, metadata, identity, origin, native=native)


def _restored(source: DocumentsSource) -> tuple[Any, ...]:
    try:
        from llama_index.core import Document
    except ImportError as error:
        raise OptionalDependencyError("giving LlamaIndex documents back", "llama-index-core") from error
    return tuple(Document.from_dict(dict(document.native or {})) for document in source.documents)


class LlamaIndexDocumentAdapter(BaseSourceAdapter[LlamaIndexDocument, LlamaIndexDocumentSource, Any]):
    """Captures one document; `load` gives an equal one back."""

    input_class = LlamaIndexDocument
    name = "llamaindex-document"
    source_class = LlamaIndexDocumentSource

    def describe(self, value: LlamaIndexDocument, /) -> LlamaIndexDocumentSource:
        """Return a captured source of the document."""
        origin = value.origin or str(getattr(value.document, "id_", None) or "document")
        return LlamaIndexDocumentSource(**describe_documents([_kept(value.document, origin)], origin))

    def load(self, source: LlamaIndexDocumentSource, /) -> Any:
        """Return the document.

        Raises:
            OptionalDependencyError: LlamaIndex is not installed.
        """
        return _restored(source)[0]

    def passages(self, source: LlamaIndexDocumentSource, value: object, /) -> Iterator[Passage]:
        """Yield its text."""
        return document_passages(source)


class LlamaIndexReaderAdapter(BaseSourceAdapter[LlamaIndexReader, LlamaIndexReaderSource, "tuple[Any, ...]"]):
    """Captures what a reader returns; `load` gives equal documents back."""

    input_class = LlamaIndexReader
    name = "llamaindex-reader"
    source_class = LlamaIndexReaderSource

    def describe(self, value: LlamaIndexReader, /) -> LlamaIndexReaderSource:
        """Run the reader and return a captured source of its documents."""

        def documents() -> Iterator[CapturedDocument]:
            # called within, where its failures are reported
            for document in value.reader.load_data(**value.arguments):
                yield _kept(document, value.origin)

        return LlamaIndexReaderSource(**describe_documents(documents(), value.origin))

    def load(self, source: LlamaIndexReaderSource, /) -> tuple[Any, ...]:
        """Return the documents.

        Raises:
            OptionalDependencyError: LlamaIndex is not installed.
        """
        return _restored(source)

    def passages(self, source: LlamaIndexReaderSource, value: object, /) -> Iterator[Passage]:
        """Yield the text of every document."""
        return document_passages(source)
