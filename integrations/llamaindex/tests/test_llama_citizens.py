"""Retriever, reader, embedders, models and instrumentation."""

import asyncio
import json
import threading
from typing import Any

import numpy as np
import pytest
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.bridge.pydantic import BaseModel, PrivateAttr
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.mock import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.readers.base import ReaderConfig, ResourcesReaderMixin
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import Document, TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_libctx import (
    LibraryEmbedding,
    LibraryReader,
    LibraryRetriever,
    LibraryVectorIndex,
    LibraryWriteEvent,
    LlamaIndexEmbedder,
    LlamaIndexGenerator,
    LlamaReaderSourceAdapter,
)
from llama_index_libctx.reader import ReaderResource

from libctx_core import LibraryOfContext
from libctx_core.embedding import StaticEmbedder
from libctx_core.errors import (
    InferenceConfigurationError,
    InferenceTimeoutError,
    InferenceUnavailableError,
    InvalidInferenceOutputError,
    InvalidInputError,
    SourceChangedError,
)
from libctx_core.ports import Embedder
from libctx_core.sources import ContentCapture, SourceShelf


@pytest.fixture
def library(path):
    with LibraryOfContext(path) as library:
        governor = library.open_context_governor("s1")
        governor.record("user", "my cat is called Minka", speaker="Ann", occurred_at=1_700_000_000)
        governor.record("assistant", "a fine name for a cat")
        library.shelve("The deployment runs on Fridays.", title="runbook")
        library.flush()
        yield library


# -- retriever ------------------------------------------------------------------


def test_it_finds_the_shelf_and_the_conversation_that_is_named(library):
    shelf = LibraryRetriever(library, similarity_top_k=3).retrieve("when does the deployment run?")
    assert [hit.node.get_content() for hit in shelf] == ["The deployment runs on Fridays."]
    both = LibraryRetriever(library, session_id="s1", similarity_top_k=1).retrieve("what is the cat of Ann called?")
    (hit,) = both
    assert hit.node.get_content() == "my cat is called Minka"
    assert hit.node.metadata["speaker"] == "Ann"
    assert hit.node.metadata["occurred_at"].startswith("2023-11-14T")
    assert hit.node.ref_doc_id == "thread:default/s1"
    assert 0.0 <= hit.score <= 1.0


def test_the_users_metadata_wins_over_the_librarys(library):
    library.shelve("Minka is a good name.", metadata={"mood": "good", "kind": "mine"})
    library.flush()
    (hit,) = LibraryRetriever(library, similarity_top_k=1).retrieve("Minka, a good name")
    assert (hit.node.metadata["mood"], hit.node.metadata["kind"]) == ("good", "mine")


async def test_it_retrieves_off_the_event_loop(library, monkeypatch):
    used = []
    original = LibraryRetriever._retrieve
    monkeypatch.setattr(
        LibraryRetriever, "_retrieve", lambda self, b: (used.append(threading.get_ident()), original(self, b))[1]
    )
    retriever = LibraryRetriever(library, everything=True)
    found = await asyncio.gather(*(retriever.aretrieve("cat Minka") for _ in range(4)))
    assert {hits[0].node.get_content() for hits in found} == {"my cat is called Minka"}
    assert threading.get_ident() not in used


def test_inside_an_engine_and_a_fusion(library):
    retriever = LibraryRetriever(library, session_id="s1", similarity_top_k=2)
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    assert "Minka" in str(engine.query("what is the cat called?").source_nodes)
    fusion = QueryFusionRetriever([retriever, retriever], llm=MockLLM(), num_queries=1, use_async=False)
    ids = [hit.node.node_id for hit in fusion.retrieve("what is the cat called?")]
    assert len(ids) == len(set(ids))


# -- reader ---------------------------------------------------------------------


