"""Public reports about LlamaIndex's stores and memories, each with the outcome its reporter wanted.

Numbers are those of run-llama/llama_index unless another repository is named.
"""

import asyncio
import json
import threading

import pytest
from llama_index.core import StorageContext, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.ingestion import DocstoreStrategy
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import BaseMemory, Memory, VectorMemoryBlock
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.core.workflow import Context
from llama_index_libctx import (
    LibraryChatStore,
    LibraryIngestionPipeline,
    LibraryMemory,
    LibraryMemoryBlock,
    LibraryVectorIndex,
    LibraryVectorStore,
    library_storage_context,
)

from libctx_core.store import Component, Database
from libctx_core.store.owners import OWNERS
from libctx_core.store.records import RECORDS

Op, Mode = FilterOperator, VectorStoreQueryMode


def f(key, value, operator=Op.EQ):
    return MetadataFilter(key=key, value=value, operator=operator)


def group(*parts, condition=FilterCondition.AND):
    return MetadataFilters(filters=list(parts), condition=condition)


def fill(store, **metadata_by_id):
    store.add([TextNode(id_=name, text=name, metadata=m, embedding=[1.0, 0.0]) for name, m in metadata_by_id.items()])


def matching(store, *parts, condition=FilterCondition.AND):
    query = VectorStoreQuery(
        query_embedding=[1.0, 0.0], similarity_top_k=100, filters=group(*parts, condition=condition)
    )
    return set(store.query(query).ids)


def user(text):
    return ChatMessage(role="user", content=text)


def assistant(text):
    return ChatMessage(role="assistant", content=text)


def doc(doc_id, text="some words", **metadata):
    return Document(id_=doc_id, text=text, metadata=metadata)


# -- filters ---------------------------------------------------------------------


def test_20237_an_operator_never_matches_everything(store):
    fill(store, n={"roles": ["admin"]})
    assert matching(store, f("roles", "tom", Op.CONTAINS)) == set()


def test_19152_in_compares_numbers_as_numbers(store):
    fill(store, n={"some_id": 3})
    assert matching(store, f("some_id", [3, 4], Op.IN)) == {"n"}
    assert matching(store, f("some_id", ["3"], Op.IN)) == set()


def test_22475_a_key_is_no_sql(store):
    fill(store, n={"author": "alice"})
    assert matching(store, f("author' = 'alice' OR '1'='1' --", "zzz")) == set()


def test_17250_and_18580_is_empty(store):
    fill(store, null={"deleted": None}, missing={"x": 1}, there={"deleted": "2024"})
    assert matching(store, f("deleted", None, Op.IS_EMPTY)) == {"null", "missing"}


def test_9376_or_is_not_ignored(store):
    fill(store, a={"filename": "a"}, b={"filename": "b"}, c={"filename": "c"})
    either = matching(store, f("filename", "a"), f("filename", "b"), condition=FilterCondition.OR)
    assert either == {"a", "b"}


def test_10557_or_over_two_keys_is_a_union(store):
    fill(store, a={"color": "red"}, b={"alpha": "1"}, c={"color": "blue"})
    assert matching(store, f("color", "red"), f("alpha", "1"), condition=FilterCondition.OR) == {"a", "b"}


def test_16664_nested_groups(store):
    fill(
        store,
        old={"fruit": "apple", "ts": 1},
        new={"fruit": "apple", "ts": 9},
        b={"fruit": "banana", "ts": 1},
        o={"fruit": "orange", "ts": 1},
        p={"fruit": "pear", "ts": 9},
    )
    nested = group(f("fruit", "apple"), f("ts", 5, Op.GT))
    found = matching(store, nested, f("fruit", ["banana", "orange"], Op.IN), condition=FilterCondition.OR)
    assert found == {"new", "b", "o"}


@pytest.mark.parametrize("key", ["document_id", "doc_id", "ref_doc_id"])
def test_17025_the_users_document_id_is_the_users(store, key):
    fill(store, n={key: "X"}, m={"other": 1})
    assert matching(store, f(key, "X")) == {"n"}


