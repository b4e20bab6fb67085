"""An ingestion pipeline that keeps what is stored until the new version is ready."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import BaseNode, Document
from llama_index_instrumentation import get_dispatcher

from libctx_core.concurrency import run_sync
from libctx_core.errors import InvalidInputError
from llama_index_libctx.docstore import LibraryDocumentStore
from llama_index_libctx.ingestion_plan import IngestionPlan, plan_ingestion
from llama_index_libctx.vector_store import LibraryVectorStore

dispatcher = get_dispatcher(__name__)


class LibraryIngestionPipeline(IngestionPipeline):
    """LlamaIndex's ingestion pipeline for a library's stores, safe against failures.

    It transforms first and then replaces each document's nodes in one transaction, so a
    transformation that fails leaves the stored version as it was. It takes the arguments
    of `IngestionPipeline`; `vector_store` and `docstore` are those of one
    `library_storage_context`. Without both it works like its parent.

    All strategies of `DocstoreStrategy` compare documents by id, so two documents of
    equal content are two documents, and one named twice in a run is stored once.
    """

    @dispatcher.span
    def run(
        self,
        show_progress: bool = False,
        documents: list[Document] | None = None,
        nodes: Sequence[BaseNode] | None = None,
        cache_collection: str | None = None,
        in_place: bool = True,
        store_doc_text: bool = True,
        num_workers: int | None = None,
        **kwargs: Any,
    ) -> Sequence[BaseNode]:
        """Ingest documents; see `IngestionPipeline.run` for the arguments.

        Raises:
            InvalidInputError: Transformed nodes have no embedding, so they could not be found.
        """
        options = {"show_progress": show_progress, "in_place": in_place, "num_workers": num_workers, **kwargs}
        stores = self._stores()
        if stores is None:
            return super().run(
                documents=documents,
                nodes=nodes,
                cache_collection=cache_collection,
                store_doc_text=store_doc_text,
                **options,
            )
        plan = self._plan(stores[1], self._prepare_inputs(documents, nodes))
        cached = self._cache_collection(cache_collection, plan)
        transformer = self._transformer()
        transformed = transformer.run(nodes=plan.nodes, cache_collection=cached, **options) if plan.nodes else []
        self._store(stores, plan, transformed, store_doc_text)
        return transformed

    @dispatcher.span
    async def arun(
        self,
        show_progress: bool = False,
        documents: list[Document] | None = None,
        nodes: Sequence[BaseNode] | None = None,
        cache_collection: str | None = None,
        in_place: bool = True,
        store_doc_text: bool = True,
        num_workers: int | None = None,
        **kwargs: Any,
    ) -> Sequence[BaseNode]:
        """Ingest documents without blocking the event loop; see `run`."""
        options = {"show_progress": show_progress, "in_place": in_place, "num_workers": num_workers, **kwargs}
        stores = self._stores()
        if stores is None:
            return await super().arun(
                documents=documents,
                nodes=nodes,
                cache_collection=cache_collection,
                store_doc_text=store_doc_text,
                **options,
            )
        inputs = await run_sync(self._prepare_inputs, documents, nodes)
        plan = await run_sync(self._plan, stores[1], inputs)
        cached = self._cache_collection(cache_collection, plan)
        transformer = self._transformer()
        transformed = await transformer.arun(nodes=plan.nodes, cache_collection=cached, **options) if plan.nodes else []
        await run_sync(self._store, stores, plan, transformed, store_doc_text)
        return transformed

    def _stores(self) -> tuple[LibraryVectorStore, LibraryDocumentStore] | None:
        if isinstance(self.vector_store, LibraryVectorStore) and isinstance(self.docstore, LibraryDocumentStore):
            return self.vector_store, self.docstore
        return None

    def _transformer(self) -> IngestionPipeline:
        return IngestionPipeline(
            name=self.name,
            project_name=self.project_name,
            transformations=self.transformations,
            cache=self.cache,
            disable_cache=self.disable_cache,
        )

    def _cache_collection(self, name: str | None, plan: IngestionPlan) -> str:
        """Return where this run's transformations are cached.

        LlamaIndex looks them up by content alone, and would hand the nodes of one
        document to another of equal content.
        """
        ids = sha256("\n".join(node.id_ for node in plan.nodes).encode()).hexdigest()
        return f"{name or self.cache.collection}/{ids}"

    def _plan(self, docstore: LibraryDocumentStore, inputs: Sequence[BaseNode]) -> IngestionPlan:
        stored = docstore.document_hashes()
        return plan_ingestion(inputs, self.docstore_strategy, stored=stored, stored_hashes=stored.values())

    def _store(
        self,
        stores: tuple[LibraryVectorStore, LibraryDocumentStore],
        plan: IngestionPlan,
        transformed: Sequence[BaseNode],
        store_doc_text: bool,
    ) -> None:
        bare = sum(node.embedding is None for node in transformed)
        if bare:
            raise InvalidInputError("transformations", f"left {bare} nodes without an embedding; end with a model")
        vector_store, docstore = stores
        # a crash between the two leaves old hashes, and the next run repeats the work
        vector_store.replace_documents(plan.outdated | plan.gone, transformed)
        docstore.replace_documents(plan.outdated | plan.gone, plan.nodes, plan.hashes, store_text=store_doc_text)
