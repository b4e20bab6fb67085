"""LlamaIndex vector stores side by side: adding, asking, asking with filters, and the event loop's stall.

Every store that is installed holds the same nodes: unit vectors of 384 dimensions in 256
clusters, four keys of metadata, a sentence of text. A filter on ``group`` matches 1 %, one
on ``price`` 10 %, one on ``shade`` 5 %. Answers are built as nodes; node creation
is not counted. Times are CPU milliseconds of the process per question; recall compares
with an exact search in float64.

    uv run python benchmarks/llamaindex.py [--sizes N ...] [--stores NAME ...] [--json] [--smoke]
"""

import argparse
import asyncio
import gc
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from llama_index_libctx.testing.names import id_of, names_of
from llama_index_libctx.testing.peers import installed
from llama_index_libctx.testing.report import StoreFactory
from llama_index_libctx.testing.stall import measure_stall
from numpy.typing import NDArray
from report import finish, options, percentiles, sentence

SIZES = (1_000, 10_000, 100_000)
DIMENSION = 384
CLUSTERS = 256
GROUPS = 100
BATCH = 2_048
"""Nodes per call, as VectorStoreIndex sends them."""

QUESTIONS = 40
TOP_K = 10
STALL_NODES = 3_000
PATIENCE = 20.0
"""CPU seconds after which a slow store is asked no more questions of a kind."""

Vectors = NDArray[np.float32]


def unit_vectors(count: int, seed: int) -> Vectors:
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(1).normal(size=(CLUSTERS, DIMENSION))
    rows = centres[generator.integers(CLUSTERS, size=count)] + 0.6 * generator.normal(size=(count, DIMENSION))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def metadata(number: int) -> dict[str, Any]:
    return {
        "group": f"group {number % GROUPS}",
        "price": float(number * 7919 % 1000),
        "shade": f"shade {number % 20}",
        "name": f"name {number}",
    }


def nodes_of(vectors: Vectors, prefix: str = "n") -> list[TextNode]:
    return [
        TextNode(id_=id_of(f"{prefix}{i}"), text=sentence(i % 997), metadata=metadata(i), embedding=vector.tolist())
        for i, vector in enumerate(vectors)
    ]


def where(key: str, operator: FilterOperator, value: Any) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, operator=operator, value=value)])


FILTERS: dict[str, tuple[MetadataFilters, Callable[[dict[str, Any]], bool]]] = {
    "group 1 %": (where("group", FilterOperator.EQ, "group 7"), lambda m: m["group"] == "group 7"),
    "price 10 %": (where("price", FilterOperator.LT, 100.0), lambda m: m["price"] < 100.0),
    "shade 5 %": (where("shade", FilterOperator.IN, ["shade 3"]), lambda m: m["shade"] == "shade 3"),
}


class Truth:
    """The exact answers, computed apart from any store."""

    def __init__(self, vectors: Vectors, questions: Vectors) -> None:
        self._similarities = questions.astype(np.float64) @ vectors.astype(np.float64).T
        self._metadata = [metadata(i) for i in range(len(vectors))]

    def best(self, question: int, matches: Callable[[dict[str, Any]], bool] | None) -> set[str]:
        row = self._similarities[question]
        if matches is not None:
            row = np.where([matches(one) for one in self._metadata], row, -2.0)
        order = np.argsort(-row)[:TOP_K]
        return {f"n{i}" for i in order if row[i] > -2.0}


def spent_ms(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = work()
    return (time.process_time() - started) * 1e3, result


def ask(store: BasePydanticVectorStore, questions: Vectors, truth: Truth, kind: str | None) -> dict[str, float] | str:
    """Return the cost of a kind of question and its recall, or why the store cannot answer."""
    filters, matches = (None, None) if kind is None else FILTERS[kind]
    times, hits, wanted = [], 0, 0
    for number, question in enumerate(questions.tolist()):
        query = VectorStoreQuery(query_embedding=question, similarity_top_k=TOP_K, filters=filters)
        try:
            cost, result = spent_ms(lambda query=query: store.query(query))
        except Exception as error:
            return type(error).__name__
        exact = truth.best(number, matches)
        found = names_of(result.ids if result.ids is not None else [node.node_id for node in result.nodes])
        hits += len(exact & set(found))
        wanted += len(exact)
        times.append(cost)
        if sum(times) > PATIENCE * 1e3:
            break
    return {**percentiles(times[1:] or times), "first": round(times[0], 1), "recall": round(hits / wanted, 3)}


def measure(name: str, factory: StoreFactory, size: int, questions: int) -> dict[str, Any]:
    vectors, asked = unit_vectors(size, 2), unit_vectors(questions, 3)
    nodes, truth = nodes_of(vectors), Truth(vectors, asked)
    gc.collect()
    row: dict[str, Any] = {"store": name, "nodes": size}
    try:
        store = factory()
        cost = sum(spent_ms(lambda at=at: store.add(nodes[at : at + BATCH]))[0] for at in range(0, size, BATCH))
    except Exception as error:
        return {**row, "add/CPU-s": type(error).__name__}
    row["add/CPU-s"] = round(size / (cost / 1e3))
    for label, kind in (("query", None), *((kind, kind) for kind in FILTERS)):
        answer = ask(store, asked, truth, kind)
        if isinstance(answer, str):
            row[f"{label} ms"] = answer
            continue
        row[f"{label} ms"] = answer["p50"]
        row[f"{label} recall"] = answer["recall"]
        if kind is None:
            row["first ms"] = answer["first"]
    return row


def stall(name: str, factory: StoreFactory) -> dict[str, Any]:
    """Return how long a store holds up the loop while it adds nodes, the best of three times."""

    async def run() -> float:
        store = factory()
        await store.async_add(nodes_of(unit_vectors(8, 4), "warm"))
        batches = [nodes_of(unit_vectors(STALL_NODES, 5 + i), f"s{i}-") for i in range(3)]
        return min([await measure_stall(store, batch) for batch in batches])

    try:
        seconds = asyncio.run(run())
    except Exception as error:
        return {"store": name, "loop stall ms": type(error).__name__}
    return {"store": name, "loop stall ms": round(seconds * 1e3, 1)}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", help=f"nodes (default: {', '.join(map(str, SIZES))})")
    parser.add_argument("--stores", nargs="+", help="only stores whose name contains one of these")


def chosen(available: dict[str, StoreFactory | None], names: Sequence[str] | None) -> dict[str, StoreFactory | None]:
    if not names:
        return available
    return {name: factory for name, factory in available.items() if any(part.lower() in name.lower() for part in names)}


def main() -> None:
    given = options(__doc__.partition("\n")[0], add=arguments)
    sizes = given.sizes or ([1_000] if given.smoke else SIZES)
    questions = 10 if given.smoke else QUESTIONS
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        stores = chosen(installed(Path(directory), DIMENSION), given.stores)
        present = {name: factory for name, factory in stores.items() if factory is not None}
        rows = [measure(name, factory, size, questions) for size in sizes for name, factory in present.items()]
        stalls = [stall(name, factory) for name, factory in present.items()]
    missing = [name for name in stores if name not in present]
    finish(
        "llamaindex",
        [*rows, *stalls],
        {"dimension": DIMENSION, "questions": questions, "not installed": ", ".join(missing) or "none"},
        as_json=given.json,
    )


if __name__ == "__main__":
    main()
