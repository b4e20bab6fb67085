"""The vector store beyond the suites: what LlamaIndex's own tests and its stores' packages ask of a store."""

import asyncio
import copy
import pickle
import subprocess
import sys
import threading

import fsspec
import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import VectorMemory
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    MetadataMode,
    Node,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    ExactMatchFilter,
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index_libctx import LibraryVectorStore

from libctx_core.errors import (
    EmbeddingProfileError,
    FilterTypeError,
    ForeignDatabaseError,
    InvalidInputError,
)

KING, COPPOLA, NOLAN, CURIE, EINSTEIN, BRONTE = (
    "c330d77f-90bd-4c51-9ed2-57d8d693b3b0",
    "c3d1e1dd-8fb4-4b8f-b7ea-7fa96038d39d",
    "c3ew11cd-8fb4-4b8f-b7ea-7fa96038d39d",
    "0b31ae71-b797-4e88-8495-031371a7752e",
    "bd2e080b-159a-4030-acc3-d98afd2ba49b",
    "f658de3b-8cef-4d1c-8bed-9a263c907251",
)


CURIE_METADATA = {"author": "Marie Curie"}


def node(node_id, embedding, doc=None, text="lorem ipsum", **fields):
    source = {} if doc is None else {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=doc)}
    return TextNode(id_=node_id, text=text, embedding=embedding, relationships=source, **fields)


def common_nodes():
    """Six nodes after the ones that the packages of other stores test with."""
    return [
        node(KING, [1.0, 0.0, 0.0], "test-0", metadata={"author": "Stephen King", "theme": "Friendship"}),
        node(COPPOLA, [0.0, 1.0, 0.0], "test-1", metadata={"director": "Francis Ford Coppola", "theme": "Mafia"}),
        node(NOLAN, [0.0, 0.0, 1.0], "test-2", metadata={"director": "Christopher Nolan"}),
        node(
            CURIE, [0.0, 0.0, 0.9], "test-3", "Progress is neither swift nor easy.", metadata={"author": "Marie Curie"}
        ),
        node(EINSTEIN, [0.0, 0.0, 0.5], "test-4", "Never stop questioning.", metadata={"author": "Albert Einstein"}),
        node(
            BRONTE,
            [0.9, 0.3, 0.3],
            "test-5",
            "中文用户来了。",
            metadata={"author": "Charlotte Bronte"},
            excluded_embed_metadata_keys=["author"],
            excluded_llm_metadata_keys=["author", "keys"],
        ),
    ]


def ranked_nodes():
    """Three nodes after those of LlamaIndex's tests of its simple store."""
    return [
        node("w1", [1.0, 0.0], "test-0", metadata={"weight": 1.0, "rank": "a", "quality": ["medium", "high"]}),
        node("w2", [0.0, 1.0], "test-1", metadata={"weight": 2.0, "rank": "c", "quality": ["medium"]}),
        node("w3", [1.0, 1.0], "test-2", metadata={"weight": 3.0, "rank": "c", "quality": ["low", "medium", "high"]}),
    ]


def eq(key, value):
    return MetadataFilters(filters=[ExactMatchFilter(key=key, value=value)])


def test_class_and_constructors(path, tmp_path):
    assert BasePydanticVectorStore.__name__ in [base.__name__ for base in LibraryVectorStore.__mro__]
    assert LibraryVectorStore().path == ":memory:"
    assert LibraryVectorStore.from_params(path, "notes").collection_name == "notes"
    assert LibraryVectorStore.from_params().path == ":memory:"
    assert LibraryVectorStore.from_params(persist_dir=tmp_path / "d").path == str(tmp_path / "d" / "library.sqlite")
    with pytest.raises(InvalidInputError):
        LibraryVectorStore.from_params(path, persist_dir=tmp_path)
    with pytest.raises(TypeError, match="emebd_dim"):
        LibraryVectorStore(path, emebd_dim=3)
    assert LibraryVectorStore(path).client.name == "default"
    assert LibraryVectorStore.class_name() == "LibraryVectorStore"


