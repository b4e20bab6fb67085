"""Libraries on disk, their memories, and the seed's service over two backends."""

import pytest

from libctx_core.embedding import StaticEmbedder
from libctx_core.memory import Memories, MemoryService
from libctx_core.search.index import SearchIndex
from libctx_core.search.searcher import Searcher
from libctx_core.store import Database
from tests.memory.naive import NaiveBackend


@pytest.fixture(scope="session")
def embedder():
    return StaticEmbedder()


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "library.db")
    yield database
    database.close()


@pytest.fixture(scope="session")
def open_memories(embedder):
    """Return a function that opens the memories of a collection."""

    def open_them(database: Database, collection: str = "team", *, vectors: bool = True, **options) -> Memories:
        used = embedder if vectors else None
        return Memories(
            database, SearchIndex(database), Searcher(database, used), used, collection=collection, **options
        )

    return open_them


@pytest.fixture
def memories(database, open_memories):
    return open_memories(database)


@pytest.fixture(params=["sqlite", "naive"])
def make_service(request, database, open_memories):
    """Return a function that makes the seed's service, over the library and over a naive backend."""
    backend = NaiveBackend() if request.param == "naive" else open_memories(database).service()._backend

    def make(**options) -> MemoryService:
        return MemoryService(backend=backend, **options)

    return make
