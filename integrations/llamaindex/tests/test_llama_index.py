"""LibraryVectorIndex: what VectorStoreIndex loses or doubles."""

import pytest
from llama_index.core import StorageContext
from llama_index.core.llms.mock import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, IndexNode, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from llama_index_libctx import LibraryVectorIndex, LibraryVectorStore, library_storage_context

from libctx_core.errors import EmbeddingProfileError


@pytest.fixture
def index(path):
    return LibraryVectorIndex.from_library(path)


def doc(doc_id, text="plums and pears", **metadata):
    return Document(id_=doc_id, text=text, metadata=metadata)


def found(index, words, **options):
    return [hit.node.ref_doc_id for hit in index.as_retriever(**options).retrieve(words)]


def test_it_needs_a_librarys_storage():
    with pytest.raises(TypeError, match="library_storage_context"):
        LibraryVectorIndex(nodes=[], storage_context=StorageContext.from_defaults())
    with pytest.raises(TypeError):
        LibraryVectorIndex(nodes=[])


def test_one_call_opens_a_filled_file(path, index):
    index.insert(doc("d"))
    again = LibraryVectorIndex.from_library(path)
    assert found(again, "plums") == ["d"]
    assert again.index_id == "default"
    assert len(again.storage_context.index_store.index_structs()) == 1


def test_from_documents_stores_what_changed_only(path, embedder):
    context = library_storage_context(path)
    LibraryVectorIndex.from_documents([doc("a"), doc("b", "trains")], storage_context=context)
    index = LibraryVectorIndex.from_documents([doc("a"), doc("b", "night trains")], storage_context=context)
    nodes = {node.ref_doc_id: node.get_content() for node in index.vector_store.get_nodes()}
    assert nodes == {"a": "plums and pears", "b": "night trains"}


def test_inserting_twice_stores_once(index):
    index.insert(doc("d"))
    index.insert(doc("d"))
    assert len(index.vector_store.get_nodes()) == 1


async def test_refresh_says_what_changed(index):
    assert index.refresh_ref_docs([doc("a"), doc("b")]) == [True, True]
    assert index.refresh_ref_docs([doc("a"), doc("b", tag=1)]) == [False, True]
    assert await index.arefresh_ref_docs([doc("a"), doc("b", tag=2), doc("c")]) == [False, True, True]
    assert await index.arefresh_ref_docs([]) == []
    await index.aupdate_ref_doc(doc("a", "other"))
    await index.ainsert(doc("d"))
    assert len(index.vector_store.get_nodes()) == 4


def test_a_changed_document_of_many_nodes_is_replaced_whole(index):
    long = " ".join(f"Sentence {i} of the old text." for i in range(60))
    index.insert(doc("d", long))
    assert len(index.vector_store.get_nodes()) > 3
    index.refresh_ref_docs([doc("d", "short and new")])
    assert [node.get_content() for node in index.vector_store.get_nodes()] == ["short and new"]


@pytest.mark.parametrize("operation", ["update_ref_doc", "refresh_ref_docs", "insert"])
def test_a_failing_model_leaves_the_old_version(path, failing_embedder, operation):
    LibraryVectorIndex.from_library(path).insert(doc("d", "old words"))
    broken = LibraryVectorIndex.from_library(path, embed_model=failing_embedder)
    new = doc("d", "new words")
    with pytest.raises(ConnectionError):
        getattr(broken, operation)([new] if operation == "refresh_ref_docs" else new)
    index = LibraryVectorIndex.from_library(path)
    assert [node.get_content() for node in index.vector_store.get_nodes()] == ["old words"]
    assert index.refresh_ref_docs([new]) == [True]


async def test_deleting_a_document_forgets_its_hash(index):
    index.insert(doc("d"))
    index.delete_ref_doc("d")
    assert index.refresh_ref_docs([doc("d")]) == [True]
    await index.adelete_ref_doc("d")
    await index.adelete_ref_doc("d")
    assert index.vector_store.get_nodes() == []
    assert index.refresh_ref_docs([doc("d")]) == [True]