def test_conversations_and_sources_are_documents_with_stable_ids(library):
    SourceShelf(library.database, "default").capture(
        ContentCapture(source_id="notes", content="Oslo is cold.", metadata={"lang": "en"})
    )
    reader = LibraryReader(library)
    assert reader.list_resources() == ["thread:default/s1", "source:content/notes"]
    documents = reader.load_data()
    assert [document.text for document in documents] == [
        "my cat is called Minka",
        "a fine name for a cat",
        "Oslo is cold.",
    ]
    assert documents[2].id_ == "source:content/notes"
    assert documents[2].metadata == {"lang": "en"}
    assert documents[0].metadata["speaker"] == "Ann"
    assert [document.id_ for document in reader.load_data()] == [document.id_ for document in documents]
    assert reader.get_resource_info("thread:default/s1")["events"] == 2
    assert reader.get_resource_info("source:content/notes")["materialization"] == "captured"


def test_a_node_names_its_conversation_as_the_reader_and_the_scopes_do(library):
    governor = library.open_context_governor("s1", collection="a/b")
    governor.record("user", "the heron is moored at pier nine")
    governor.flush()
    (hit,) = LibraryRetriever(library, collection="a/b", session_id="s1", similarity_top_k=1).retrieve("which pier?")
    assert hit.node.ref_doc_id == "thread:a%2Fb/s1"
    (document,) = LibraryReader(library, collection="a/b").load_resource(hit.node.ref_doc_id)
    assert document.text == "the heron is moored at pier nine"


async def test_the_async_reader(library):
    reader = LibraryReader(library)
    assert await reader.aload_data() == list(await reader.alazy_load_data()) == reader.load_data()
    assert len(await reader.aload_resource("thread:default/s1")) == 2


@pytest.mark.parametrize("resource_id", ["thread:other/s1", "nothing", ""])
def test_a_foreign_id_is_refused(library, resource_id):
    with pytest.raises(InvalidInputError, match="resource_id"):
        LibraryReader(library).load_resource(resource_id)


def test_an_index_over_a_library_refreshes_instead_of_growing(library, path, embedder):
    index = LibraryVectorIndex.from_library(library)
    reader = LibraryReader(library)
    assert all(index.refresh_ref_docs(reader.load_data()))
    library.open_context_governor("s1").record("user", "and my dog is called Rex")
    assert index.refresh_ref_docs(reader.load_data()) == [False, False, True]


def test_redacted_messages_are_not_read(library):
    governor = library.open_context_governor("s1")
    governor.redact(next(governor.history()).event_id)
    assert [document.text for document in LibraryReader(library).load_data()] == ["a fine name for a cat"]


def test_it_is_serialised_and_runs_in_a_pipeline(library, path):
    reader = LibraryReader.from_dict(LibraryReader(path).to_dict())
    assert len(reader.load_data()) == 2
    pipeline = IngestionPipeline(transformations=[], readers=[ReaderConfig(reader=reader)])
    assert len(pipeline.run()) == 2


class Pages(ResourcesReaderMixin):
    def __init__(self):
        self.pages = {"one": "first page", "x" * 300: "long id"}

    def list_resources(self):
        return list(self.pages)

    def get_resource_info(self, resource_id):
        return {}

    def load_resource(self, resource_id):
        return [Document(text=self.pages[resource_id], id_=resource_id)]


def test_resources_of_a_reader_are_sources(library):
    pages = Pages()
    shelf = SourceShelf(library.database, "default", [LlamaReaderSourceAdapter(pages)])
    entries = [shelf.capture(ReaderResource(resource_id=name)) for name in pages.list_resources()]
    assert [entry.source.materialization for entry in entries] == ["referenced", "referenced"]
    assert entries[0].ref.source_type == "llama_index.Pages"
    assert len(entries[1].source.name) < 100
    (document,) = shelf.read(shelf.get(entries[0].ref).source)
    assert document.text == "first page"
    pages.pages["one"] = "another page"
    with pytest.raises(SourceChangedError):
        shelf.read(entries[0].source)


# -- embedders ------------------------------------------------------------------


