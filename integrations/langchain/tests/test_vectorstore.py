"""`LibraryVectorStore` beyond the standard suite."""

import math
from pathlib import Path
from typing import ClassVar

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_libctx.embeddings import LangChainEmbedder, LibraryEmbeddings
from langchain_libctx.vectorstores import LibraryVectorStore

from libctx_core import LibraryOfContext
from libctx_core.errors import EmbeddingDimensionError, EmbeddingProfileError, InvalidFilterError, InvalidInputError


class Compass(Embeddings):
    """Directions as unit vectors in the plane."""

    angles: ClassVar = {"north": 90, "east": 0, "south": 270, "west": 180, "northeast": 45}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        angle = math.radians(self.angles[text])
        return [math.cos(angle), math.sin(angle)]


class AsyncOnly(Compass):
    """Refuses the synchronous path."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise AssertionError("the synchronous path was used")

    def embed_query(self, text: str) -> list[float]:
        raise AssertionError("the synchronous path was used")

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return Compass().embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return Compass().embed_query(text)


@pytest.fixture
def library(tmp_path: Path):
    with LibraryOfContext(tmp_path / "documents.sqlite") as opened:
        yield opened


@pytest.fixture
def store(library: LibraryOfContext) -> LibraryVectorStore:
    store = LibraryVectorStore(library, Compass())
    store.add_texts(["north", "east", "south", "west"], [{"n": n} for n in range(4)], ids=["n", "e", "s", "w"])
    return store


def contents(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def test_scores_of_opposites_stay_in_range_and_in_order(store: LibraryVectorStore) -> None:
    scored = store.similarity_search_with_relevance_scores("north", k=4)
    scores = [score for _, score in scored]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == pytest.approx(1.0)
    assert scores[-1] == pytest.approx(0.0, abs=1e-6)
    assert all(0 <= score <= 1 for score in scores)


def test_threshold_retriever(store: LibraryVectorStore) -> None:
    retriever = store.as_retriever(search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.9})
    assert contents(retriever.invoke("north")) == ["north"]
    assert {"LibraryVectorStore", "Compass"} <= set(retriever.tags or ())


def test_mmr_prefers_difference(store: LibraryVectorStore) -> None:
    store.add_texts(["northeast"], ids=["ne"])
    assert contents(store.max_marginal_relevance_search("north", k=2, lambda_mult=1.0)) == ["north", "northeast"]
    assert contents(store.max_marginal_relevance_search("north", k=2, lambda_mult=0.0)) == ["north", "south"]
    assert contents(store.as_retriever(search_type="mmr", search_kwargs={"k": 2}).invoke("north"))[0] == "north"


def test_filters_by_operator(store: LibraryVectorStore) -> None:
    found = store.similarity_search("north", k=4, filter={"n": {"$gte": 1, "$ne": 2}})
    assert sorted(contents(found)) == ["east", "west"]
    assert contents(store.similarity_search("north", k=4, filter={"$or": [{"n": 2}, {"n": {"$in": [3]}}]})) == [
        "west",
        "south",
    ]
    with pytest.raises(InvalidFilterError):
        store.similarity_search("north", filter={"n": {"$near": 2}})


def test_a_bound_filter_can_be_narrowed_and_never_widened(library: LibraryOfContext, store: LibraryVectorStore) -> None:
    bound = LibraryVectorStore(library, Compass(), filter={"n": {"$lt": 2}})
    assert sorted(contents(bound.similarity_search("south", k=4))) == ["east", "north"]
    assert contents(bound.similarity_search("south", k=4, filter={"$or": [{"n": 2}, {"n": 1}]})) == ["east"]
    assert contents(bound.get_by_ids(["n", "s"])) == ["north"]
    bound.delete()
    assert sorted(contents(store.similarity_search("north", k=4))) == ["south", "west"]


def test_ids_of_results_and_of_arguments(store: LibraryVectorStore) -> None:
    names = store.add_documents([Document("northeast", id="own"), Document("northeast")], ids=["given", None])
    assert names[0] == "given"
    assert names[1].startswith("doc_")
    assert all(document.id for document in store.similarity_search("north", k=6))
    with pytest.raises(InvalidInputError):
        store.add_texts(["north", "east"], ids=["only one"])


def test_inputs_are_not_changed_and_results_are_copies(store: LibraryVectorStore) -> None:
    metadata = {"deep": {"list": [1]}}
    document = Document("north", metadata=metadata)
    store.add_documents([document], ids=["copy"])
    assert document.id is None
    store.get_by_ids(["copy"])[0].metadata["deep"]["list"].append(2)
    assert store.get_by_ids(["copy"])[0].metadata == {"deep": {"list": [1]}}


def test_metadata_must_be_json(store: LibraryVectorStore) -> None:
    with pytest.raises(InvalidInputError):
        store.add_texts(["north"], [{"bad": object()}], ids=["bad"])
    assert store.get_by_ids(["bad"]) == []


def test_words_and_meaning_together(library: LibraryOfContext) -> None:
    store = LibraryVectorStore(library, name="texts", mode="hybrid")
    store.add_texts(["The spare key is under the flowerpot.", "Trains leave at noon.", "Part number ZX-4711 is out."])
    assert "ZX-4711" in store.similarity_search("zx-4711", k=1)[0].page_content
    assert all(0 <= score <= 1 for _, score in store.similarity_search_with_relevance_scores("key", k=3))
    assert "flowerpot" in store.similarity_search("flowerpot", k=1, mode="text")[0].page_content


def test_survives_reopening(tmp_path: Path) -> None:
    path = tmp_path / "own.sqlite"
    store = LibraryVectorStore(path)
    store.add_texts(["The harbour opens at six."], [{"page": 3}], ids=["a"])
    store.close()
    again = LibraryVectorStore(path)
    assert again.similarity_search("harbour", k=1) == [
        Document(id="a", page_content="The harbour opens at six.", metadata={"page": 3})
    ]
    again.close()


def test_other_embeddings_are_refused(library: LibraryOfContext, store: LibraryVectorStore) -> None:
    with pytest.raises((EmbeddingProfileError, EmbeddingDimensionError)):
        LibraryVectorStore(library, LibraryEmbeddings()).similarity_search("north")


async def test_the_async_path_never_embeds_synchronously(library: LibraryOfContext) -> None:
    store = LibraryVectorStore(library, AsyncOnly(), name="async")
    await store.aadd_texts(["north", "east", "south"], ids=["n", "e", "s"])
    assert contents(await store.asimilarity_search("north", k=1)) == ["north"]
    assert contents(await store.amax_marginal_relevance_search("north", k=2, lambda_mult=0)) == ["north", "south"]
    assert contents(await store.as_retriever(search_kwargs={"k": 1}).ainvoke("east")) == ["east"]
    assert (await store.asimilarity_search_with_relevance_scores("south", k=1))[0][1] == pytest.approx(1.0)
    assert contents(await store.aget_by_ids(["e"])) == ["east"]
    await store.adelete(["e"])
    assert await store.aget_by_ids(["e"]) == []
    assert isinstance(await LibraryVectorStore.afrom_texts(["north"], AsyncOnly()), LibraryVectorStore)


def test_any_langchain_embeddings_serve_a_library(tmp_path: Path) -> None:
    class Words(Embeddings):
        model = "letters"

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return [float(text.lower().count(letter)) for letter in "aeiounrst"]

    embedder = LangChainEmbedder(Words())
    assert embedder.dimension == 9
    assert embedder.profile_id.endswith("Words:letters")
    with LibraryOfContext(tmp_path / "own.sqlite", embedder=embedder) as library:
        governor = library.open_context_governor("s")
        governor.record("user", "banana split")
        library.flush()
        assert governor.recall("banana")[0].text == "banana split"
        with pytest.raises(EmbeddingDimensionError):
            LangChainEmbedder(Words(), dimension=3).embed_query("x")
