"""What a vector is in the file: exact where it may be the only copy, codes where the library made it itself."""

import numpy as np
import pytest

from libctx_core.embedding import StaticEmbedder
from libctx_core.search.index import SearchIndex
from libctx_core.search.vectors import VectorIndex
from libctx_core.store.connection import vector_extension
from libctx_core.store.database import Database
from libctx_core.store.owners import VECTOR_COLLECTION, get_or_create_owner
from libctx_core.store.records import slot_of, slot_range
from libctx_core.store.vectors import fix_profile, pack_vectors, put_vectors, read_some_vectors, read_vectors

DEFAULT = StaticEmbedder().profile_id
TEXTS = ["a violin in the orchard", "the budget meeting", "", "heron is the staging server", "!?"]


class Rows:
    """An owner of a new library file, and its rows."""

    def __init__(self, database):
        self.database = database
        self.owner = database.write(lambda c: get_or_create_owner(c, VECTOR_COLLECTION, "n", "n").id)

    def put(self, profile, vectors, *, at=0):
        rows = pack_vectors(list(vectors))

        def work(connection):
            fix_profile(connection, self.owner, profile, len(rows[0]) // 4)
            put_vectors(connection, self.owner, [(slot_of(self.owner, at + n), row) for n, row in enumerate(rows)])

        self.database.write(work)

    def put_exactly(self, vectors, *, at=0):
        """Write as releases did that knew no codes."""
        rows = [(slot_of(self.owner, at + n), row) for n, row in enumerate(pack_vectors(list(vectors)))]
        self.database.write(lambda c: c.executemany("INSERT OR REPLACE INTO vector VALUES(?, ?)", rows))

    def lengths(self):
        with self.database.read() as connection:
            return {length for (length,) in connection.execute("SELECT length(data) FROM vector")}

    def all(self, dimension):
        with self.database.read() as connection:
            blocks = list(read_vectors(connection, *slot_range(self.owner), dimension))
        return np.concatenate([rows for _, rows in blocks])


@pytest.fixture
def rows(tmp_path):
    database = Database(tmp_path / "library.sqlite")
    SearchIndex(database)
    yield Rows(database)
    database.close()


@pytest.mark.parametrize("profile", ["", "mine/1", "minilm"])
def test_other_embedders_vectors_are_kept_to_the_bit(rows, profile):
    vectors = np.random.default_rng(1).standard_normal((50, 33)).astype(np.float32)
    rows.put(profile, vectors)
    assert rows.lengths() == {4 * 33}
    assert rows.all(33).tobytes() == vectors.tobytes()


@pytest.mark.parametrize("dimension", [1, 2, 7, 256])
def test_default_vectors_take_a_byte_per_column(rows, dimension):
    vectors = StaticEmbedder(dimension).embed_documents(TEXTS)
    rows.put(StaticEmbedder(dimension).profile_id, vectors)
    assert rows.lengths() == {dimension + 4}
    step = np.abs(vectors).max(axis=1, keepdims=True) / 127
    assert (np.abs(rows.all(dimension) - vectors) <= step * 0.5001).all()


def test_cosines_of_codes_are_those_of_the_vectors(rows):
    texts = [f"{one} {two} {n}" for n, (one, two) in enumerate(zip(TEXTS * 20, reversed(TEXTS * 20), strict=True))]
    vectors = StaticEmbedder().embed_documents(texts)
    rows.put(DEFAULT, vectors)
    stored = rows.all(256)
    stored = stored / np.linalg.norm(stored, axis=1, keepdims=True)
    assert np.abs(stored @ vectors.T - vectors @ vectors.T).max() < 0.005


def test_equal_texts_have_equal_codes_however_they_are_batched(rows):
    vectors = StaticEmbedder().embed_documents(TEXTS)
    rows.put(DEFAULT, vectors)
    for at, vector in enumerate(vectors):
        rows.put(DEFAULT, [vector], at=10 + at)
    stored = rows.all(256)
    assert stored[:5].tobytes() == stored[5:].tobytes()


def test_files_hold_both_kinds(rows):
    """A file from before codes goes on as it is, and what is put again becomes codes."""
    vectors = StaticEmbedder().embed_documents(TEXTS)
    rows.put(DEFAULT, vectors)
    rows.put_exactly(vectors[:3])
    assert rows.lengths() == {260, 1024}
    mixed = rows.all(256)
    assert mixed[:3].tobytes() == vectors[:3].tobytes()
    assert np.allclose(mixed[3:], vectors[3:], atol=0.01)
    with rows.database.read() as connection:
        wanted = np.array([slot_of(rows.owner, at) for at in (1, 3)])
        slots, some = read_some_vectors(connection, wanted, 256)
    assert slots.tolist() == wanted.tolist()
    assert some.tobytes() == mixed[[1, 3]].tobytes()
    rows.put(DEFAULT, vectors)
    assert rows.lengths() == {260}


@pytest.mark.parametrize(
    "backend",
    ["numpy", pytest.param("sqlite-vec", marks=pytest.mark.skipif(vector_extension() is None, reason="no wheel"))],
)
def test_either_backend_finds_default_vectors(rows, backend):
    embedder = StaticEmbedder()
    rows.put(DEFAULT, embedder.embed_documents(TEXTS))
    with rows.database.read() as connection:
        found = VectorIndex(backend=backend).top_k(
            connection, [rows.owner], embedder.embed_query("the staging server heron"), 1
        )
    assert [one.slot for one in found] == [slot_of(rows.owner, 3)]
    assert found[0].similarity > 0.8
