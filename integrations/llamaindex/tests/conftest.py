"""What the package's tests share."""

import hashlib

import pytest
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.settings import Settings
from llama_index_libctx import LibraryVectorStore


class WordEmbedding(BaseEmbedding):
    """Embeds a text as the counts of its words in 32 buckets: equal words, equal vectors."""

    dimension: int = 32

    def _vector(self, text):
        vector = [0.0] * self.dimension
        for word in text.lower().split():
            vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.dimension] += 1.0
        return vector

    def _get_text_embedding(self, text):
        return self._vector(text)

    def _get_query_embedding(self, query):
        return self._vector(query)

    async def _aget_query_embedding(self, query):
        return self._vector(query)


class FailingEmbedding(WordEmbedding):
    """A model that is out of order."""

    def _get_text_embedding(self, text):
        raise ConnectionError("the model is gone")


@pytest.fixture
def embedder():
    return WordEmbedding()


@pytest.fixture
def failing_embedder():
    return FailingEmbedding()


@pytest.fixture(autouse=True)
def settings(embedder):
    """Keep LlamaIndex's global settings offline, and as they were."""
    before = (Settings._embed_model, Settings._node_parser, Settings._transformations)
    Settings.embed_model = embedder
    Settings.node_parser = SentenceSplitter(chunk_size=64, chunk_overlap=0)
    # the first use anywhere in the process keeps the parser it met
    Settings._transformations = None
    yield
    Settings._embed_model, Settings._node_parser, Settings._transformations = before


@pytest.fixture
def path(tmp_path):
    return tmp_path / "library.sqlite"


@pytest.fixture
def store(path):
    return LibraryVectorStore(path)


@pytest.fixture(params=["file", "memory"])
def any_store(request, path):
    return LibraryVectorStore(path if request.param == "file" else ":memory:")