async def test_deleting_nodes(index):
    index.insert_nodes([TextNode(id_="a", text="plums"), IndexNode(id_="b", text="trains", index_id="x")])
    await index.adelete_nodes(["b"])
    assert [node.node_id for node in index.vector_store.get_nodes()] == ["a"]
    assert index.index_struct.nodes_dict == {}
    index.delete_nodes(["a"])
    assert index.vector_store.get_nodes() == []


def test_a_retriever_finds_nodes_of_every_kind(index):
    index.insert_nodes([TextNode(id_=f"t{i}", text=f"plums {i}") for i in range(2)])
    index.insert_nodes([IndexNode(id_="i", text="plums", index_id="x", obj=TextNode(id_="behind", text="behind"))])
    hits = index.as_retriever(similarity_top_k=10).retrieve("plums")
    assert {hit.node.node_id for hit in hits} == {"t0", "t1", "behind"}


def test_a_mixed_index_is_replaced_and_deleted_whole(index):
    parts = SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents([doc("d")])
    linked = [
        IndexNode(id_=f"i-{part.id_}", text=part.text, index_id="x", relationships=part.relationships) for part in parts
    ]
    index.insert_nodes(linked)
    assert index.index_struct.nodes_dict
    index.delete_ref_doc("d")
    assert index.index_struct.nodes_dict == {}
    assert index.docstore.docs == {}


def test_documents_and_their_nodes_are_listed(index):
    index.refresh_ref_docs([doc("a", tag="x"), doc("b", "trains")])
    info = index.ref_doc_info
    assert set(info) == {"a", "b"}
    assert info["a"].metadata == {"tag": "x"}
    assert len(info["b"].node_ids) == 1


@pytest.mark.parametrize("name", ["filter", "top_k", "where", "similarity_topk"])
def test_a_misspelt_argument_is_refused(index, name):
    with pytest.raises(TypeError, match=f"{name}.*filters.*similarity_top_k"):
        index.as_retriever(**{name: None})
    with pytest.raises(TypeError, match=name):
        index.as_query_engine(llm=MockLLM(), **{name: None})


def test_retriever_arguments_reach_the_store(index):
    index.refresh_ref_docs(
        [doc("a", "plums", tag="x"), doc("b", "plums", tag="y"), doc("c", "trains at night", tag="x")]
    )
    only = MetadataFilters(filters=[MetadataFilter(key="tag", value="x")])
    assert found(index, "plums", filters=only, similarity_top_k=1) == ["a"]
    assert found(index, "plums", doc_ids=["b"]) == ["b"]
    assert found(index, "trains", vector_store_query_mode="text_search") == ["c"]
    picked = found(index, "plums", vector_store_query_mode="mmr", mmr_threshold=0.0, similarity_top_k=2)
    assert picked[1] == "c"


def test_engines_pass_their_own_arguments_along(index):
    index.insert(doc("a"))
    engine = index.as_query_engine(llm=MockLLM(), similarity_top_k=1, response_mode="tree_summarize", streaming=False)
    assert engine.query("plums").source_nodes[0].node.ref_doc_id == "a"
    for mode in ("context", "condense_plus_context", "condense_question", "simple"):
        chat = index.as_chat_engine(chat_mode=mode, llm=MockLLM(), verbose=False)
        assert str(chat.chat("plums"))


def test_the_file_remembers_its_model(path, embedder):
    embedder.model_name = "words-32"
    LibraryVectorIndex.from_library(path, embed_model=embedder).insert(doc("d"))
    other = type(embedder)(model_name="words-64", dimension=64)
    with pytest.raises(EmbeddingProfileError, match=r"words-32.*words-64"):
        found(LibraryVectorIndex.from_library(path, embed_model=other), "plums")
    nameless = type(embedder)(dimension=64)
    with pytest.raises(ValueError, match=r"32 dimensions by model 'words-32'.*64"):
        found(LibraryVectorIndex.from_library(path, embed_model=nameless), "plums")


def test_a_named_collection(path):
    LibraryVectorIndex.from_library(path, "notes").insert(doc("d"))
    assert len(LibraryVectorStore(path, "notes").get_nodes()) == 1
    assert LibraryVectorIndex.from_library(path).ref_doc_info == {}
