"""LlamaIndex's vector index on a library file, without its traps."""

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, Self

from llama_index.core import VectorStoreIndex
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.data_structs.data_structs import IndexDict
from llama_index.core.embeddings.utils import EmbedType, resolve_embed_model
from llama_index.core.indices.vector_store.retrievers import VectorIndexRetriever
from llama_index.core.ingestion import DocstoreStrategy, arun_transformations, run_transformations
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.schema import BaseNode, Document, ImageNode, IndexNode, TransformComponent
from llama_index.core.settings import Settings
from llama_index.core.storage.docstore.types import RefDocInfo
from llama_index.core.storage.storage_context import StorageContext

from libctx_core.access import Scope
from libctx_core.concurrency import run_sync
from llama_index_libctx.docstore import LibraryDocumentStore
from llama_index_libctx.ingestion_plan import IngestionPlan, plan_ingestion
from llama_index_libctx.library import PathOrLibrary
from llama_index_libctx.storage import library_storage_context
from llama_index_libctx.vector_store import LibraryVectorStore

_UNNAMED_MODEL: Final = "unknown"
"""What LlamaIndex calls a model that was given no name."""


class LibraryVectorIndex(VectorStoreIndex):
    """A `VectorStoreIndex` over a `library_storage_context`.

    It differs where the original loses or doubles data: documents are transformed and
    embedded first and then replace what is stored under their ids in one transaction;
    deleting one forgets its hash; a retriever sees nodes of every kind, and those added
    later, and refuses arguments it does not know.

    Open one with `from_library`, or hand the constructor the arguments of
    `VectorStoreIndex` with a library's storage context.
    """

    _vector_store: LibraryVectorStore
    _docstore: LibraryDocumentStore

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        storage_context: StorageContext | None = None,
        **kwargs: Any,
    ) -> None:
        if storage_context is None or not (
            isinstance(storage_context.vector_store, LibraryVectorStore)
            and isinstance(storage_context.docstore, LibraryDocumentStore)
        ):
            raise TypeError("LibraryVectorIndex needs storage_context=library_storage_context(...)")
        super().__init__(nodes=nodes, storage_context=storage_context, **kwargs)

    @classmethod
    def from_library(
        cls,
        library: PathOrLibrary,
        collection_name: str = "default",
        *,
        embed_model: EmbedType | None = None,
        scope: Scope | None = None,
        **kwargs: Any,
    ) -> Self:
        """Open the index of a collection, empty or filled.

        A model with a name is remembered by the file, which then refuses another one.

        Args:
            library: An open library or the path of its file.
            collection_name: Which of the file's node collections to use.
            embed_model: Embeds documents and questions; LlamaIndex's setting by default.
            scope: Access scope that every call is held to.
            **kwargs: Further arguments of `VectorStoreIndex`.
        """
        model = resolve_embed_model(embed_model or Settings.embed_model)
        name = getattr(model, "model_name", _UNNAMED_MODEL)
        context = library_storage_context(
            library,
            collection_name,
            embed_model_name=None if name == _UNNAMED_MODEL else name,
            scope=scope,
        )
        struct = context.index_store.get_index_struct(collection_name) or IndexDict(index_id=collection_name)
        return cls(index_struct=struct, storage_context=context, embed_model=model, **kwargs)

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        storage_context: StorageContext | None = None,
        show_progress: bool = False,
        callback_manager: Any = None,
        transformations: list[TransformComponent] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Open the index of a storage context and store documents in it; unchanged ones cost nothing."""
        index = cls(
            nodes=[],
            storage_context=storage_context,
            show_progress=show_progress,
            callback_manager=callback_manager,
            transformations=transformations,
            **kwargs,
        )
        index.refresh_ref_docs(documents)
        return index

    # -- asking ---------------------------------------------------------------

    def as_retriever(self, **kwargs: Any) -> VectorIndexRetriever:
        """Return a retriever over all nodes of the collection.

        Args:
            **kwargs: Arguments of `VectorIndexRetriever`, and ``mmr_threshold``.

        Raises:
            TypeError: An argument is none of these, nor one of the engines that pass
                theirs along.
        """
        unknown = sorted(kwargs.keys() - _retriever_arguments() - _engine_arguments())
        if unknown:
            known = ", ".join(sorted(_retriever_arguments()))
            raise TypeError(f"as_retriever() does not take {', '.join(unknown)}; it takes {known}")
        options = {name: value for name, value in kwargs.items() if name in _retriever_arguments()}
        threshold = options.pop("mmr_threshold", None)
        if threshold is not None:
            options["vector_store_kwargs"] = {"mmr_threshold": threshold, **options.get("vector_store_kwargs", {})}
        return VectorIndexRetriever(
            self,
            **{"callback_manager": self._callback_manager, "object_map": self._object_map, **options},
        )

    @property
    def ref_doc_info(self) -> dict[str, RefDocInfo]:
        """The stored documents, each with its nodes and the metadata of the first."""
        found: dict[str, RefDocInfo] = {}
        for item in self._vector_store.client.get():
            if item.ref is not None:
                info = found.setdefault(item.ref, RefDocInfo(metadata=dict(item.metadata)))
                info.node_ids.append(item.key)
        return found

    # -- storing --------------------------------------------------------------

    def insert(self, document: Document, **insert_kwargs: Any) -> None:
        """Store a document in the place of what is stored under its id."""
        self._replace(self._everything([document]), **insert_kwargs)

    async def ainsert(self, document: Document, **insert_kwargs: Any) -> None:
        """Store a document without blocking the event loop; see `insert`."""
        await self._areplace(self._everything([document]), **insert_kwargs)

    def update_ref_doc(self, document: Document, **update_kwargs: Any) -> None:
        """Store a document in the place of what is stored under its id."""
        self.insert(document, **update_kwargs.get("insert_kwargs", {}))

    async def aupdate_ref_doc(self, document: Document, **update_kwargs: Any) -> None:
        """Store a document without blocking the event loop; see `update_ref_doc`."""
        await self.ainsert(document, **update_kwargs.get("insert_kwargs", {}))

    def refresh_ref_docs(self, documents: Sequence[Document], **update_kwargs: Any) -> list[bool]:
        """Store the documents that are new or changed; return for each whether it was.

        If a transformation or the model fails, everything stays as it was.
        """
        plan = self._changes(documents)
        self._replace(plan, **update_kwargs.get("insert_kwargs", {}))
        return [document.id_ in plan.hashes for document in documents]

    async def arefresh_ref_docs(self, documents: Sequence[Document], **update_kwargs: Any) -> list[bool]:
        """Store what changed without blocking the event loop; see `refresh_ref_docs`."""
        plan = await run_sync(self._changes, documents)
        await self._areplace(plan, **update_kwargs.get("insert_kwargs", {}))
        return [document.id_ in plan.hashes for document in documents]

    def _everything(self, documents: Sequence[Document]) -> IngestionPlan:
        return plan_ingestion(documents, DocstoreStrategy.UPSERTS, stored={}, stored_hashes=())

    def _changes(self, documents: Sequence[Document]) -> IngestionPlan:
        stored = self._docstore.document_hashes()
        return plan_ingestion(documents, DocstoreStrategy.UPSERTS, stored=stored, stored_hashes=stored.values())

    def _replace(self, plan: IngestionPlan, **kwargs: Any) -> None:
        if not plan.nodes:
            return
        nodes = run_transformations(plan.nodes, self._transformations, show_progress=self._show_progress, **kwargs)
        self._validate_serializable(nodes)
        self._store(plan, self._get_node_with_embedding(nodes, self._show_progress))

    async def _areplace(self, plan: IngestionPlan, **kwargs: Any) -> None:
        if not plan.nodes:
            return
        nodes = await arun_transformations(
            plan.nodes, self._transformations, show_progress=self._show_progress, **kwargs
        )
        self._validate_serializable(nodes)
        embedded = await self._aget_node_with_embedding(nodes, self._show_progress)
        await run_sync(self._store, plan, embedded)

    def _store(self, plan: IngestionPlan, nodes: Sequence[BaseNode]) -> None:
        for doc_id in plan.outdated:
            self._forget_struct_nodes(doc_id)
        # a crash between the two leaves old hashes, and the next refresh repeats the work
        self._vector_store.replace_documents(plan.outdated, nodes)
        whole = [_without_embedding(node) for node in nodes if isinstance(node, ImageNode | IndexNode)]
        self._docstore.replace_documents(plan.outdated, whole, plan.hashes)
        for node in whole:
            self._index_struct.add_node(node, text_id=node.node_id)
        self._storage_context.index_store.add_index_struct(self._index_struct)

    # -- deleting -------------------------------------------------------------

    def delete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False, **delete_kwargs: Any) -> None:
        """Delete a document: its nodes, what the docstore knows of it, and its hash."""
        self._forget_struct_nodes(ref_doc_id)
        self._vector_store.delete(ref_doc_id)
        self._docstore.delete_ref_doc(ref_doc_id, raise_error=False)
        self._storage_context.index_store.add_index_struct(self._index_struct)

    async def adelete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = False, **delete_kwargs: Any) -> None:
        """Delete a document off the event loop; see `delete_ref_doc`."""
        await run_sync(self.delete_ref_doc, ref_doc_id)

    def delete_nodes(self, node_ids: list[str], delete_from_docstore: bool = False, **delete_kwargs: Any) -> None:
        """Delete nodes, from the docstore too where it holds them."""
        self._vector_store.delete_nodes(node_ids)
        for node_id in node_ids:
            if self._index_struct.nodes_dict.pop(node_id, None) is not None:
                self._docstore.delete_document(node_id, raise_error=False)
        self._storage_context.index_store.add_index_struct(self._index_struct)

    async def adelete_nodes(
        self, node_ids: list[str], delete_from_docstore: bool = False, **delete_kwargs: Any
    ) -> None:
        """Delete nodes off the event loop; see `delete_nodes`."""
        await run_sync(self.delete_nodes, node_ids)

    def _forget_struct_nodes(self, ref_doc_id: str) -> None:
        info = self._docstore.get_ref_doc_info(ref_doc_id)
        for node_id in [] if info is None else info.node_ids:
            self._index_struct.nodes_dict.pop(node_id, None)


def _without_embedding(node: BaseNode) -> BaseNode:
    copy = node.model_copy()
    copy.embedding = None
    return copy


@cache
def _retriever_arguments() -> frozenset[str]:
    named = _named_arguments(VectorIndexRetriever.__init__) - {"self", "index"}
    return named | {"vector_store_kwargs", "mmr_threshold"}


@cache
def _engine_arguments() -> frozenset[str]:
    """Return what `as_query_engine` and `as_chat_engine` hand to the retriever along with their own."""
    builders = (
        RetrieverQueryEngine.from_args,
        get_response_synthesizer,
        ContextChatEngine.from_defaults,
        CondensePlusContextChatEngine.from_defaults,
        CondenseQuestionChatEngine.from_defaults,
        SimpleChatEngine.from_defaults,
    )
    return frozenset().union(*(_named_arguments(builder) for builder in builders))


def _named_arguments(function: Any) -> frozenset[str]:
    parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    return frozenset(name for name, one in parameters.items() if one.kind is not inspect.Parameter.VAR_KEYWORD)