def test_14674_in_and_nin_are_not_swapped(store):
    fill(store, r={"color": "red"}, g={"color": "green"})
    assert matching(store, f("color", ["red", "blue"], Op.IN)) == {"r"}
    assert matching(store, f("color", ["red", "blue"], Op.NIN)) == {"g"}


def test_20374_filters_work_after_reopening_and_with_quotes_in_lists(path):
    fill(LibraryVectorStore(path), n={"k": "O'Brien"})
    assert matching(LibraryVectorStore(path), f("k", "O'Brien")) == {"n"}
    assert matching(LibraryVectorStore(path), f("k", ["O'Brien"], Op.IN)) == {"n"}


def test_15484_lists_are_metadata(store):
    fill(store, n={"tags": ["x", "y"]})
    assert matching(store, f("tags", ["y", "z"], Op.ANY)) == {"n"}


def test_12984_a_filter_may_hold_none(store):
    fill(store, n={"a": None})
    assert matching(store, f("a", None)) == set()
    assert matching(store, f("a", None, Op.NE)) == {"n"}


def test_turbovec_165_nested_semantics_are_those_documented(store):
    """RyanCodrai/turbovec#165: a nested group is one more filter; an empty one says nothing."""
    fill(store, a={"x": 1}, b={"x": 2})
    assert matching(store, group(f("x", 1)), group()) == {"a"}
    assert matching(store, group(f("x", 1), condition=FilterCondition.NOT)) == {"b"}


def test_sqlitevec_564_a_filter_is_never_ignored(store):
    """langchain-ai/langchain-community#564: the filter reaches SQL; a misplaced one raises."""
    fill(store, a={"x": 1}, b={"x": 2})
    assert matching(store, f("x", 1)) == {"a"}
    with pytest.raises(ValueError, match="filter"):
        store.query(VectorStoreQuery(query_embedding=[1.0, 0.0]), filter={"x": 1})


# -- documents and nodes -----------------------------------------------------------


def test_19292_the_document_of_a_node_is_its_source(store):
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
    store.add(
        [
            TextNode(id_="with", text="t", relationships=source, embedding=[1.0]),
            TextNode(id_="without", text="t", ref_doc_id="d", embedding=[1.0]),
        ]
    )
    found = store.query(VectorStoreQuery(query_embedding=[1.0], similarity_top_k=5, doc_ids=["d"]))
    assert found.ids == ["with"]


def test_11602_and_14121_doc_ids_restrict(path, embedder):
    index = VectorStoreIndex.from_documents([doc("a"), doc("b")], library_storage_context(path))
    assert {hit.node.ref_doc_id for hit in index.as_retriever(doc_ids=["a"]).retrieve("words")} == {"a"}
    assert index.as_retriever(doc_ids=[]).retrieve("words") == []


def test_17857_a_misspelt_argument_is_refused(path):
    with pytest.raises(TypeError, match="filter"):
        LibraryVectorIndex.from_library(path).as_retriever(filter=group())


def test_7829_a_file_of_the_first_schema_still_works(path):
    database = Database(path)
    for component in (OWNERS, RECORDS):
        database.ensure(Component(component.name, component.steps[:1]))
    database.close()
    store = LibraryVectorStore(path)
    store.add([TextNode(id_="n", text="t", embedding=[1.0], metadata={"ref_doc_id": "d"})])
    store.delete("d")
    assert store.get_nodes() == []


def test_18583_added_ids_are_the_nodes_ids(path):
    index = VectorStoreIndex.from_documents([doc("d")], library_storage_context(path))
    index.delete_ref_doc("d", delete_from_docstore=True)
    index.delete_ref_doc("d", delete_from_docstore=True)
    store = index.vector_store
    assert store.add([TextNode(id_="mine", text="t", embedding=[0.0] * 31 + [1.0])]) == ["mine"]


@pytest.mark.parametrize("index_class", [VectorStoreIndex, LibraryVectorIndex])
def test_6152_and_1345_a_deleted_document_comes_back_by_refresh(path, index_class):
    index = index_class.from_documents([doc("d")], library_storage_context(path))
    index.delete_ref_doc("d", delete_from_docstore=True)
    assert index.refresh_ref_docs([doc("d")]) == [True]
    assert len(index.vector_store.get_nodes()) == 1


