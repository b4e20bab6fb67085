"""How long a store holds up the event loop while it adds nodes."""

import asyncio
import random
import time

from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

_TICK = 0.001
"""Seconds between two looks at the clock."""


def random_nodes(count: int, dimension: int, *, seed: int = 0) -> list[TextNode]:
    """Return nodes with reproducible vectors and a little metadata."""
    generator = random.Random(seed)  # noqa: S311 - test data
    return [
        TextNode(
            id_=f"node-{i}",
            text=f"Node number {i} says something of about the usual length of a sentence.",
            metadata={"group": i % 100, "name": f"name {i}"},
            embedding=[generator.gauss(0.0, 1.0) for _ in range(dimension)],
        )
        for i in range(count)
    ]


async def measure_stall(store: BasePydanticVectorStore, nodes: list[TextNode]) -> float:
    """Add `nodes` with `async_add` and return the longest time, in seconds, the loop stood still."""
    longest = 0.0
    done = asyncio.Event()

    async def watch() -> None:
        nonlocal longest
        last = time.perf_counter()
        while not done.is_set():
            await asyncio.sleep(_TICK)
            now = time.perf_counter()
            longest = max(longest, now - last - _TICK)
            last = now

    watcher = asyncio.create_task(watch())
    await asyncio.sleep(0)
    try:
        await store.async_add(nodes)
    finally:
        done.set()
        await watcher
    return longest