@pytest.mark.parametrize("use_async", [True, False])
async def test_add_and_query(any_store, use_async):
    nodes, query = common_nodes(), VectorStoreQuery(query_embedding=[1.1, 0.0, 0.0], similarity_top_k=1)
    if use_async:
        assert await any_store.async_add(nodes, any_keyword=1) == [one.node_id for one in nodes]
        result = await any_store.aquery(query, any_keyword=1)
    else:
        assert any_store.add(nodes, any_keyword=1) == [one.node_id for one in nodes]
        result = any_store.query(query, any_keyword=1)
    (found,) = result.nodes
    assert (found.node_id, found.get_content(MetadataMode.NONE)) == (KING, "lorem ipsum")
    assert found.metadata == {"author": "Stephen King", "theme": "Friendship"}
    assert found.source_node.node_id == "test-0"
    assert result.ids == [KING]
    assert result.similarities == pytest.approx([1.0])


@pytest.mark.parametrize("use_async", [True, False])
async def test_query_by_filters_only(any_store, use_async):
    any_store.add(common_nodes())
    query = VectorStoreQuery(filters=eq("author", "Marie Curie"), similarity_top_k=1)
    result = await any_store.aquery(query) if use_async else any_store.query(query)
    assert result.nodes[0].get_content() == "Progress is neither swift nor easy."
    assert len(result.similarities) == 1


@pytest.mark.parametrize("use_async", [True, False])
async def test_get_delete_clear(any_store, use_async):
    async def call(sync, twin, *args, **kwargs):
        return await twin(*args, **kwargs) if use_async else sync(*args, **kwargs)

    any_store.add(common_nodes())
    got = await call(any_store.get_nodes, any_store.aget_nodes, node_ids=[KING, COPPOLA, NOLAN], index_id="42")
    assert {one.node_id for one in got} == {KING, COPPOLA, NOLAN}
    assert all(len(one.embedding) == 3 for one in got)
    await call(any_store.delete_nodes, any_store.adelete_nodes, node_ids=[KING, COPPOLA])
    assert [one.id_ for one in any_store.get_nodes([KING, COPPOLA, NOLAN])] == [NOLAN]
    await call(any_store.delete, any_store.adelete, "test-2")
    assert any_store.get_nodes([NOLAN]) == []
    await call(any_store.delete_nodes, any_store.adelete_nodes, filters=eq("author", "Marie Curie"))
    assert {one.node_id for one in any_store.get_nodes()} == {EINSTEIN, BRONTE}
    await call(any_store.clear, any_store.aclear, index_id="42")
    assert any_store.get_nodes() == []
    assert any_store.query(VectorStoreQuery(query_embedding=[1.0] * 3)).ids == []


def test_a_node_comes_back_whole(store):
    original = common_nodes()[5]
    store.add([original])
    (found,) = store.get_nodes([BRONTE])
    assert found.model_dump(exclude={"embedding"}) == original.model_dump(exclude={"embedding"})
    assert found.embedding == pytest.approx(original.embedding)
    assert found.hash == original.hash


def test_kinds_of_nodes_are_kept(store):
    nodes = [
        TextNode(id_="text", text="t", embedding=[1.0]),
        IndexNode(id_="index", text="i", index_id="target", embedding=[1.0]),
        ImageNode(id_="image", text="caption", image="aGk=", embedding=[1.0]),
        Node(id_="node", text_resource={"text": "n"}, embedding=[1.0]),
        Document(id_="document", text="d", embedding=[1.0]),
    ]
    store.add(nodes)
    found = {one.node_id: one for one in store.get_nodes()}
    assert [type(found[one.node_id]) for one in nodes] == [type(one) for one in nodes]
    assert found["index"].index_id == "target"
    assert found["image"].image == "aGk="


def test_a_users_own_class_comes_back_as_its_parent(store):
    class Chapter(TextNode):
        number: int = 0

        @classmethod
        def class_name(cls):
            return "Chapter"

    store.add([Chapter(id_="c", text="t", number=3, embedding=[1.0])])
    (found,) = store.get_nodes()
    assert (type(found), found.text) == (TextNode, "t")


@pytest.mark.parametrize("text", ["", "NUL \x00 inside", "lone \ud800 surrogate", "🙂 鍵 ключ", "x" * 100_000])
def test_any_text_comes_back(store, text):
    store.add([TextNode(id_="n", text=text, metadata={"t": text}, embedding=[1.0])])
    (found,) = store.get_nodes()
    assert (found.text, found.metadata["t"]) == (text, text)


