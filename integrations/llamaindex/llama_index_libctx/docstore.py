"""Docstore and index store in the library file, each change one transaction."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import apsw
from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.index_store.keyval_index_store import KVIndexStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from libctx_core.concurrency import run_sync
from llama_index_libctx.kvstore import KeyValueView, LibraryKVStore
from llama_index_libctx.library import PathOrLibrary

T = TypeVar("T")

_METADATA_SUFFIX = "/metadata"


def namespace_of(collection_name: str) -> str:
    """Return the docstore namespace that belongs to a collection of nodes."""
    return f"docstore:{collection_name}"


def forget_hash(connection: apsw.Connection, collection_name: str, ref_doc_id: str) -> None:
    """Forget what a document of a collection looked like, so that a refresh stores it again."""
    connection.execute(
        "DELETE FROM llama_index_kv WHERE collection = ? AND key = ?",
        (namespace_of(collection_name) + _METADATA_SUFFIX, ref_doc_id),
    )


def forget_hashes(connection: apsw.Connection, collection_name: str) -> None:
    """Forget what all documents of a collection looked like; entries of nodes stay."""
    connection.execute(
        "DELETE FROM llama_index_kv WHERE collection = ? AND value ->> '$.ref_doc_id' IS NULL",
        (namespace_of(collection_name) + _METADATA_SUFFIX,),
    )


class _DocumentsInView(KVDocumentStore):
    """The docstore's logic on the pairs of one transaction."""

    def delete_document(self, doc_id: str, raise_error: bool = True) -> None:
        """Delete a document, also one of which only the hash was stored.

        Raises:
            ValueError: Nothing is known of the document, and `raise_error` is set.
        """
        self._remove_from_ref_doc_node(doc_id)
        had_text = self._kvstore.delete(doc_id, collection=self._node_collection)
        had_hash = self._kvstore.delete(doc_id, collection=self._metadata_collection)
        if raise_error and not (had_text or had_hash):
            raise ValueError(f"doc_id {doc_id} not found.")

    def forget(self, ref_doc_id: str) -> None:
        """Delete all that is known of a document: its nodes, their list, its text and its hash."""
        self.delete_ref_doc(ref_doc_id, raise_error=False)
        self.delete_document(ref_doc_id, raise_error=False)


