"""Bit codes find what an exact search finds, say so, follow changes, and are kept in the file."""

import threading

import numpy as np
import pytest

from libctx_core.search import accelerator
from libctx_core.search.bitcodes import BitEncoder, agreement, hamming
from libctx_core.search.cache import ByteCache
from libctx_core.search.calibration import LADDER, TARGET_RECALL
from libctx_core.search.vectors import VectorIndex
from libctx_core.store.database import Database
from libctx_core.store.records import slot_of
from libctx_core.store.vector_codes import read_codes, read_header
from libctx_core.testing.vectors import VectorLibrary


def clustered(count, dimension=64, seed=0):
    """Return vectors in 250 clusters whose variance decays along the axes, as embeddings have it."""
    scale = 1 / np.sqrt(1 + np.arange(dimension) / 4)
    centres = np.random.default_rng(0).standard_normal((250, dimension)) * scale
    random = np.random.default_rng(seed)
    rows = centres[random.integers(0, len(centres), count)] + 0.4 * random.standard_normal((count, dimension)) * scale
    return rows.astype(np.float32)


def filled_library(path, count):
    library = VectorLibrary(path)
    owner = library.owner()
    library.put(owner, dict(enumerate(clustered(count))))
    return library, owner


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A library that no test changes."""
    return filled_library(tmp_path_factory.mktemp("large") / "library.sqlite", 12_000)


@pytest.fixture
def library(tmp_path):
    return filled_library(tmp_path / "library.sqlite", 3_000)[0]


@pytest.fixture
def filled(library):
    return library.owner()


def coded():
    return VectorIndex(cache_bytes=1)


def test_codes_are_calibrated_and_recall_holds_for_other_questions(large):
    library, filled = large
    index, exact = coded(), VectorIndex()
    shares = []
    for query in clustered(40, seed=9):
        found = {at for at, _ in library.nearest(index, filled, query, 10)}
        shares.append(len(found & {at for at, _ in library.nearest(exact, filled, query, 10)}) / 10)
    assert np.mean(shares) >= TARGET_RECALL
    with library.database.read() as connection:
        table = index._coded(connection, filled, accelerator.vector_state(connection, filled))
    assert table.calibration.candidates in LADDER
    assert table.calibration.recall >= TARGET_RECALL
    assert table.nbytes < 12_000 * 64 * 4 / 10


def test_scores_are_exact_whatever_the_codes_say(large):
    library, filled = large
    query = clustered(1, seed=4)[0]
    measured = dict(library.nearest(coded(), filled, query, 10))
    exact = dict(library.nearest(VectorIndex(), filled, query, 12_000))
    for at, score in measured.items():
        assert score == pytest.approx(exact[at], abs=2e-6)


def test_where_codes_miss_too_much_the_search_is_exact(library):
    """Isotropic noise has no structure that bits could keep."""
    owner = library.owner("noise")
    vectors = np.random.default_rng(1).standard_normal((9_000, 24)).astype(np.float32)
    library.put(owner, dict(enumerate(vectors)))
    index = coded()
    for query in np.random.default_rng(2).standard_normal((5, 24)).astype(np.float32):
        found = [at for at, _ in library.nearest(index, owner, query, 10)]
        assert len(set(found) & {at for at, _ in library.nearest(VectorIndex(), owner, query, 10)}) >= 9
    with library.database.read() as connection:
        state = accelerator.vector_state(connection, owner)
        assert accelerator.build(connection, owner, state).calibration.candidates in (0, *LADDER[2:])


def test_small_permitted_sets_are_exact(large):
    library, filled = large
    only = list(range(0, 12_000, 3))
    query = clustered(1, seed=5)[0]
    found = library.nearest(coded(), filled, query, 20, only=only)
    assert [at for at, _ in found] == [at for at, _ in library.nearest(VectorIndex(), filled, query, 20, only=only)]


def test_large_permitted_sets_hold_nothing_else(large):
    library, filled = large
    query = clustered(1, seed=6)[0]
    closest = [at for at, _ in library.nearest(VectorIndex(), filled, query, 10)]
    found = [at for at, _ in library.nearest(coded(), filled, query, 10, but=closest)]
    assert not set(found) & set(closest)
    exact = {at for at, _ in library.nearest(VectorIndex(), filled, query, 10, but=closest)}
    assert len(exact & set(found)) >= 9


def test_estimates_rank_like_cosines(large):
    library, filled = large
    query = clustered(1, seed=7)[0]
    with library.database.read() as connection:
        estimated = coded().similarities(connection, [filled], query)[filled]
        exact = VectorIndex().similarities(connection, [filled], query)[filled]
    assert np.corrcoef(estimated, exact)[0, 1] > 0.7
    best = np.argsort(-exact)[:10]
    assert np.mean(np.abs(estimated[best] - exact[best]) < 2e-6) >= 0.9


def test_codes_are_kept_in_the_file_and_brought_up_to_date(library, filled):
    index = coded()
    query = clustered(1, seed=8)[0]
    before = library.nearest(index, filled, query, 10)
    assert index.save_codes(library.database, filled)
    assert not index.save_codes(library.database, filled)
    gone, changed = before[0][0], before[1][0]
    library.remove(filled, gone)
    library.put(filled, {changed: -query, 3_000: query})
    with library.database.read() as connection:
        state = accelerator.vector_state(connection, filled)
        table = accelerator.load(connection, filled, state)
    assert table is not None
    assert table.saved == 3_000
    assert table.state == state
    found = [at for at, _ in library.nearest(coded(), filled, query, 10)]
    assert found[0] == 3_000
    assert not {gone, changed} & set(found)


def test_codes_of_removed_vectors_are_blanked_in_the_file(library, filled):
    index = coded()
    library.nearest(index, filled, [1.0] * 64, 1)
    index.save_codes(library.database, filled)
    library.remove(filled, 17)
    library.put(filled, {18: [1.0] * 64})

    def code(position):
        with library.database.read() as connection:
            for slots, codes in read_codes(connection, filled):
                held = np.frombuffer(slots, "<i8").tolist()
                if slot_of(filled, position) in held:
                    at = held.index(slot_of(filled, position))
                    return codes[8 * at : 8 * at + 8]
        return None

    assert code(17) == code(18) == bytes(8)
    assert code(19) != bytes(8)


def test_clearing_drops_the_codes(library, filled):
    index = coded()
    library.nearest(index, filled, [1.0] * 64, 1)
    index.save_codes(library.database, filled)
    library.clear(filled)
    with library.database.read() as connection:
        assert read_header(connection, filled) is None
    assert library.nearest(index, filled, [1.0] * 64, 1) == []


def test_codes_that_are_out_of_date_are_not_saved(library, filled):
    index = coded()
    library.nearest(index, filled, [1.0] * 64, 1)
    library.remove(filled, 3)
    index.save_codes(library.database, filled)
    with library.database.read() as connection:
        assert read_header(connection, filled) is None


def test_a_read_only_library_is_searched_without_saving(tmp_path, library, filled):
    reading = Database(library.database.path, read_only=True)
    index = coded()
    with reading.read() as connection:
        assert index.top_k(connection, [filled], [1.0] * 64, 1)
    assert not index.save_codes(reading, filled)
    reading.close()


@pytest.mark.parametrize("dimension", [1, 7, 64, 65, 384, 1_100])
def test_distances_and_agreements(dimension):
    random = np.random.default_rng(dimension)
    units = random.standard_normal((50, dimension)).astype(np.float32)
    encoder = BitEncoder.of(units)
    again = BitEncoder.from_bytes(encoder.to_bytes(), dimension)
    words = encoder.encode(units)
    assert (again.encode(units) == words).all()
    bits = encoder.project(units) > 0
    assert hamming(words, words[:, 3]).tolist() == (bits != bits[3]).sum(axis=1).tolist()
    question = encoder.project(units[:1])[0]
    assert agreement(words, question) == pytest.approx(bits.astype(np.float32) @ question, rel=1e-3, abs=1e-3)


class _Bytes:
    def __init__(self, nbytes):
        self.nbytes = nbytes


def test_a_cache_keeps_what_was_used_last():
    cache = ByteCache(10)
    for key in "abc":
        cache.renew(key, lambda known: known or _Bytes(4))
    assert [key for key in "abc" if key in cache] == ["b", "c"]
    cache.renew("b", lambda known: known or _Bytes(99))
    cache.renew("d", lambda known: _Bytes(4))
    assert [key for key in "bcd" if key in cache] == ["b", "d"]
    cache.renew("huge", lambda known: _Bytes(11))
    assert cache.get("huge") is None
    cache.forget("b")
    assert "b" not in cache


def test_threads_renew_one_entry_in_turn():
    cache = ByteCache(100)

    def count(known):
        value = _Bytes(1 if known is None else known.nbytes + 1)
        threading.Event().wait(0.001)
        return value

    threads = [threading.Thread(target=cache.renew, args=("k", count)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.get("k").nbytes == 20
