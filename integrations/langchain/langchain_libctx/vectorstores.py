"""`LibraryVectorStore`: documents of a library as a LangChain vector store."""

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from langchain_libctx.embeddings import LibraryEmbeddings, profile_of
from langchain_libctx.opening import LibrarySource, open_library
from libctx_core.access.metadata import ResourceMetadata
from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.errors import InvalidInputError
from libctx_core.models import new_id
from libctx_core.search.collection import VectorCollection
from libctx_core.search.collection_guard import CollectionGuard
from libctx_core.search.collection_items import CollectionHit, CollectionItem
from libctx_core.search.collection_query import Mode, QueryOptions
from libctx_core.search.filters import And, Filter
from libctx_core.search.filters_mapping import parse_filter
from libctx_core.search.vectors import VectorIndex
from libctx_core.store.database import Database

MetadataFilter = Mapping[str, Any] | Filter | None

_indexes: "weakref.WeakKeyDictionary[Database, VectorIndex]" = weakref.WeakKeyDictionary()


def shared_index(database: Database) -> VectorIndex:
    """Return the vector index that all stores of one open file share."""
    index = _indexes.get(database)
    if index is None:
        index = _indexes.setdefault(database, VectorIndex())
    return index


class LibraryVectorStore(VectorStore):
    """Documents, their vectors and their metadata in a library file.

    Writing is one transaction and an upsert by id. Filters are mappings such as
    ``{"year": {"$gte": 2020}, "lang": "en"}``; an unknown operator is refused. Besides
    similarity and MMR there are ``mode="text"`` and ``mode="hybrid"``.

    Args:
        library: An open library or view, or a path that this object then owns.
        embedding: Makes the vectors; by default the library's packaged embedder.
        name: Name of the collection of documents.
        collection: Namespace it lives in; the library's by default.
        scope: Held for every call.
        resource: Access metadata to enrol the collection with when it is created.
        filter: Holds for every search, `get_by_ids` and `delete`, beside whatever filter
            the caller gives: a caller can narrow it and never widen it.
        mode: How `similarity_search` and its like search: ``"vector"``, ``"text"`` or ``"hybrid"``.
        embedding_profile: Identity of the embeddings, where class and model name do not tell.

    Raises:
        InvalidFilterError: `filter` cannot be meant.
    """

    def __init__(
        self,
        library: LibrarySource,
        embedding: Embeddings | None = None,
        *,
        name: str = "documents",
        collection: str | None = None,
        scope: Scope | None = None,
        resource: ResourceMetadata | None = None,
        filter: MetadataFilter = None,  # noqa: A002 - the name that vector stores of LangChain use
        mode: Mode = "vector",
        embedding_profile: str | None = None,
    ) -> None:
        view, self._owned = open_library(library, scope)
        self._embedding = embedding or LibraryEmbeddings(view.embedder)
        self._bound = filter_of(filter)
        self._mode: Mode = mode
        namespace = collection or view.namespace
        self.items = VectorCollection(
            view.database,
            name,
            collection=namespace,
            profile=embedding_profile or profile_of(self._embedding),
            index=shared_index(view.database),
            guard=CollectionGuard(view.authority, namespace, name, resource),
        )

    @property
    def embeddings(self) -> Embeddings:
        """Makes the vectors."""
        return self._embedding

    def close(self) -> None:
        """Close the library if this object opened it."""
        if self._owned is not None:
            self._owned.close()

    # -- writing --------------------------------------------------------------

    def add_documents(
        self, documents: list[Document], ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """Store documents and return their ids.

        Args:
            documents: What to store; not changed.
            ids: Their ids; a document's own id counts where none is given, and a fresh one
                is made where it has none.
            **kwargs: Ignored.

        Raises:
            InvalidInputError: Metadata is not JSON, or there are not as many ids as documents.
            EmbeddingProfileError: The collection was filled with other embeddings.
        """
        names = _names(documents, ids)
        vectors = self._embedding.embed_documents([document.page_content for document in documents])
        return self.items.upsert(_items(documents, names, vectors))

    async def aadd_documents(
        self, documents: list[Document], ids: Sequence[str | None] | None = None, **kwargs: Any
    ) -> list[str]:
        """See `add_documents`."""
        names = _names(documents, ids)
        vectors = await self._embedding.aembed_documents([document.page_content for document in documents])
        return await self.items.aupsert(_items(documents, names, vectors))

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Store texts and return their ids; see `add_documents`."""
        return self.add_documents(_documents(texts, metadatas), ids)

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """See `add_texts`."""
        return await self.aadd_documents(_documents(texts, metadatas), ids)

    def delete(self, ids: list[str] | None = None, *, filter: MetadataFilter = None, **kwargs: Any) -> bool:  # noqa: A002
        """Delete documents by id, by filter, or all of them; ids that are not there are no error."""
        where = self._where(filter)
        if ids is None and where is None:
            self.items.clear()
        else:
            self.items.delete(ids, where=where)
        return True

    async def adelete(self, ids: list[str] | None = None, *, filter: MetadataFilter = None, **kwargs: Any) -> bool:  # noqa: A002
        """See `delete`; one thread hop."""
        return await run_sync(lambda: self.delete(ids, filter=filter))

    # -- reading --------------------------------------------------------------

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids; those that are not there are left out."""
        return [_document(item) for item in self.items.get(list(ids), where=self._bound)]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """See `get_by_ids`."""
        return [_document(item) for item in await self.items.aget(list(ids), where=self._bound)]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the documents closest to a question; ``filter=`` and ``mode=`` as in the class."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """See `similarity_search`."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """Return documents and scores, the best first: the cosine, or 0 to 1 in the other modes."""
        mode = self._mode_of(kwargs)
        vector = None if mode == "text" else self._embedding.embed_query(query)
        return _scored(self.items.query(vector, query, k, **self._options(kwargs, mode)))

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """See `similarity_search_with_score`."""
        mode = self._mode_of(kwargs)
        vector = None if mode == "text" else await self._embedding.aembed_query(query)
        return _scored(await self.items.aquery(vector, query, k, **self._options(kwargs, mode)))

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the documents closest to a vector."""
        hits = self.items.query(embedding, None, k, **self._options(kwargs, "vector"))
        return [_document(hit.item) for hit in hits]

    async def asimilarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """See `similarity_search_by_vector`."""
        hits = await self.items.aquery(embedding, None, k, **self._options(kwargs, "vector"))
        return [_document(hit.item) for hit in hits]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return documents close to a question and different from each other.

        Args:
            query: The question.
            k: How many.
            fetch_k: Candidates to choose from.
            lambda_mult: 1 for the closest, 0 for the most different.
            **kwargs: ``filter=`` as in the class.
        """
        return self.max_marginal_relevance_search_by_vector(
            self._embedding.embed_query(query), k, fetch_k, lambda_mult, **kwargs
        )

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """See `max_marginal_relevance_search`."""
        return await self.amax_marginal_relevance_search_by_vector(
            await self._embedding.aembed_query(query), k, fetch_k, lambda_mult, **kwargs
        )

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return documents close to a vector and different from each other."""
        options = self._options(kwargs, "mmr", fetch_k, lambda_mult)
        return [_document(hit.item) for hit in self.items.query(embedding, None, k, **options)]

    async def amax_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """See `max_marginal_relevance_search_by_vector`."""
        options = self._options(kwargs, "mmr", fetch_k, lambda_mult)
        return [_document(hit.item) for hit in await self.items.aquery(embedding, None, k, **options)]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return relevance_of_cosine if self._mode == "vector" else _clamped

    def _mode_of(self, kwargs: Mapping[str, Any]) -> Mode:
        mode: Mode = kwargs.get("mode", self._mode)
        return mode

    def _options(
        self, kwargs: Mapping[str, Any], mode: Mode, fetch_k: int | None = None, mmr_lambda: float = 0.5
    ) -> QueryOptions:
        return {
            "where": self._where(kwargs.get("filter")),
            "mode": mode,
            "fetch_k": fetch_k,
            "mmr_lambda": mmr_lambda,
        }

    def _where(self, wanted: MetadataFilter) -> Filter | None:
        given = filter_of(wanted)
        if self._bound is None or given is None:
            return given if self._bound is None else self._bound
        return And((self._bound, given))

    # -- making ---------------------------------------------------------------

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        library: LibrarySource = ":memory:",
        **kwargs: Any,
    ) -> Self:
        """Make a store that holds these texts.

        Args:
            texts: The texts.
            embedding: Makes the vectors.
            metadatas: One mapping per text.
            ids: One id per text.
            library: Where to store them; by default a library in memory.
            **kwargs: Further arguments of the class.
        """
        store = cls(library, embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        library: LibrarySource = ":memory:",
        **kwargs: Any,
    ) -> Self:
        """See `from_texts`."""
        store = await run_sync(lambda: cls(library, embedding, **kwargs))
        await store.aadd_texts(texts, metadatas, ids=ids)
        return store