@pytest.mark.parametrize("index_class", [VectorStoreIndex, LibraryVectorIndex])
def test_8832_9172_and_13604_a_refresh_after_a_restart_adds_nothing(path, index_class):
    index_class.from_documents([doc("d")], library_storage_context(path))
    index = index_class([], storage_context=library_storage_context(path))
    assert index.refresh_ref_docs([doc("d")]) == [False]
    assert len(index.vector_store.get_nodes()) == 1


def test_14057_a_changed_document_of_many_chunks_leaves_no_old_chunk(path):
    index = LibraryVectorIndex.from_library(path)
    old = " ".join(f"old sentence number {i} of the text." for i in range(60))
    index.refresh_ref_docs([doc("d", old)])
    before = len(index.vector_store.get_nodes())
    index.refresh_ref_docs([doc("d", old.replace("old", "new"))])
    nodes = index.vector_store.get_nodes()
    assert before == len(nodes) > 2
    assert not any("old" in node.get_content() for node in nodes)


def test_23164_two_indexes_of_one_file_are_both_refreshed(path):
    documents = [doc("d", "one")]
    indexes = [LibraryVectorIndex.from_library(path, name) for name in ("first", "second")]
    for index in indexes:
        assert index.refresh_ref_docs(documents) == [True]
    changed = [doc("d", "two")]
    assert [asyncio.run(index.arefresh_ref_docs(changed)) for index in indexes] == [[True], [True]]
    assert [[node.get_content() for node in index.vector_store.get_nodes()] for index in indexes] == [["two"]] * 2


def pipeline(path, embedder, strategy=DocstoreStrategy.UPSERTS):
    context = library_storage_context(path)
    return LibraryIngestionPipeline(
        transformations=[SentenceSplitter(chunk_size=64, chunk_overlap=0), embedder],
        vector_store=context.vector_store,
        docstore=context.docstore,
        docstore_strategy=strategy,
    )


def test_22706_and_23002_equal_content_does_not_hide_a_removed_document(path, embedder):
    delete = DocstoreStrategy.UPSERTS_AND_DELETE
    pipeline(path, embedder, delete).run(documents=[doc("A"), doc("B")])
    pipeline(path, embedder, delete).run(documents=[doc("B")])
    assert {node.ref_doc_id for node in LibraryVectorStore(path).get_nodes()} == {"B"}


def test_20823_a_strategy_is_not_changed_for_good(path, embedder):
    without_store = LibraryIngestionPipeline(
        transformations=[embedder], docstore=library_storage_context(path).docstore
    )
    with pytest.warns(UserWarning):
        without_store.run(documents=[doc("a")])
    assert without_store.docstore_strategy == DocstoreStrategy.UPSERTS


def test_22046_all_nodes_of_a_cut_document_are_stored(path, embedder):
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="d")}
    nodes = [TextNode(id_=f"n{i}", text=f"part {i}", relationships=source) for i in range(4)]
    pipeline(path, embedder).run(nodes=nodes)
    assert len(LibraryVectorStore(path).get_nodes()) == 4


def test_22639_a_failing_transformation_loses_nothing(path, embedder, failing_embedder):
    pipeline(path, embedder).run(documents=[doc("d", "old")])
    with pytest.raises(ConnectionError):
        pipeline(path, failing_embedder).run(documents=[doc("d", "new")])
    assert [node.get_content() for node in LibraryVectorStore(path).get_nodes()] == ["old"]


def test_8602_a_change_of_metadata_is_a_change(path):
    index = LibraryVectorIndex.from_library(path)
    index.insert(doc("d", tag="old"))
    assert index.refresh_ref_docs([doc("d", tag="new")]) == [True]


def test_6250_and_15818_delete_nodes_removes_exactly_them(store):
    fill(store, a={}, b={})
    store.delete_nodes(["a"])
    assert [node.node_id for node in store.get_nodes()] == ["b"]


