"""Memory at 10 to 100,000 active entries: adding one, adding many, searching, reopening.

    uv run python benchmarks/memory.py [--sizes N ...] [--json]

CPU times are those of the calling thread. "Add one" is the durable write of one entry as
a revision of its own; indexing is deferred and reported apart, per entry, as one batch.
Growth is what the file gains per added entry, its search record and vector included.
Reopening opens the file and reads the head; the first search after it is reported apart.
The embedder's table is loaded before, as it is once per process.
"""

import argparse
import tempfile
import time
from pathlib import Path

from query import Texts
from report import cpu_ms, finish, options, percentiles

from libctx_core.embedding import StaticEmbedder
from libctx_core.memory import Memories, Proposal
from libctx_core.search.index import SearchIndex
from libctx_core.search.searcher import Searcher
from libctx_core.store import Database

SIZES = (10, 1_000, 5_000, 10_000, 100_000)
SMOKE = (10, 1_000)
SAMPLES = 40
BATCH = 1_000
EMBEDDER = StaticEmbedder()
TEXTS = Texts(7)


def open_memories(database: Database) -> Memories:
    """Open the default collection with the default embedder."""
    return Memories(database, SearchIndex(database), Searcher(database, EMBEDDER), EMBEDDER)


def fill(memories: Memories, start: int, end: int) -> float:
    """Add entries in batches; return the CPU seconds they took."""
    spent = 0.0
    for at in range(start, end, BATCH):
        batch = [Proposal(kind="fact", text=TEXTS.text()) for _ in range(at, min(at + BATCH, end))]
        spent += cpu_ms(lambda batch=batch: memories.remember_many(batch))[0] / 1e3
    return spent


def add_one(memories: Memories, database: Database) -> tuple[list[float], float]:
    """Add entries one by one; return the CPU milliseconds of each and the bytes the file gains per entry."""
    memories.flush()
    before = database.size()
    said = [TEXTS.text() for _ in range(SAMPLES)]
    times = [cpu_ms(lambda text=text: memories.remember(text))[0] for text in said]
    memories.flush()
    return times, (database.size() - before) / SAMPLES


def questions(memories: Memories, count: int) -> list[str]:
    """Return questions, each for four words of one entry and two common ones."""
    views = memories.entries()
    return [TEXTS.question(TEXTS.rng.choice(views).text) for _ in range(count)]


def reopen(path: Path) -> tuple[float, float]:
    """Return the CPU milliseconds of opening the file and reading the head, and of the first search after it."""
    start = time.thread_time()
    database = Database(path)
    memories = open_memories(database)
    memories.head()
    opened = time.thread_time()
    memories.search("what was said about the harbour?")
    searched = time.thread_time()
    database.close()
    return (opened - start) * 1e3, (searched - opened) * 1e3


def measure(folder: Path, sizes: list[int]) -> list[dict[str, object]]:
    """Grow one memory through the sizes and measure at each."""
    path = folder / "library.db"
    rows = []
    have = 0
    for size in sizes:
        database = Database(path)
        memories = open_memories(database)
        spent = fill(memories, have, size)
        index_ms = cpu_ms(memories.flush)[0]
        times, growth = add_one(memories, database)
        asked = questions(memories, SAMPLES)
        searches = [cpu_ms(lambda text=text, memories=memories: memories.search(text))[0] for text in asked]
        database.close()
        opened, first = reopen(path)
        one = percentiles(times)
        search = percentiles(searches[1:] or searches)
        rows.append(
            {
                "entries": size,
                "add_ms_p50": one["p50"],
                "add_ms_p95": one["p95"],
                "bytes_per_add": round(growth),
                "batched_per_cpu_s": round((size - have) / spent),
                "indexed_per_cpu_s": round((size - have) / (index_ms / 1e3)),
                "search_ms_p50": search["p50"],
                "search_ms_p95": search["p95"],
                "reopen_ms": round(opened, 1),
                "first_search_ms": round(first, 1),
            }
        )
        have = size + SAMPLES
    return rows


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this benchmark's own options."""
    parser.add_argument("--sizes", type=int, nargs="+", default=None, help="active entries to measure at")


def main() -> None:
    """Run the benchmark."""
    chosen = options(__doc__ or "", add=add_options)
    sizes = chosen.sizes or list(SMOKE if chosen.smoke else SIZES)
    EMBEDDER.embed_query("warm")
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), sorted(sizes))
    finish("memory", rows, {"samples": SAMPLES, "batch": BATCH}, as_json=chosen.json)


if __name__ == "__main__":
    main()
