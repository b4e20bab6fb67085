"""Docstore, index store and vector store on one file, through restarts and concurrent writers."""

import asyncio

import pytest
from llama_index.core import StorageContext, SummaryIndex, VectorStoreIndex, load_index_from_storage
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.schema import Document, NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index_libctx import (
    LibraryDocumentStore,
    LibraryIndexStore,
    LibraryVectorStore,
    library_storage_context,
)

from libctx_core import LibraryOfContext


def part(node_id, of="doc", text="t"):
    return TextNode(id_=node_id, text=text, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=of)})


def test_documents_and_hashes_survive_reopening(path):
    store = LibraryDocumentStore(path)
    document = Document(id_="d", text="text", metadata={"k": [1]})
    store.add_documents([document, part("n1"), part("n2")])
    store.set_document_hash("other", "h")
    del store
    again = LibraryDocumentStore(path)
    assert again.get_document("d") == document
    assert set(again.docs) == {"d", "n1", "n2"}
    assert again.get_ref_doc_info("doc").node_ids == ["n1", "n2"]
    assert again.get_document_hash("other") == "h"
    assert again.document_hashes() == {"d": document.hash, "other": "h"}


async def test_async_deletion_takes_the_node_off_its_documents_list(path):
    store = LibraryDocumentStore(path)
    await store.async_add_documents([part("n"), part("m")])
    await store.adelete_document("n")
    assert store.get_ref_doc_info("doc").node_ids == ["m"]
    await store.adelete_ref_doc("doc")
    assert (store.docs, store.get_all_document_hashes()) == ({}, {})


async def test_concurrent_writers_lose_no_node_of_a_document(path):
    store = LibraryDocumentStore(path)
    await asyncio.gather(*(store.async_add_documents([part(f"n{i}")]) for i in range(30)))
    assert sorted(store.get_ref_doc_info("doc").node_ids) == sorted(f"n{i}" for i in range(30))


def test_refused_updates_write_nothing(path):
    store = LibraryDocumentStore(path)
    store.add_documents([part("n", text="old")])
    with pytest.raises(ValueError, match="already exists"):
        store.add_documents([part("m"), part("n", text="new")], allow_update=False)
    assert set(store.docs) == {"n"}
    assert store.get_document("n").text == "old"


def test_missing_documents(path):
    store = LibraryDocumentStore(path)
    assert store.get_document("x", raise_error=False) is None
    assert not store.document_exists("x")
    store.delete_document("x", raise_error=False)
    store.delete_ref_doc("x", raise_error=False)
    for call in (store.get_document, store.delete_document, store.delete_ref_doc):
        with pytest.raises(ValueError, match="x not found"):
            call("x")


def test_a_document_of_which_only_the_hash_is_stored_can_be_deleted(path):
    store = LibraryDocumentStore(path)
    store.add_documents([Document(id_="d", text="t")], store_text=False)
    store.delete_document("d")
    assert store.get_document_hash("d") is None


def test_every_document_is_named_even_where_hashes_are_equal(path):
    store = LibraryDocumentStore(path)
    store.add_documents([Document(id_=i, text="same") for i in "ab"])
    hashes = store.get_all_document_hashes()
    assert sorted(hashes.values()) == ["a", "b"]
    assert Document(text="same").hash in hashes


def test_index_store(path):
    store = LibraryIndexStore(path)
    index = SummaryIndex([TextNode(text="t")], storage_context=StorageContext.from_defaults(index_store=store))
    assert LibraryIndexStore(path).get_index_struct(index.index_id).nodes == index.index_struct.nodes
    store.delete_index_struct(index.index_id)
    assert LibraryIndexStore(path).index_structs() == []


def test_a_whole_context_reopens_from_its_path(path, embedder):
    context = library_storage_context(path)
    index = VectorStoreIndex.from_documents([Document(id_="d", text="plums and pears")], storage_context=context)
    del context
    again = load_index_from_storage(library_storage_context(path), index_id=index.index_id)
    assert [hit.node.ref_doc_id for hit in again.as_retriever().retrieve("plums")] == ["d"]


def test_a_plain_index_refreshes_across_restarts(path):
    """VectorStoreIndex itself, on this storage context: nothing doubled, nothing lost."""

    def index():
        return VectorStoreIndex([], storage_context=library_storage_context(path))

    document = Document(id_="d", text="plums")
    assert index().refresh_ref_docs([document]) == [True]
    assert index().refresh_ref_docs([document]) == [False]
    assert len(LibraryVectorStore(path).get_nodes()) == 1
    index().delete_ref_doc("d", delete_from_docstore=True)
    assert LibraryVectorStore(path).get_nodes() == []
    assert index().refresh_ref_docs([document]) == [True]
    assert len(LibraryVectorStore(path).get_nodes()) == 1


async def test_a_plain_index_refreshes_across_restarts_in_async(path):
    def index():
        return VectorStoreIndex([], storage_context=library_storage_context(path))

    document = Document(id_="d", text="plums")
    assert await index().arefresh_ref_docs([document]) == [True]
    await index().adelete_ref_doc("d", delete_from_docstore=True)
    assert await index().arefresh_ref_docs([document]) == [True]
    assert len(LibraryVectorStore(path).get_nodes()) == 1


def test_a_cleared_store_is_filled_again_by_a_refresh(path):
    index = VectorStoreIndex.from_documents([Document(id_="d", text="t")], library_storage_context(path))
    index.vector_store.clear()
    assert index.refresh_ref_docs([Document(id_="d", text="t")]) == [True]
    assert len(index.vector_store.get_nodes()) == 1


def test_deleting_in_one_collection_leaves_the_hashes_of_another(path):
    document = Document(id_="d", text="plums")
    one = VectorStoreIndex.from_documents([document], library_storage_context(path, "one"))
    two = VectorStoreIndex.from_documents([document], library_storage_context(path, "two"))
    one.delete_ref_doc("d")
    assert two.refresh_ref_docs([document]) == [False]
    assert one.refresh_ref_docs([document]) == [True]


def test_neighbours_of_a_node_are_found_in_the_vector_store(path):
    text = " ".join(f"Sentence number {i} ends here." for i in range(60))
    context = library_storage_context(path)
    index = VectorStoreIndex.from_documents([Document(id_="d", text=text)], storage_context=context)
    nodes = {node.node_id: node for node in index.vector_store.get_nodes()}
    middle = next(node for node in nodes.values() if node.prev_node and node.next_node)
    processor = PrevNextNodePostprocessor(docstore=context.docstore, num_nodes=1, mode="both")
    found = processor.postprocess_nodes([NodeWithScore(node=middle, score=1.0)])
    assert {hit.node.node_id for hit in found} == {
        middle.prev_node.node_id,
        middle.node_id,
        middle.next_node.node_id,
    }


def test_an_open_library_is_used_and_left_open(path):
    with LibraryOfContext(path) as library:
        context = library_storage_context(library)
        VectorStoreIndex.from_documents([Document(id_="d", text="plums")], storage_context=context)
        del context
        assert len(LibraryVectorStore(library).get_nodes()) == 1