def test_16917_9783_and_13506_another_dimension_is_explained(path):
    LibraryVectorStore(path, embed_model_name="ada").add([TextNode(id_="n", text="t", embedding=[0.1] * 1024)])
    with pytest.raises(ValueError, match=r"1024.*ada.*1792"):
        LibraryVectorStore(path).query(VectorStoreQuery(query_embedding=[0.1] * 1792))


def test_13904_and_20433_the_sync_interface_in_loops_and_threads(path):
    store = LibraryVectorStore(path)

    async def cell(name):
        fill(store, **{name: {}})
        return matching(store)

    assert "loop" in asyncio.run(cell("loop"))
    thread = threading.Thread(target=lambda: asyncio.run(cell("thread")))
    thread.start()
    thread.join()
    assert matching(store) == {"loop", "thread"}


def test_14540_3847_and_6528_a_path_is_enough_to_reopen(path):
    LibraryVectorIndex.from_library(path).insert(doc("d"))
    (hit,) = LibraryVectorIndex.from_library(path).as_retriever().retrieve("words")
    assert hit.node.ref_doc_id == "d"


def test_11538_and_21444_a_weight_of_one_is_the_order_of_that_side(store):
    store.add(
        [
            TextNode(id_="v", text="other", embedding=[1.0, 0.0]),
            TextNode(id_="w", text="the words asked for", embedding=[0.0, 1.0]),
        ]
    )
    question = {"query_embedding": [1.0, 0.0], "query_str": "words asked", "similarity_top_k": 2, "mode": Mode.HYBRID}
    assert store.query(VectorStoreQuery(alpha=1.0, **question)).ids == ["v", "w"]
    assert store.query(VectorStoreQuery(alpha=0.0, **question)).ids == ["w"]


async def test_22642_alpha_zero_is_zero(store):
    fill(store, a={}, b={})
    question = VectorStoreQuery(query_embedding=[1.0, 0.0], query_str="b", alpha=0.0, mode=Mode.HYBRID)
    assert store.query(question).ids == (await store.aquery(question)).ids == ["b"]


def test_14435_all_nodes_come_back_when_asked_for(store):
    store.add([TextNode(id_=str(i), text="t", embedding=[1.0, i / 2400]) for i in range(2400)])
    found = store.query(VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=10_000)).ids
    assert len(set(found)) == 2400


def test_chroma_1987_an_id_deleted_and_added_again_has_the_new_content(store):
    """chroma-core/chroma#1987."""
    store.add([TextNode(id_="n", text="old", embedding=[1.0, 0.0])])
    store.delete_nodes(["n"])
    store.add([TextNode(id_="n", text="new", embedding=[0.0, 1.0])])
    result = store.query(VectorStoreQuery(query_embedding=[0.0, 1.0]))
    assert [node.get_content() for node in result.nodes] == ["new"]
    assert result.similarities == pytest.approx([1.0])


# -- memories ----------------------------------------------------------------------


def test_21950_tool_calls_count(path):
    memory = LibraryMemory(path, "s")
    memory.put(user("hi"))
    before = memory.prompt().token_count
    call = ToolCallBlock(tool_call_id="c", tool_name="t", tool_kwargs={"text": "word " * 200})
    memory.put(ChatMessage(role="assistant", blocks=[call]))
    assert memory.prompt().token_count - before >= 200


def test_23144_the_system_message_stays(path):
    memory = LibraryMemory(path, "s", token_limit=200)
    memory.put(ChatMessage(role="system", content="Be brief."))
    for i in range(10):
        memory.put_messages([user(f"question {i} " + "word " * 15), assistant(f"answer {i} " + "word " * 15)])
    assert (memory.get()[0].role, memory.get()[0].content) == ("system", "Be brief.")


def test_20256_the_view_begins_with_the_user(path):
    memory = LibraryMemory(path, "s", token_limit=1200)
    memory.put(user("start"))
    for i in range(12):
        call = ToolCallBlock(tool_call_id=f"c{i}", tool_name="t", tool_kwargs={"text": "word " * 10})
        memory.put(ChatMessage(role="assistant", blocks=[call]))
        memory.put(ChatMessage(role="tool", content="word " * 300, additional_kwargs={"tool_call_id": f"c{i}"}))
    view = memory.get()
    assert (view[0].role, view[0].content) == ("user", "start")
    assert memory.prompt().token_count <= 1200


