"""Documents across the border: a library's sources as LangChain documents, and loaders onto a shelf."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from libctx_core.concurrency import Portal
from libctx_core.library import LibraryView
from libctx_core.sources import Source, Sources


def text_of_value(value: object) -> str:
    """Return what a source reads as text: text itself, UTF-8 bytes, or the texts of documents."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Document):
        return value.page_content
    if isinstance(value, tuple | list):
        return "\n\n".join(text_of_value(item) for item in value)
    return str(value)


class SourceLoader(BaseLoader):
    """Loads the sources of a library as documents.

    Args:
        sources: The sources.
        text_of: Turns what a source reads as into text.
    """

    def __init__(self, sources: Sources, *, text_of: Callable[[Any], str] = text_of_value) -> None:
        self._sources = sources
        self._text_of = text_of

    def lazy_load(self) -> Iterator[Document]:
        """Yield a document for each source; its reference is in the metadata."""
        portal = Portal()
        try:
            for source in portal.call(self._sources.list):
                yield portal.call(self._document, source)
        finally:
            portal.close()

    async def alazy_load(self) -> AsyncIterator[Document]:
        """See `lazy_load`."""
        for source in await self._sources.list():
            yield await self._document(source)

    async def _document(self, source: Source) -> Document:
        ref = self._sources.catalog.as_ref(source)
        metadata = {"source_type": ref.source_type, "source_id": ref.source_id}
        return Document(page_content=self._text_of(await self._sources.read(source)), metadata=metadata)


def shelve_documents(
    library: LibraryView, documents: BaseLoader | Iterable[Document], *, collection: str | None = None, **options: Any
) -> list[str]:
    """Put LangChain documents on a shelf of the library; return their record ids.

    Args:
        library: The library.
        documents: Documents, or a loader that yields them.
        collection: Collection of the shelf; the library's by default.
        **options: Further arguments of `LibraryView.shelve_document`.
    """
    found: list[str] = []
    for document in documents.lazy_load() if isinstance(documents, BaseLoader) else documents:
        found.extend(
            library.shelve_document(
                document.page_content,
                collection=collection,
                **{"document_id": document.id, "metadata": document.metadata or None, **options},
            )
        )
    return found