def test_what_is_returned_is_a_copy(any_store):
    any_store.add([node("n", [1.0], metadata={"list": [1]})])
    (first,) = any_store.query(VectorStoreQuery(query_embedding=[1.0])).nodes
    first.metadata["list"].append(2)
    first.text = "changed"
    first.relationships.clear()
    (again,) = any_store.query(VectorStoreQuery(query_embedding=[1.0])).nodes
    assert (again.metadata, again.text) == ({"list": [1]}, "lorem ipsum")


def test_similarity_is_the_cosine(store):
    store.add([node("same", [2.0, 0.0]), node("other", [0.0, 3.0]), node("opposite", [-1.0, 0.0])])
    result = store.query(VectorStoreQuery(query_embedding=[5.0, 0.0], similarity_top_k=3))
    assert result.ids == ["same", "other", "opposite"]
    assert result.similarities == pytest.approx([1.0, 0.0, -1.0], abs=1e-6)


def test_top_k_beyond_the_number_of_nodes_returns_each_once(store):
    store.add([node(f"n{i}", [1.0, float(i)]) for i in range(30)])
    result = store.query(VectorStoreQuery(query_embedding=[1.0, 1.0], similarity_top_k=10_000))
    assert len(set(result.ids)) == len(result.ids) == 30


def test_simple_store_ranking_and_filters(any_store):
    any_store.add(ranked_nodes())

    def ask(k=3, **restrictions):
        return any_store.query(VectorStoreQuery(query_embedding=[1.0, 1.0], similarity_top_k=k, **restrictions)).ids

    assert ask()[0] == "w3"
    assert set(ask()) == {"w1", "w2", "w3"}
    assert ask(filters=eq("rank", "c")) == ["w3", "w2"]
    assert ask(1, filters=eq("rank", "c")) == ["w3"]
    assert ask(filters=eq("rank", "c"), node_ids=["w3"]) == ["w3"]
    both = MetadataFilters(filters=[eq("rank", "c").filters[0], eq("weight", 2.0).filters[0]])
    assert ask(filters=both) == ["w2"]
    contradiction = MetadataFilters(filters=[eq("weight", 2).filters[0], eq("weight", 3).filters[0]])
    assert ask(filters=contradiction) == []
    assert ask(filters=eq("unknown", "c")) == []
    either = MetadataFilters(
        filters=[eq("rank", "c").filters[0], eq("weight", 1.0).filters[0]], condition=FilterCondition.OR
    )
    assert len(ask(filters=either)) == 3
    none_of = MetadataFilters(filters=[eq("rank", "a").filters[0]], condition=FilterCondition.NOT)
    assert set(ask(filters=none_of)) == {"w2", "w3"}
    any_store.delete("test-1")
    assert ask(2) == ["w3", "w1"]
    any_store.delete_nodes(["w1"])
    assert ask() == ["w3"]


@pytest.mark.parametrize("operator", [FilterOperator.TEXT_MATCH, FilterOperator.TEXT_MATCH_INSENSITIVE])
def test_text_match_on_a_number_is_a_type_error(store, operator):
    store.add(ranked_nodes())
    filters = MetadataFilters(filters=[MetadataFilter(key="weight", operator=operator, value="1")])
    with pytest.raises(TypeError):
        store.query(VectorStoreQuery(query_embedding=[1.0, 1.0], filters=filters))
    assert issubclass(FilterTypeError, TypeError)


@pytest.mark.parametrize("mode", [VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.MMR])
@pytest.mark.parametrize(
    ("doc_ids", "expected"),
    [
        (None, {"a-0", "a-1", "b-0", "b-1"}),
        ([], set()),
        (["missing"], set()),
        (["a"], {"a-0", "a-1"}),
    ],
)
def test_retriever_constrains_source_documents(store, mode, doc_ids, expected):
    nodes = [node(f"{doc}-{i}", [1.0, float(i)], doc, f"{doc} {i}") for doc in "ab" for i in (0, 1)]
    index = VectorStoreIndex(
        nodes, storage_context=StorageContext.from_defaults(vector_store=store), embed_model=MockEmbedding(embed_dim=2)
    )
    retriever = index.as_retriever(doc_ids=doc_ids, similarity_top_k=10, vector_store_query_mode=mode)
    assert {found.node.node_id for found in retriever.retrieve("test")} == expected


