"""LangChain's standard suites on every class of ours that they cover, none overridden."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_libctx.embeddings import LibraryEmbeddings
from langchain_libctx.retrievers import LibraryRetriever
from langchain_libctx.stores import LibraryByteStore
from langchain_libctx.vectorstores import LibraryVectorStore
from langchain_tests.integration_tests import (
    BaseStoreAsyncTests,
    BaseStoreSyncTests,
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)
from langchain_tests.unit_tests import EmbeddingsUnitTests

from libctx_core import LibraryOfContext


class TestVectorStoreStandard(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Generator[VectorStore, None, None]:
        store = LibraryVectorStore(tmp_path / "documents.sqlite", self.get_embeddings())
        yield store
        store.close()


class TestEmbeddingsUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return LibraryEmbeddings


class TestEmbeddingsIntegration(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return LibraryEmbeddings


class TestRetrieverStandard(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def library(cls) -> Generator[LibraryOfContext, None, None]:
        with LibraryOfContext(":memory:") as library:
            for number in range(8):
                library.shelve(f"Note {number}: the harbour crane number {number} lifts {number * 3} tonnes.")
            library.flush()
            cls.opened = library
            yield library

    @property
    def retriever_constructor(self) -> type[LibraryRetriever]:
        return LibraryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"library": self.opened}

    @property
    def retriever_query_example(self) -> str:
        return "harbour crane"


class TestByteStoreSync(BaseStoreSyncTests[bytes]):
    @pytest.fixture
    def kv_store(self, tmp_path: Path) -> Generator[LibraryByteStore, None, None]:
        store = LibraryByteStore(tmp_path / "bytes.sqlite")
        yield store
        store.close()

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return b"one", b"\x00\xff", b""


class TestByteStoreAsync(BaseStoreAsyncTests[bytes]):
    @pytest.fixture
    async def kv_store(self, tmp_path: Path):
        store = LibraryByteStore(tmp_path / "bytes.sqlite")
        yield store
        store.close()

    @pytest.fixture
    def three_values(self) -> tuple[bytes, bytes, bytes]:
        return b"one", b"\x00\xff", b""


def test_keys_with_a_prefix_are_compared_as_text(tmp_path: Path) -> None:
    store = LibraryByteStore(tmp_path / "bytes.sqlite")
    store.mset([(f"a%{number:04}", b"x") for number in range(1_200)] + [("ab", b"x"), ("b", b"x")])
    assert len(list(store.yield_keys(prefix="a%"))) == 1_200
    assert list(store.yield_keys(prefix="ab")) == ["ab"]
    assert len(list(store.yield_keys())) == 1_202
    assert LibraryByteStore(tmp_path / "bytes.sqlite", name="other").mget(["ab"]) == [None]
    store.close()
