"""A library file as LlamaIndex vector store."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Self

import fsspec  # type: ignore[import-untyped]
from fsspec.implementations.local import LocalFileSystem  # type: ignore[import-untyped]
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.simple import DEFAULT_VECTOR_STORE, NAMESPACE_SEP
from llama_index.core.vector_stores.types import (
    DEFAULT_PERSIST_DIR,
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from llama_index_instrumentation import get_dispatcher

from libctx_core.access import Scope
from libctx_core.concurrency import run_sync
from libctx_core.errors import InvalidInputError
from libctx_core.search.collection import VectorCollection
from llama_index_libctx.docstore import forget_hash, forget_hashes
from llama_index_libctx.events import LibraryWriteEvent
from llama_index_libctx.filters import to_filter
from llama_index_libctx.kvstore import KEY_VALUES
from llama_index_libctx.lengths import lengths_explained
from llama_index_libctx.library import MEMORY, LibraryLease, PathOrLibrary, lease
from llama_index_libctx.nodes import to_item, to_node
from llama_index_libctx.queries import answer
from llama_index_libctx.reopening import reopening_state

dispatcher = get_dispatcher(__name__)

LIBRARY_FNAME: Final = "library.sqlite"
"""Name of the library in a directory that holds one."""

_FIXED: Final = {"stores_text": True, "is_embedding_query": True, "flat_metadata": False}


class LibraryVectorStore(BasePydanticVectorStore):
    """Nodes with text, metadata and vectors in one SQLite file, found exactly.

    Every filter operator, condition and nesting is answered in SQL; `doc_ids`, `node_ids`
    and filters restrict together, before the best are chosen. ``DEFAULT`` and ``MMR``
    search by vector, ``SPARSE`` and ``TEXT_SEARCH`` by words, ``HYBRID`` by both; a mode
    that is not offered is refused. Similarity is the cosine, from -1 to 1.

    A query without a vector returns what the restrictions admit. An empty `node_ids`
    restricts nothing, because that is what LlamaIndex's own retriever passes; an empty
    `doc_ids` admits nothing.

    Args:
        path: The library's file, an open library, or ``":memory:"``.
        collection_name: Which of the file's node collections to use.
        embed_dim: Length of the vectors; None lets the first one fix it.
        embed_model_name: Identity of the embedding model. The file remembers it, and
            refuses nodes and questions of another one.
        scope: Access scope that every call of this store is held to.

    Raises:
        TypeError: An argument is unknown.
    """

    stores_text: bool = True
    is_embedding_query: bool = True
    flat_metadata: bool = False

    path: str = Field(default=MEMORY, description="File of the library.")
    collection_name: str = Field(default="default", description="Collection of nodes in the file.")
    embed_dim: int | None = Field(default=None, description="Length of the vectors.")
    embed_model_name: str | None = Field(default=None, description="Identity of the embedding model.")

    _lease: LibraryLease = PrivateAttr()
    _collection: VectorCollection = PrivateAttr()
    _scope: Scope | None = PrivateAttr()

    def __init__(
        self,
        path: PathOrLibrary = MEMORY,
        collection_name: str = "default",
        *,
        embed_dim: int | None = None,
        embed_model_name: str | None = None,
        scope: Scope | None = None,
        **fixed: Any,
    ) -> None:
        wrong = sorted(name for name, value in fixed.items() if _FIXED.get(name) is not value and name != "class_name")
        if wrong:
            raise TypeError(f"LibraryVectorStore does not take {', '.join(wrong)}")
        shared = lease(path)
        super().__init__(
            stores_text=True,
            path=shared.path,
            collection_name=collection_name,
            embed_dim=embed_dim,
            embed_model_name=embed_model_name,
        )
        self._lease = shared
        self._scope = scope
        self._collection = shared.collection(
            collection_name, dimension=embed_dim, profile=embed_model_name, scope=scope
        )

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the store is serialised."""
        return "LibraryVectorStore"

    @classmethod
    def from_params(
        cls,
        path: PathOrLibrary | None = None,
        collection_name: str = "default",
        *,
        persist_dir: str | os.PathLike[str] | None = None,
        embed_dim: int | None = None,
        embed_model_name: str | None = None,
        scope: Scope | None = None,
    ) -> Self:
        """Open the store in a file, in a directory, or in memory where neither is given.

        Raises:
            InvalidInputError: Both a file and a directory are given.
        """
        if persist_dir is not None:
            if path is not None:
                raise InvalidInputError("persist_dir", "names the file too; give it or path")
            path = Path(persist_dir) / LIBRARY_FNAME
        return cls(
            MEMORY if path is None else path,
            collection_name,
            embed_dim=embed_dim,
            embed_model_name=embed_model_name,
            scope=scope,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what opens the store again elsewhere; see `reopening_state`."""
        return reopening_state(self, self._scope)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # a copy goes on using the same open file
        return self.model_copy()

    @property
    def client(self) -> VectorCollection:
        """The core's collection of nodes."""
        return self._collection

    # -- writing --------------------------------------------------------------

    @dispatcher.span
    def add(self, nodes: Sequence[BaseNode], **add_kwargs: Any) -> list[str]:
        """Store nodes in one transaction, replacing those whose id is stored; return their ids in order.

        Raises:
            ValueError: A node has no embedding.
            VectorLengthError: A vector has another length than the stored ones.
            EmbeddingProfileError: Another embedding model made the stored vectors.
        """
        with lengths_explained(self._collection):
            ids = self._collection.upsert([to_item(node) for node in nodes])
        self._tell("add", len(ids))
        return ids

    def replace_documents(self, ref_doc_ids: Iterable[str], nodes: Sequence[BaseNode]) -> list[str]:
        """Delete the nodes of documents and store others, in one transaction; return the new ids.

        Whoever reads meanwhile sees the old nodes or the new ones, never neither.
        """
        with lengths_explained(self._collection):
            ids = self._collection.upsert([to_item(node) for node in nodes], replacing=list(ref_doc_ids))
        self._tell("add", len(ids))
        return ids

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Store nodes off the event loop; see `add`."""
        return await run_sync(self.add, nodes)

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document, and its hash in the docstores of this collection.

        An unknown document is nothing to do.
        """
        self._lease.database.ensure(KEY_VALUES)
        count = self._collection.delete(
            refs=[ref_doc_id], also=lambda connection: forget_hash(connection, self.collection_name, ref_doc_id)
        )
        self._tell("delete", count)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document off the event loop."""
        await run_sync(self.delete, ref_doc_id)

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete the named nodes, or those a filter matches, or the ones that meet both.

        Raises:
            ValueError: Neither is given; `clear` is what empties a store.
        """
        self._tell("delete_nodes", self._collection.delete(node_ids, where=to_filter(filters)))

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **delete_kwargs: Any
    ) -> None:
        """Delete nodes off the event loop; see `delete_nodes`."""
        await run_sync(self.delete_nodes, node_ids, filters)

    def clear(self, **clear_kwargs: Any) -> None:
        """Delete every node and the documents' hashes; the next may have vectors of another length."""
        self._lease.database.ensure(KEY_VALUES)
        self._collection.clear(also=lambda connection: forget_hashes(connection, self.collection_name))
        self._tell("clear", None)

    async def aclear(self, **clear_kwargs: Any) -> None:
        """Delete every node off the event loop."""
        await run_sync(self.clear)

    def _tell(self, operation: str, count: int | None) -> None:
        dispatcher.event(LibraryWriteEvent(collection_name=self.collection_name, operation=operation, count=count))

    # -- reading --------------------------------------------------------------

    def get_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        include_embeddings: bool = True,
        **get_kwargs: Any,
    ) -> list[BaseNode]:
        """Return new copies of the nodes that are named and match, all of them if neither is given.

        Args:
            node_ids: Only these; unknown ids are left out.
            filters: Only what matches.
            include_embeddings: Fill in each node's embedding.
            **get_kwargs: Ignored; other stores have arguments of their own here.
        """
        items = self._collection.get(node_ids, where=to_filter(filters), with_vectors=include_embeddings)
        return [to_node(item) for item in items]

    async def aget_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        *,
        include_embeddings: bool = True,
        **get_kwargs: Any,
    ) -> list[BaseNode]:
        """Return nodes off the event loop; see `get_nodes`."""
        return await run_sync(self.get_nodes, node_ids, filters, include_embeddings=include_embeddings)

    @dispatcher.span
    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the best nodes, best first, with their similarities.

        Args:
            query: The question. `sparse_top_k` and `similarity_top_k` are the sizes of the
                two sides of a hybrid query, `hybrid_top_k` that of its answer; `alpha` is
                the weight of the vector side, 0 and 1 included.
            **kwargs: ``mmr_threshold`` goes before the query's own; ``mmr_prefetch_k`` or
                ``mmr_prefetch_factor`` say how many candidates MMR chooses from.

        Raises:
            ValueError: The mode is not offered, or lacks what it needs.
            VectorLengthError: The question's vector has another length than the stored ones.
        """
        with lengths_explained(self._collection):
            return answer(self._collection, query, kwargs)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Return the best nodes off the event loop; see `query`."""
        return await run_sync(self.query, query, **kwargs)

    # -- files ----------------------------------------------------------------

    def persist(self, persist_path: str, fs: fsspec.AbstractFileSystem | None = None) -> None:
        """Copy the nodes to the library in a directory; nothing to do where they are there already.

        Every change is durable when its call returns, so this is needed only for a store
        in memory, or to have a second copy. LlamaIndex calls it with
        ``<directory>/<namespace>__vector_store.json``: the copy goes to
        ``<directory>/library.sqlite``, where `from_persist_dir` finds it.

        Raises:
            InvalidInputError: The file system is not the local one.
        """
        _require_local(fs)
        directory, name = Path(persist_path).parent, Path(persist_path).name
        target = LibraryVectorStore(directory / LIBRARY_FNAME, name.partition(NAMESPACE_SEP)[0] or "default")
        if target.path == self.path:
            return
        target.clear()
        target.client.upsert(self._collection.get(with_vectors=True))

    @classmethod
    def from_persist_dir(
        cls,
        persist_dir: str = DEFAULT_PERSIST_DIR,
        namespace: str = DEFAULT_VECTOR_STORE,
        fs: fsspec.AbstractFileSystem | None = None,
    ) -> Self:
        """Open the library in a directory, creating it where it is missing.

        Args:
            persist_dir: The directory.
            namespace: The collection in it.
            fs: Only the local file system can hold a library.
        """
        _require_local(fs)
        return cls(Path(persist_dir) / LIBRARY_FNAME, namespace)

    @classmethod
    def from_namespaced_persist_dir(
        cls, persist_dir: str = DEFAULT_PERSIST_DIR, fs: fsspec.AbstractFileSystem | None = None
    ) -> dict[str, BasePydanticVectorStore]:
        """Return a store for each collection of nodes in a directory's library, by name."""
        store = cls.from_persist_dir(persist_dir, fs=fs)
        names = [DEFAULT_VECTOR_STORE, *store._lease.collection_names()]  # noqa: SLF001 - its own class
        return {name: cls.from_persist_dir(persist_dir, name) for name in names}


def _require_local(fs: fsspec.AbstractFileSystem | None) -> None:
    if fs is not None and not isinstance(fs, LocalFileSystem):
        raise InvalidInputError("fs", "must be the local file system; SQLite needs a local file")