def test_document_node_and_filter_restrictions_intersect(store):
    store.add([node(f"{doc}-{i}", [1.0, float(i)], doc, metadata={"chunk": i}) for doc in "ab" for i in (0, 1)])
    store.add([node("a-2", [1.0, 0.0], "a", metadata={"chunk": 1})])
    query = VectorStoreQuery(
        query_embedding=[1.0, 0.0],
        similarity_top_k=10,
        doc_ids=["a"],
        node_ids=["a-0", "a-1", "b-1"],
        filters=eq("chunk", 1),
    )
    assert store.query(query).ids == ["a-1"]


def test_nodes_without_a_document_are_found_unless_documents_are_named(store):
    store.add([node("mapped", [1.0, 0.0], "a"), node("unmapped", [0.0, 1.0])])
    ask = VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=10)
    assert set(store.query(ask).ids) == {"mapped", "unmapped"}
    ask.doc_ids = ["a"]
    assert store.query(ask).ids == ["mapped"]


def test_a_node_without_source_may_name_its_document_in_its_metadata(store):
    store.add([node("n", [1.0], metadata={"ref_doc_id": "ref-123"})])
    store.delete("ref-123")
    assert store.get_nodes() == []


def test_two_lengths_are_refused_with_both_models_named(path):
    LibraryVectorStore(path, embed_model_name="small").add([node("n", [1.0] * 4)])
    nameless = LibraryVectorStore(path)
    for attempt in (
        lambda: nameless.add([node("m", [1.0] * 7)]),
        lambda: nameless.query(VectorStoreQuery(query_embedding=[1.0] * 7)),
    ):
        with pytest.raises(ValueError, match=r"4 dimensions by model 'small'.* 7"):
            attempt()
    with pytest.raises(EmbeddingProfileError, match=r"'small'.*'large'"):
        LibraryVectorStore(path, embed_model_name="large").query(VectorStoreQuery(query_embedding=[1.0] * 4))
    with pytest.raises(ValueError, match="5"):
        LibraryVectorStore(path, "other", embed_dim=5).add([node("n", [1.0] * 4)])


def test_a_node_without_embedding_is_refused(store):
    with pytest.raises(ValueError, match="embedding not set"):
        store.add([node("good", [1.0]), TextNode(id_="bad", text="t")])
    assert store.get_nodes() == []


def test_collections_of_a_file_are_apart(path):
    first, second = LibraryVectorStore(path, "first"), LibraryVectorStore(path, "second")
    first.add([node("n", [1.0, 0.0], text="one")])
    second.add([node("n", [1.0, 0.0, 0.0], text="two")])
    first.clear()
    assert [found.text for found in second.get_nodes()] == ["two"]


def test_pickle_reopens_the_file(path):
    store = LibraryVectorStore(path, "notes", embed_dim=1, embed_model_name="m")
    store.add([node("n", [1.0])])
    again = pickle.loads(pickle.dumps(store))
    assert (again.path, again.collection_name, again.embed_dim, again.embed_model_name) == (str(path), "notes", 1, "m")
    assert [found.node_id for found in again.get_nodes()] == ["n"]


def test_copies_and_dictionaries_reopen_the_file(path):
    store = LibraryVectorStore(path, "notes")
    store.add([node("n", [1.0])])
    for other in (copy.deepcopy(store), store.model_copy(), LibraryVectorStore.from_dict(store.to_dict())):
        assert [found.node_id for found in other.get_nodes()] == ["n"]


def test_persist_copies_into_a_directory_and_from_persist_dir_opens_it(tmp_path):
    store = LibraryVectorStore()
    store.add(common_nodes())
    context = StorageContext.from_defaults(vector_store=store)
    context.persist(str(tmp_path))
    store.delete_nodes([KING])
    context.persist(str(tmp_path))
    again = LibraryVectorStore.from_persist_dir(str(tmp_path))
    assert {found.node_id for found in again.get_nodes()} == {one.node_id for one in common_nodes()} - {KING}
    assert again.query(VectorStoreQuery(query_embedding=[0.0, 1.0, 0.0])).ids == [COPPOLA]
    again.persist(str(tmp_path / "default__vector_store.json"))
    assert len(again.get_nodes()) == 5
    stores = LibraryVectorStore.from_namespaced_persist_dir(str(tmp_path))
    assert len(stores["default"].get_nodes()) == 5


