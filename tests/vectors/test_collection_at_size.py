"""The costs of a collection of 100,000 items of 384 dimensions, as ratios and in CPU time."""

import time
from statistics import median

import numpy as np
import pytest

from libctx_core.search.collection import VectorCollection
from libctx_core.search.collection_items import CollectionItem
from libctx_core.search.filters import And, Compare
from libctx_core.store.database import Database

COUNT, DIMENSION, BATCH = 100_000, 384, 2_048

pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def vectors():
    random = np.random.default_rng(0)
    centres = random.standard_normal((256, DIMENSION)).astype(np.float32)
    rows = centres[random.integers(0, 256, COUNT)] + 0.5 * random.standard_normal((COUNT, DIMENSION), np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def filled(tmp_path_factory, vectors):
    """The collection and how many items were stored per CPU-second."""
    database = Database(tmp_path_factory.mktemp("size") / "library.sqlite")
    collection = VectorCollection(database, "nodes")
    spent = 0.0
    for start in range(0, COUNT, BATCH):
        items = [
            CollectionItem(
                key=f"node-{at}",
                text=f"text of node {at} " * 10,
                vector=vectors[at].tolist(),
                metadata={
                    "group": f"g{at * 7919 % 100}",
                    "half": at % 2,
                    "year": 2000 + at % 20,
                    "author": f"a{at % 99}",
                },
                ref=f"document-{at // 10}",
                payload='{"class_name": "TextNode"}',
            )
            for at in range(start, min(start + BATCH, COUNT))
        ]
        began = time.thread_time()
        collection.upsert(items)
        spent += time.thread_time() - began
    yield collection, COUNT / spent
    database.close()


def cpu(action, times=25):
    spent = []
    for at in range(times):
        began = time.thread_time()
        action(at)
        spent.append(time.thread_time() - began)
    return median(spent)


def test_five_thousand_items_are_stored_per_cpu_second(filled):
    assert filled[1] >= 5_000


def test_a_query_costs_little_more_than_the_arithmetic(filled, vectors):
    collection, _ = filled
    floor = cpu(lambda at: vectors @ vectors[at])
    collection.query(vectors[0], k=10)
    assert cpu(lambda at: collection.query(vectors[at], k=10)) < max(3 * floor, 0.025)


def test_a_selective_filter_on_any_key_is_cheaper_than_no_filter(filled, vectors):
    collection, _ = filled
    plain = cpu(lambda at: collection.query(vectors[at], k=10))
    filtered = cpu(lambda at: collection.query(vectors[at], k=10, where=Compare("group", "==", f"g{at}")))
    assert filtered < max(0.6 * plain, 0.005)
    both = And((Compare("half", "==", 1), Compare("group", "==", "g1")))
    assert cpu(lambda at: collection.query(vectors[at], k=10, where=both)) < max(plain, 0.010)


@pytest.mark.parametrize("where", [None, Compare("group", "==", "g5"), Compare("half", "==", 1)])
def test_recall_is_whole(filled, vectors, where):
    collection, _ = filled
    random = np.random.default_rng(1)
    passing = np.array([item.key for item in collection.get(where=where)])
    rows = np.array([int(key.split("-")[1]) for key in passing])
    for at in range(10):
        query = vectors[at] + 0.05 * random.standard_normal(DIMENSION).astype(np.float32)
        best = rows[np.argsort(-(vectors[rows] @ query), kind="stable")[:10]]
        assert [hit.item.key for hit in collection.query(query, k=10, where=where)] == [f"node-{row}" for row in best]
