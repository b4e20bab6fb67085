"""A scope handle on every class: what it does not permit is refused before anything is touched."""

import pickle

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import Document, TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index_libctx import (
    LibraryChatStore,
    LibraryDocumentStore,
    LibraryKVStore,
    LibraryMemory,
    LibraryMemoryBlock,
    LibraryReader,
    LibraryRetriever,
    LibraryVectorIndex,
    LibraryVectorStore,
    library_storage_context,
)

from libctx_core import LibraryOfContext
from libctx_core.access import Boundary, EnforcementMode, Principal, Resource, Rights, access
from libctx_core.errors import ContextAccessDenied

STRICT = EnforcementMode.REQUIRE_ENROLLMENT


def scope(name, rights):
    return access.issue_root_scope(Principal(name), rights, STRICT)


@pytest.fixture
def everything():
    return scope("writer", Rights.all_on(Boundary("default")))


@pytest.fixture
def reader():
    return scope("reader", Rights.read_only(Boundary("default")))


@pytest.fixture
def stranger():
    return scope("stranger", Rights.all_on(Boundary("elsewhere")))


@pytest.fixture
def library(path):
    with LibraryOfContext(path, access="required") as library:
        yield library


def node(node_id="n"):
    return TextNode(id_=node_id, text="text", embedding=[1.0, 0.0])


QUERY = VectorStoreQuery(query_embedding=[1.0, 0.0])


def test_a_vector_store(library, everything, reader, stranger):
    LibraryVectorStore(library, scope=everything).add([node()])
    assert LibraryVectorStore(library, scope=everything).query(QUERY).ids == ["n"]
    only_reading = LibraryVectorStore(library, scope=reader)
    assert [found.node_id for found in only_reading.get_nodes()] == ["n"]
    for write in (
        lambda: only_reading.add([node("m")]),
        lambda: only_reading.delete("d"),
        lambda: only_reading.delete_nodes(["n"]),
        only_reading.clear,
    ):
        with pytest.raises(ContextAccessDenied):
            write()
    other = LibraryVectorStore(library, scope=stranger)
    for anything in (lambda: other.query(QUERY), other.get_nodes, lambda: other.add([node("m")]), other.clear):
        with pytest.raises(ContextAccessDenied):
            anything()
    assert [found.node_id for found in only_reading.get_nodes()] == ["n"]


def test_without_a_scope_a_library_that_needs_one_refuses(library):
    with pytest.raises(ContextAccessDenied):
        LibraryVectorStore(library).add([node()])
    with pytest.raises(ContextAccessDenied):
        LibraryMemory(library, "s1").put(ChatMessage(role="user", content="hi"))
    with pytest.raises(ContextAccessDenied):
        LibraryKVStore(library).put("k", {})


def test_the_scope_counts_in_other_threads_too(library, everything, stranger):
    import threading

    LibraryVectorStore(library, scope=everything).add([node()])
    denied = []
    other = LibraryVectorStore(library, scope=stranger)

    def work():
        try:
            other.query(QUERY)
        except ContextAccessDenied as error:
            denied.append(error)

    with access.scope(everything):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(denied) == 1


def test_a_collection_of_its_own(library, everything):
    narrow = scope("narrow", Rights.all_on(Resource("vector_collection:default/mine")))
    mine = LibraryVectorStore(library, "mine", scope=narrow)
    mine.add([node()])
    assert mine.query(QUERY).ids == ["n"]
    with pytest.raises(ContextAccessDenied):
        LibraryVectorStore(library, "other", scope=narrow).add([node()])


def test_a_storage_context(library, everything, reader, stranger):
    document = Document(id_="d", text="words of a document")
    LibraryVectorIndex.from_library(library, scope=everything).insert(document)
    context = library_storage_context(library, scope=reader)
    assert len(context.vector_store.get_nodes()) == 1
    assert context.docstore.get_document_hash("d") == document.hash
    with pytest.raises(ContextAccessDenied):
        context.docstore.set_document_hash("d", "h")
    with pytest.raises(ContextAccessDenied):
        library_storage_context(library, scope=stranger).docstore.get_document_hash("d")


def test_key_value_pairs_and_documents(library, everything, stranger):
    pairs = LibraryKVStore(library, scope=everything)
    pairs.put("k", {"v": 1})
    LibraryVectorStore(library, scope=everything).add([node()])
    assert pairs.get("k") == {"v": 1}
    denied = LibraryKVStore(library, scope=stranger)
    for call in (lambda: denied.get("k"), denied.get_all, lambda: denied.put("k", {}), lambda: denied.delete("k")):
        with pytest.raises(ContextAccessDenied):
            call()
    with pytest.raises(ContextAccessDenied):
        LibraryDocumentStore(denied).add_documents([Document(text="t")])


def test_a_memory(library, everything, reader, stranger):
    memory = LibraryMemory(library, "s1", scope=everything)
    memory.put(ChatMessage(role="user", content="hi"))
    assert LibraryMemory(library, "s1", scope=reader).get_all() == memory.get_all()
    for writes in (
        lambda: LibraryMemory(library, "s1", scope=reader).put(ChatMessage(role="user", content="x")),
        lambda: LibraryMemory(library, "s1", scope=reader).reset(),
        lambda: LibraryMemory(library, "s1", scope=reader).set([ChatMessage(role="user", content="x")]),
        lambda: LibraryMemory(library, "s1", scope=stranger).get(),
        lambda: LibraryMemory(library, "s1", scope=stranger).get_all(),
        lambda: LibraryMemory(library, "s1", scope=stranger).reset(),
    ):
        with pytest.raises(ContextAccessDenied):
            writes()
    assert [message.content for message in memory.get_all()] == ["hi"]


def test_a_chat_store_lists_only_what_may_be_listed(library, everything, reader, stranger):
    store = LibraryChatStore(library, scope=everything)
    store.add_message("k", ChatMessage(role="user", content="hi"))
    assert store.get_keys() == ["k"]
    assert LibraryChatStore(library, scope=stranger).get_keys() == []
    with pytest.raises(ContextAccessDenied):
        LibraryChatStore(library, scope=stranger).get_messages("k")
    with pytest.raises(ContextAccessDenied):
        LibraryChatStore(library, scope=reader).delete_messages("k")


async def test_a_block_a_retriever_and_a_reader(library, everything, stranger):
    block = LibraryMemoryBlock(library, scope=everything)
    await block.aput([ChatMessage(role="user", content="the cat is called Minka")], session_id="s1")
    library.flush()
    assert LibraryRetriever(library, session_id="s1", scope=everything).retrieve("cat Minka")
    assert LibraryRetriever(library, session_id="s1", scope=stranger).retrieve("cat Minka") == []
    assert LibraryReader(library, scope=everything).list_resources() == ["thread:default/s1"]
    assert LibraryReader(library, scope=stranger).list_resources() == []
    with pytest.raises(ContextAccessDenied):
        LibraryReader(library, scope=stranger).load_resource("thread:default/s1")
    with pytest.raises(ContextAccessDenied):
        await LibraryMemoryBlock(library, scope=stranger).aget(
            [ChatMessage(role="user", content="cat")], session_id="s1"
        )


def test_what_is_held_under_a_scope_is_not_written_down(path, everything):
    for held in (
        LibraryVectorStore(path, scope=everything),
        LibraryMemory(path, "s1", scope=everything),
        LibraryChatStore(path, scope=everything),
    ):
        with pytest.raises(TypeError, match="scope"):
            pickle.dumps(held)
    with pytest.raises(TypeError, match="scope"):
        LibraryMemory(path, "s1", scope=everything).to_dict()