def filter_of(wanted: MetadataFilter) -> Filter | None:
    """Return a filter given as a mapping or as the library's own tree.

    Raises:
        InvalidFilterError: A mapping with an unknown operator, or of another shape.
    """
    return parse_filter(wanted) if wanted is None or isinstance(wanted, Mapping) else wanted


def relevance_of_cosine(score: float) -> float:
    """Return a cosine as a relevance between 0 (opposite) and 1 (equal)."""
    return _clamped((score + 1) / 2)


def _clamped(score: float) -> float:
    return min(1.0, max(0.0, score))


def _documents(texts: Iterable[str], metadatas: Sequence[dict[str, Any]] | None) -> list[Document]:
    listed = list(texts)
    given = [{} for _ in listed] if metadatas is None else list(metadatas)
    if len(given) != len(listed):
        raise InvalidInputError("metadatas", f"{len(given)} given for {len(listed)} texts")
    return [Document(page_content=text, metadata=metadata) for text, metadata in zip(listed, given, strict=True)]


def _names(documents: Sequence[Document], ids: Sequence[str | None] | None) -> list[str]:
    given = [None for _ in documents] if ids is None else list(ids)
    if len(given) != len(documents):
        raise InvalidInputError("ids", f"{len(given)} given for {len(documents)} documents")
    return [name or document.id or new_id("doc") for name, document in zip(given, documents, strict=True)]


def _items(
    documents: Sequence[Document], names: Sequence[str], vectors: Sequence[Sequence[float]]
) -> list[CollectionItem]:
    return [
        CollectionItem(key=name, text=document.page_content, vector=vector, metadata=document.metadata)
        for document, name, vector in zip(documents, names, vectors, strict=True)
    ]


def _document(item: CollectionItem) -> Document:
    return Document(id=item.key, page_content=item.text, metadata=dict(item.metadata))


def _scored(hits: Sequence[CollectionHit]) -> list[tuple[Document, float]]:
    return [(_document(hit.item), hit.score) for hit in hits]
