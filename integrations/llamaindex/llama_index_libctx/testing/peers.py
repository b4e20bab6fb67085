"""The stores the suites are printed for: this one, LlamaIndex's own, and peers that are installed."""

import importlib
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index_libctx.testing.report import DIMENSION, StoreFactory
from llama_index_libctx.vector_store import LibraryVectorStore

PeerBuilder = Callable[[Path, int], StoreFactory]
"""Takes an empty directory and a vector length, returns a factory; raises ImportError where the peer is missing."""


def _name() -> str:
    return f"t{uuid.uuid4().hex}"


def _member(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _libctx(directory: Path, _dimension: int) -> StoreFactory:
    return lambda: LibraryVectorStore(directory / f"{_name()}.sqlite")


def _simple(_directory: Path, _dimension: int) -> StoreFactory:
    return SimpleVectorStore


def _chroma(directory: Path, _dimension: int) -> StoreFactory:
    chromadb = importlib.import_module("chromadb")
    store_class = _member("llama_index.vector_stores.chroma", "ChromaVectorStore")
    client = chromadb.PersistentClient(path=str(directory))

    def make() -> BasePydanticVectorStore:
        collection = client.create_collection(_name(), metadata={"hnsw:space": "cosine"})
        store: BasePydanticVectorStore = store_class(chroma_collection=collection)
        return store

    return make


def _qdrant(_directory: Path, _dimension: int) -> StoreFactory:
    client_class = _member("qdrant_client", "QdrantClient")
    store_class = _member("llama_index.vector_stores.qdrant", "QdrantVectorStore")
    return lambda: store_class(client=client_class(location=":memory:"), collection_name=_name())


def _lancedb(directory: Path, _dimension: int) -> StoreFactory:
    store_class = _member("llama_index.vector_stores.lancedb", "LanceDBVectorStore")
    return lambda: store_class(uri=str(directory / _name()), mode="overwrite")


def _duckdb(_directory: Path, dimension: int) -> StoreFactory:
    store_class = _member("llama_index.vector_stores.duckdb", "DuckDBVectorStore")
    return lambda: store_class(embed_dim=dimension)


def _faiss(_directory: Path, dimension: int) -> StoreFactory:
    faiss = importlib.import_module("faiss")
    store_class = _member("llama_index.vector_stores.faiss", "FaissMapVectorStore")
    return lambda: store_class(faiss_index=faiss.IndexIDMap2(faiss.IndexFlatIP(dimension)))


PEERS: dict[str, PeerBuilder] = {
    "libctx": _libctx,
    "SimpleVectorStore": _simple,
    "Chroma": _chroma,
    "Qdrant (local)": _qdrant,
    "LanceDB": _lancedb,
    "DuckDB": _duckdb,
    "FAISS (map)": _faiss,
}
"""Builders by the name printed."""


def installed(directory: Path, dimension: int = DIMENSION) -> dict[str, StoreFactory | None]:
    """Return a factory per peer, None where it is not installed.

    Args:
        directory: Where file-backed peers put their files.
        dimension: Length of the vectors that will be stored.
    """
    found: dict[str, StoreFactory | None] = {}
    for name, build in PEERS.items():
        try:
            found[name] = build(Path(tempfile.mkdtemp(dir=directory)), dimension)
        except ImportError:
            found[name] = None
    return found