async def test_22701_a_block_keeps_sessions_apart(path):
    block = LibraryMemoryBlock(path)
    await block.aput([user("the secret is swordfish")], session_id="s1")
    await block._lease.library.aflush()
    assert "swordfish" not in await block.aget([user("what is the secret?")], session_id="s2")


async def test_23182_a_vector_block_gets_similarities(path, embedder):
    block = VectorMemoryBlock(vector_store=LibraryVectorStore(path), embed_model=embedder)
    await block.aput([user("the secret is swordfish")], session_id="s1")
    assert "swordfish" in await block.aget([user("secret")], session_id="s1")


async def test_23184_23185_23183_and_19389_a_chat_store_loses_nothing(path):
    store = LibraryChatStore(path)
    memory = Memory.from_defaults(session_id="k", chat_store=store, token_limit=100_000)
    await memory.aput(user("first"))
    await asyncio.gather(*(memory.aput(user(str(i))) for i in range(50)))
    await memory.aput_messages([])
    assert [m.content for m in await memory.aget_all()] == ["first", *map(str, range(50))]
    with pytest.raises(ValueError, match="content"):
        await store.set_messages("k", [user("new"), user("")])
    assert len(await store.get_messages("k")) == 51


@pytest.mark.parametrize("on_disk", [True, False])
async def test_19228_18475_and_19128_a_memory_is_restored_with_its_context(path, on_disk):
    agent = FunctionAgent(llm=MockFunctionCallingLLM(is_chat_model=True), tools=[], streaming=False)
    context = Context(agent)
    memory = LibraryMemory(path, "s") if on_disk else LibraryMemory()
    await agent.run("remember me", ctx=context, memory=memory)
    restored = Context.from_dict(agent, json.loads(json.dumps(context.to_dict())))
    again = await restored.store.get("memory")
    assert isinstance(again, LibraryMemory)
    assert again.get_all() == memory.get_all()


async def test_19509_one_system_message_per_request(path):
    seen = []
    model = MockFunctionCallingLLM(
        is_chat_model=True, response_generator=lambda messages, **_: (seen.append(list(messages)), assistant("ok"))[1]
    )
    agent = FunctionAgent(llm=model, tools=[], system_prompt="Be brief.", streaming=False)
    memory = LibraryMemory(path, "s")
    for i in range(3):
        await agent.run(f"question {i}", memory=memory)
    assert [sum(message.role == "system" for message in request) for request in seen] == [1, 1, 1]


def test_14958_the_limit_holds_on_every_get(path):
    memory = LibraryMemory(path, "s", token_limit=300)
    for i in range(20):
        memory.put(user(f"question {i} " + "word " * 12))
        assert memory.prompt().token_count <= 300
        memory.put(assistant(f"answer {i} " + "word " * 12))
        assert memory.prompt().token_count <= 300


async def test_15293_async_engines_use_the_async_memory(path, monkeypatch):
    for name in ("aget", "aget_all", "aput", "aput_messages", "aset", "areset"):
        assert getattr(LibraryMemory, name) is not getattr(BaseMemory, name)
    called = []
    original = LibraryMemory.aput

    async def spy(self, message):
        called.append(message.role.value)
        await original(self, message)

    monkeypatch.setattr(LibraryMemory, "aput", spy)
    engine = SimpleChatEngine.from_defaults(
        llm=MockFunctionCallingLLM(is_chat_model=True), memory=LibraryMemory(path, "s")
    )
    await engine.achat("hi")
    assert called == ["user", "assistant"]


def test_a_plain_storage_context_takes_the_store(path, embedder):
    """#21064: there is a SQLite vector store."""
    context = StorageContext.from_defaults(vector_store=LibraryVectorStore(path))
    index = VectorStoreIndex.from_documents([doc("d")], storage_context=context)
    assert index.as_retriever().retrieve("words")[0].node.ref_doc_id == "d"