def test_persisting_leaves_what_else_the_target_holds(tmp_path):
    LibraryVectorStore(tmp_path / "library.sqlite", "other").add([node("n", [1.0])])
    store = LibraryVectorStore()
    store.add([node("m", [1.0])])
    store.persist(str(tmp_path / "default__vector_store.json"))
    assert set(LibraryVectorStore.from_namespaced_persist_dir(str(tmp_path))) == {"default", "other"}
    assert len(LibraryVectorStore(tmp_path / "library.sqlite", "other").get_nodes()) == 1


def test_only_the_local_file_system_holds_a_library(store, tmp_path):
    memory = fsspec.filesystem("memory")
    with pytest.raises(InvalidInputError, match="local"):
        store.persist("/x/default__vector_store.json", fs=memory)
    with pytest.raises(InvalidInputError, match="local"):
        LibraryVectorStore.from_persist_dir("/x", fs=memory)
    assert LibraryVectorStore.from_persist_dir(str(tmp_path / "d"), fs=fsspec.filesystem("file"))


def test_a_file_of_another_program_is_refused(path):
    path.write_text("not a database at all, but long enough to look at" * 20)
    with pytest.raises(ForeignDatabaseError):
        LibraryVectorStore(path)


def test_deleted_space_is_used_again(store, path):
    nodes = [node(f"n{i}", [float(i % 7 + 1)] * 64, "doc", "text " * 40) for i in range(400)]
    store.add(nodes)
    for _ in range(3):
        store.delete("doc")
        store.add(nodes)
    size = store.client._database.size()
    store.delete("doc")
    store.add(nodes)
    assert store.client._database.size() <= 1.1 * size


def test_a_vacuum_returns_deleted_space(store, path):
    store.add([node(f"n{i}", [float(i % 7 + 1)] * 64, "doc", "text " * 40) for i in range(400)])
    store.client._database.truncate_wal()
    full = path.stat().st_size
    store.delete("doc")
    store.client._database.vacuum()
    store.client._database.truncate_wal()
    assert path.stat().st_size < full / 2


def test_a_vector_memory_takes_the_store(store, embedder):
    memory = VectorMemory.from_defaults(
        vector_store=store, embed_model=embedder, retriever_kwargs={"similarity_top_k": 2}
    )
    memory.put(ChatMessage(role="user", content="hello from chat"))
    memory.put(ChatMessage(role="assistant", content="hello too"))
    assert "hello from chat" in [message.content for message in memory.get("hello from chat")]
    memory.reset()
    assert memory.get("hello from chat") == []


@pytest.mark.exhaustive
def test_another_process_adds_nodes(store, path):
    store.add([node("here", [1.0, 0.0])])
    script = (
        "import sys; from llama_index.core.schema import TextNode; from llama_index_libctx import LibraryVectorStore;"
        "LibraryVectorStore(sys.argv[1]).add([TextNode(id_='there', text='t', embedding=[0.0, 1.0])])"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True, timeout=120)
    assert store.query(VectorStoreQuery(query_embedding=[0.0, 1.0], similarity_top_k=2)).ids == ["there", "here"]


def test_threads_see_each_others_nodes(path):
    first, second = LibraryVectorStore(path), LibraryVectorStore(path)
    threads = [threading.Thread(target=first.add, args=([node(f"n{i}", [1.0, float(i)])],)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(second.query(VectorStoreQuery(query_embedding=[1.0, 1.0], similarity_top_k=100)).ids) == 16


async def test_many_async_calls_at_once(store):
    await asyncio.gather(*(store.async_add([node(f"n{i}", [1.0, float(i)], f"d{i % 4}")]) for i in range(40)))
    await asyncio.gather(*(store.adelete(f"d{i}") for i in range(3)))
    assert len(await store.aget_nodes()) == 10


def test_the_sync_interface_works_inside_a_running_loop(store):
    async def cell():
        store.add([node("n", [1.0])])
        return store.query(VectorStoreQuery(query_embedding=[1.0])).ids

    assert asyncio.run(cell()) == ["n"]


def test_nodes_added_after_a_retriever_was_made_are_found(store, embedder):
    index = VectorStoreIndex.from_vector_store(store, embedder)
    retriever = index.as_retriever()
    index.insert(Document(text="late words", id_="late"))
    assert [found.node.ref_doc_id for found in retriever.retrieve("late words")] == ["late"]
