"""The safe pipeline: what is stored stays until the new version is ready."""

import pytest
from llama_index.core.ingestion import DocstoreStrategy, IngestionCache, IngestionPipeline
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode, TransformComponent
from llama_index_libctx import LibraryIngestionPipeline, LibraryKVStore, library_storage_context

from libctx_core.errors import InvalidInputError


class Fail(TransformComponent):
    def __call__(self, nodes, **kwargs):
        raise RuntimeError("the transformation is broken")


def doc(doc_id, text="plums", **metadata):
    return Document(id_=doc_id, text=text, metadata=metadata)


@pytest.fixture(params=["sync", "async"])
def ingest(request, path, embedder):
    async def run(documents=None, *, strategy=DocstoreStrategy.UPSERTS, extra=(), transformations=None, **kwargs):
        context = library_storage_context(path)
        pipeline = LibraryIngestionPipeline(
            transformations=transformations or [SentenceSplitter(chunk_size=64, chunk_overlap=0), *extra, embedder],
            vector_store=context.vector_store,
            docstore=context.docstore,
            docstore_strategy=strategy,
        )
        if request.param == "sync":
            return pipeline.run(documents=documents, **kwargs)
        return await pipeline.arun(documents=documents, **kwargs)

    return run


def stored(path):
    nodes = library_storage_context(path).vector_store.get_nodes()
    return sorted((node.ref_doc_id, node.get_content()) for node in nodes)


async def test_unchanged_documents_cost_nothing_and_changed_ones_are_replaced(path, ingest):
    assert len(await ingest([doc("a"), doc("b", "trains")])) == 2
    assert await ingest([doc("a"), doc("b", "trains")]) == []
    assert len(await ingest([doc("a"), doc("b", "night trains")])) == 1
    assert stored(path) == [("a", "plums"), ("b", "night trains")]


async def test_a_failing_transformation_leaves_the_old_version(path, ingest):
    await ingest([doc("a", "old")])
    with pytest.raises(RuntimeError):
        await ingest([doc("a", "new")], extra=[Fail()])
    assert stored(path) == [("a", "old")]
    await ingest([doc("a", "new")])
    assert stored(path) == [("a", "new")]


async def test_a_failing_first_run_is_repeated(path, ingest):
    for strategy in DocstoreStrategy:
        with pytest.raises(RuntimeError):
            await ingest([doc("a")], strategy=strategy, extra=[Fail()])
    await ingest([doc("a")], strategy=DocstoreStrategy.DUPLICATES_ONLY)
    assert stored(path) == [("a", "plums")]


async def test_documents_that_are_gone_are_deleted_though_their_content_is_equal(path, ingest):
    delete = DocstoreStrategy.UPSERTS_AND_DELETE
    await ingest([doc("A", "same"), doc("B", "same")], strategy=delete)
    await ingest([doc("B", "same")], strategy=delete)
    assert stored(path) == [("B", "same")]
    await ingest([], strategy=delete)
    assert stored(path) == []
    assert library_storage_context(path).docstore.document_hashes() == {}


async def test_a_document_named_twice_is_stored_once(path, ingest):
    await ingest([doc("a", "one"), doc("a", "two")])
    assert stored(path) == [("a", "two")]


async def test_nodes_that_are_already_cut_are_all_stored(path, ingest):
    nodes = [
        TextNode(id_=f"n{i}", text=f"part {i}", relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc")})
        for i in range(4)
    ]
    await ingest(nodes=nodes)
    assert len(stored(path)) == 4
    await ingest(nodes=nodes)
    assert len(stored(path)) == 4
    await ingest(nodes=nodes, strategy=DocstoreStrategy.UPSERTS_AND_DELETE)
    assert len(stored(path)) == 4


async def test_duplicates_only_stores_each_content_once(path, ingest):
    once = DocstoreStrategy.DUPLICATES_ONLY
    await ingest([doc("a", "same"), doc("b", "same")], strategy=once)
    await ingest([doc("c", "same")], strategy=once)
    assert stored(path) == [("a", "same")]


async def test_nodes_without_embedding_are_refused(path, ingest):
    with pytest.raises(InvalidInputError, match="1 nodes without an embedding"):
        await ingest([doc("a")], transformations=[SentenceSplitter(chunk_size=64, chunk_overlap=0)])
    assert stored(path) == []


async def test_without_a_docstore_it_is_the_plain_pipeline(path, embedder):
    vector_store = library_storage_context(path).vector_store
    pipeline = LibraryIngestionPipeline(transformations=[embedder], vector_store=vector_store)
    pipeline.run(documents=[doc("a")])
    await pipeline.arun(documents=[doc("b", "trains")])
    assert len(vector_store.get_nodes()) == 2


def test_a_strategy_that_needs_a_vector_store_is_not_changed_for_good(path, embedder):
    context = library_storage_context(path)
    pipeline = LibraryIngestionPipeline(transformations=[embedder], docstore=context.docstore)
    with pytest.warns(UserWarning, match="duplicates_only"):
        pipeline.run(documents=[doc("a")])
    assert pipeline.docstore_strategy == DocstoreStrategy.UPSERTS


async def test_equal_content_is_not_taken_from_another_documents_cache(path, embedder):
    context = library_storage_context(path)
    pipeline = LibraryIngestionPipeline(
        transformations=[embedder], vector_store=context.vector_store, docstore=context.docstore
    )
    pipeline.run(documents=[doc("a")])
    await pipeline.arun(documents=[doc("b")])
    assert {node.node_id for node in context.vector_store.get_nodes()} == {"a", "b"}


def test_the_cache_lives_in_the_library_too(path, embedder):
    calls = []

    class Count(TransformComponent):
        def __call__(self, nodes, **kwargs):
            calls.append(len(nodes))
            return nodes

    for _ in range(2):
        cache = IngestionCache(cache=LibraryKVStore(path), collection="ingestion")
        IngestionPipeline(transformations=[Count(), embedder], cache=cache).run(documents=[doc("a")])
    assert calls == [1]


def test_a_stock_pipeline_upserts_across_restarts(path, embedder):
    def run(document):
        context = library_storage_context(path)
        IngestionPipeline(
            transformations=[SentenceSplitter(chunk_size=64, chunk_overlap=0), embedder],
            vector_store=context.vector_store,
            docstore=context.docstore,
            docstore_strategy=DocstoreStrategy.UPSERTS_AND_DELETE,
        ).run(documents=[document])

    run(doc("a", "one"))
    run(doc("a", "one"))
    run(doc("a", "two"))
    assert stored(path) == [("a", "two")]
    run(doc("b", "two"))
    assert stored(path) == [("b", "two")]