class LibraryDocumentStore(KVDocumentStore):
    """LlamaIndex's document store in a library file.

    Each change runs in one transaction, so concurrent writers never lose an entry of a
    document's node list, and a failing write leaves nothing behind.

    Args:
        kvstore: Where the pairs are kept: a `LibraryKVStore`, a library or a path.
        namespace: Prefix of the pairs. Stores of different namespaces know nothing of
            each other.
        vector_store: A store that keeps nodes with their text. A node this store does
            not hold is looked up there, so that `PrevNextNodePostprocessor` and its like
            work on an index whose nodes live in the vector store.
    """

    def __init__(
        self,
        kvstore: LibraryKVStore | PathOrLibrary,
        namespace: str | None = None,
        *,
        vector_store: BasePydanticVectorStore | None = None,
    ) -> None:
        self._pairs = kvstore if isinstance(kvstore, LibraryKVStore) else LibraryKVStore(kvstore)
        super().__init__(self._pairs, namespace, metadata_collection_suffix=_METADATA_SUFFIX)
        self._vector_store = vector_store

    @property
    def namespace(self) -> str:
        """Prefix of the pairs."""
        return self._namespace

    def inside(self, view: KeyValueView) -> _DocumentsInView:
        """Return this docstore as one transaction sees it."""
        return _DocumentsInView(view, self._namespace, metadata_collection_suffix=_METADATA_SUFFIX)

    def _change(self, work: Callable[[_DocumentsInView], T]) -> T:
        return self._pairs.write(lambda view: work(self.inside(view)))

    def add_documents(
        self,
        docs: Sequence[BaseNode],
        allow_update: bool = True,
        batch_size: int | None = None,
        store_text: bool = True,
    ) -> None:
        """Store documents or nodes, their hashes and the node lists of their documents.

        Raises:
            ValueError: One is stored already and `allow_update` is False; nothing is written.
        """
        if docs:
            self._change(lambda inside: inside.add_documents(docs, allow_update, batch_size, store_text))

    async def async_add_documents(
        self,
        docs: Sequence[BaseNode],
        allow_update: bool = True,
        batch_size: int | None = None,
        store_text: bool = True,
    ) -> None:
        """Store documents off the event loop; see `add_documents`."""
        await run_sync(self.add_documents, docs, allow_update, batch_size, store_text)

    def get_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:
        """Return a document or node, also one that only the vector store holds.

        Raises:
            ValueError: There is none, and `raise_error` is set.
        """
        found = super().get_document(doc_id, raise_error=False)
        if found is None and self._vector_store is not None:
            found = next(iter(self._vector_store.get_nodes(node_ids=[doc_id])), None)
        if found is None and raise_error:
            raise ValueError(f"doc_id {doc_id} not found.")
        return found

    async def aget_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:
        """Return a document or node off the event loop; see `get_document`."""
        return await run_sync(self.get_document, doc_id, raise_error)

    def document_exists(self, doc_id: str) -> bool:
        """Return whether `get_document` finds one."""
        return self.get_document(doc_id, raise_error=False) is not None

    async def adocument_exists(self, doc_id: str) -> bool:
        """Return whether `get_document` finds one."""
        return await run_sync(self.document_exists, doc_id)

    def delete_document(self, doc_id: str, raise_error: bool = True) -> None:
        """Delete a document or node and its hash, and take it off its document's node list.

        Raises:
            ValueError: Nothing is known of it, and `raise_error` is set.
        """
        self._change(lambda inside: inside.delete_document(doc_id, raise_error))

    async def adelete_document(self, doc_id: str, raise_error: bool = True) -> None:
        """Delete a document off the event loop; see `delete_document`."""
        await run_sync(self.delete_document, doc_id, raise_error)

    def delete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:
        """Delete a document, its nodes and its hash.

        Raises:
            ValueError: No node list of it is stored, and `raise_error` is set.
        """

        def delete(inside: _DocumentsInView) -> None:
            if raise_error:
                inside.delete_ref_doc(ref_doc_id)
            inside.forget(ref_doc_id)

        self._change(delete)

    async def adelete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:
        """Delete a document off the event loop; see `delete_ref_doc`."""
        await run_sync(self.delete_ref_doc, ref_doc_id, raise_error)

    def get_all_document_hashes(self) -> dict[str, str]:
        """Return every stored hash with the id of its document.

        Documents of equal content have equal hashes. The first keeps the hash as its
        key, each further one gets its id appended, so that the values name every document.
        """
        hashes: dict[str, str] = {}
        for doc_id, entry in self._pairs.get_all(collection=self._metadata_collection).items():
            doc_hash = entry.get("doc_hash")
            if doc_hash:
                hashes[f"{doc_hash}:{doc_id}" if doc_hash in hashes else doc_hash] = doc_id
        return hashes

    async def aget_all_document_hashes(self) -> dict[str, str]:
        """Return every stored hash off the event loop; see `get_all_document_hashes`."""
        return await run_sync(self.get_all_document_hashes)

    def document_hashes(self) -> dict[str, str]:
        """Return the hash of every document, by id; nodes cut from documents are left out."""
        return {
            doc_id: entry["doc_hash"]
            for doc_id, entry in self._pairs.get_all(collection=self._metadata_collection).items()
            if entry.get("doc_hash") and "ref_doc_id" not in entry
        }

    def replace_documents(
        self, outdated: Iterable[str], docs: Sequence[BaseNode], hashes: Mapping[str, str], *, store_text: bool = True
    ) -> None:
        """Forget some documents, store others and set hashes, all in one transaction.

        Args:
            outdated: Ids of the documents to forget.
            docs: Documents, or nodes cut from documents, to store.
            hashes: Hash by document id.
            store_text: Whether to keep the text of `docs`, or their hashes only.
        """

        def replace(inside: _DocumentsInView) -> None:
            for ref_doc_id in outdated:
                inside.forget(ref_doc_id)
            inside.add_documents(docs, store_text=store_text)
            inside.set_document_hashes(dict(hashes))

        self._change(replace)


class LibraryIndexStore(KVIndexStore):
    """LlamaIndex's index store in a library file.

    Args:
        kvstore: Where the pairs are kept: a `LibraryKVStore`, a library or a path.
        namespace: Prefix of the pairs.
    """

    def __init__(self, kvstore: LibraryKVStore | PathOrLibrary, namespace: str | None = None) -> None:
        super().__init__(kvstore if isinstance(kvstore, LibraryKVStore) else LibraryKVStore(kvstore), namespace)