async def test_the_librarys_embedder_as_a_llama_index_model(path):
    model = LibraryEmbedding()
    assert model.model_name == StaticEmbedder().profile_id
    text = model.get_text_embedding("a cat sleeps")
    assert text == await model.aget_text_embedding("a cat sleeps")
    assert text == model.get_text_embedding_batch(["a cat sleeps", "x"])[0]
    assert text == (await model.aget_text_embedding_batch(["a cat sleeps"]))[0]
    assert model.get_query_embedding("a cat") == await model.aget_query_embedding("a cat")
    index = LibraryVectorIndex.from_library(path, embed_model=model)
    index.refresh_ref_docs([Document(id_="a", text="the cat sleeps"), Document(id_="b", text="stock prices fell")])
    assert index.as_retriever(similarity_top_k=1).retrieve("a sleepy cat")[0].node.ref_doc_id == "a"
    assert index.vector_store.client.stored_profile() == model.model_name


def test_a_llama_index_model_as_the_librarys_embedder(path, embedder):
    with pytest.raises(InvalidInputError, match="profile_id"):
        LlamaIndexEmbedder(embedder)
    bridge = LlamaIndexEmbedder(type(embedder)(model_name="words"))
    assert isinstance(bridge, Embedder)
    assert (bridge.profile_id, bridge.dimension) == ("llama-index/WordEmbedding/words", 32)
    rows = bridge.embed_documents(["a b", "", "c c c"])
    assert rows.shape == (3, 32)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1.0, 0.0, 1.0])
    assert bridge.embed_query("a b") == pytest.approx(rows[0])
    assert bridge.embed_documents([]).shape == (0, 32)
    with LibraryOfContext(path, embedder=bridge) as library:
        library.shelve("the deployment runs on Fridays")
        library.flush()
        assert library.consult("deployment Fridays")[0].text == "the deployment runs on Fridays"


# -- models ---------------------------------------------------------------------


class Question(BaseModel):
    text: str


class Answer(BaseModel):
    words: list[str]


class Says(CustomLLM):
    """A completion model that always says the same, or raises it."""

    answer: Any = ""
    _seen: list[str] = PrivateAttr(default_factory=list)

    @property
    def metadata(self):
        return LLMMetadata()

    def complete(self, prompt, formatted=False, **kwargs):
        self._seen.append(prompt)
        if isinstance(self.answer, Exception):
            raise self.answer
        return CompletionResponse(text=self.answer)

    def stream_complete(self, prompt, formatted=False, **kwargs):
        raise AssertionError("nothing is streamed here")


def generator(answer):
    return LlamaIndexGenerator(Says(answer=answer), Answer, instructions="List the {words}.", operation="list-words")


async def test_a_model_answers_in_a_schema():
    bridge = generator(json.dumps({"words": ["a", "b"]}))
    result = await bridge.generate(Question(text="with {braces} and 'quotes'"))
    assert result.output == Answer(words=["a", "b"])
    assert result.usage.requests == 1
    assert "{braces}" in str(bridge._llm._seen)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("no JSON at all", InvalidInferenceOutputError),
        ('{"words": 3}', InvalidInferenceOutputError),
        (TimeoutError(), InferenceTimeoutError),
        (NotImplementedError(), InferenceConfigurationError),
        (ConnectionError(), InferenceUnavailableError),
        (RuntimeError("502"), InferenceUnavailableError),
    ],
)
async def test_what_goes_wrong_has_the_librarys_names(answer, error):
    with pytest.raises(error):
        await generator(answer).generate(Question(text="x"))


# -- instrumentation --------------------------------------------------------------


def test_writes_are_told(store):
    heard = []

    class Ear(BaseEventHandler):
        def handle(self, event, **_):
            if isinstance(event, LibraryWriteEvent):
                heard.append((event.operation, event.count, event.collection_name))

    dispatcher = get_dispatcher()
    ear = Ear()
    dispatcher.add_event_handler(ear)
    try:
        store.add([TextNode(id_=i, embedding=[1.0], metadata={"ref_doc_id": "d"}) for i in "abc"])
        store.delete_nodes(["a"])
        store.delete("d")
        store.clear()
        store.query(VectorStoreQuery(query_embedding=[1.0]))
    finally:
        dispatcher.event_handlers.remove(ear)
    assert heard == [
        ("add", 3, "default"),
        ("delete_nodes", 1, "default"),
        ("delete", 2, "default"),
        ("clear", None, "default"),
    ]
