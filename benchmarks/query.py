"""Cost of one cold question over 1,000 to 100,000 records, beside plain FTS5.

Cold: a question not asked before, in a process that has the library open and its lazy
parts loaded. Texts of about 50 tokens are drawn from English words by Zipf's law, so
common words are common; each question is four words of one record and two common ones.
Times are milliseconds of thread CPU time; RSS is what opening and asking added.

    uv run python benchmarks/query.py [--records N ...] [--owners N] [--questions N] [--json]
"""

import argparse
import random
import resource
import tempfile
import time
from pathlib import Path

import apsw
from report import finish, options, percentiles, sentence, vocabulary

from libctx_core.embedding import StaticEmbedder
from libctx_core.search.index import SearchIndex
from libctx_core.search.related import related_terms
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from libctx_core.store.database import Database
from libctx_core.store.owners import get_or_create_owner
from libctx_core.store.records import RecordInput

SIZES = (1_000, 10_000, 100_000)
BATCH = 512


class Texts:
    """Made-up texts, and questions about them."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def text(self) -> str:
        return sentence(self.rng)

    def question(self, text: str) -> str:
        picked = self.rng.sample(text.rstrip(".").split(), 4)
        common = self.rng.choices(vocabulary()[0][:200], k=2)
        return f"What did we say about {' '.join(picked)} and the {' '.join(common)}?"


def rss_mib() -> float:
    """Return this process's resident memory now."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * resource.getpagesize() / 2**20


def fill(database: Database, texts: list[str], owners: int, embedder: StaticEmbedder) -> tuple[list[int], float]:
    """Store and index the texts; return the owners and the CPU seconds it took."""
    index = SearchIndex(database)
    ids = database.write(
        lambda connection: [
            get_or_create_owner(connection, "THREAD", "bench", str(number)).id for number in range(owners)
        ]
    )
    share = len(texts) // owners
    started = time.thread_time()
    for number, owner in enumerate(ids):
        own = texts[number * share : (number + 1) * share]
        for at in range(0, len(own), BATCH):
            records = [
                RecordInput(
                    key=str(at + step),
                    kind="event",
                    text=text,
                    role="user",
                    speaker=("Ana", "Ben")[step % 2],
                    occurred_at=1.7e9 + 60.0 * (at + step) + 86_400.0 * ((at + step) // 30),
                )
                for step, text in enumerate(own[at : at + BATCH])
            ]
            vectors = embedder.embed_documents([f"{record.speaker}: {record.text}" for record in records])
            database.write(
                lambda connection, owner=owner, records=records, vectors=vectors: index.add(
                    connection, owner, records, vectors, profile=embedder.profile_id
                ),
                durable=False,
            )
    return ids, time.thread_time() - started


def plain_fts(texts: list[str], questions: list[str]) -> dict[str, float]:
    """Time SQLite's own BM25 on the same questions: quoted words, any may match, best ten."""
    connection = apsw.Connection("")
    connection.execute("CREATE VIRTUAL TABLE plain USING fts5(text)")
    with connection:
        connection.executemany("INSERT INTO plain(text) VALUES(?)", [(text,) for text in texts])
    spent = []
    for question in questions:
        match = " OR ".join(f'"{word}"' for word in question.strip("?").split())
        started = time.thread_time()
        connection.execute("SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT 10", (match,)).fetchall()
        spent.append(1e3 * (time.thread_time() - started))
    connection.close()
    return percentiles(spent)


def measure(size: int, owners: int, count: int) -> dict[str, object]:
    source = Texts(size)
    texts = [source.text() for _ in range(size)]
    questions = [source.question(source.rng.choice(texts)) for _ in range(count + 3)]
    embedder = StaticEmbedder()
    embedder.embed_query("load the table")
    related_terms("table")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "library.db"
        database = Database(path)
        ids, filling = fill(database, texts, owners, embedder)
        database.close()
        database = Database(path)
        before = rss_mib()
        searcher = Searcher(database, embedder)
        started = time.thread_time()
        searcher.search(SearchRequest(text=questions[0], owners=ids))
        first = time.thread_time() - started
        for question in questions[1:3]:
            searcher.search(SearchRequest(text=question, owners=ids))
        spent: dict[str, list[float]] = {"hybrid": [], "lexical": []}
        for question in questions[3:]:
            for name, mode in (("hybrid", "auto"), ("lexical", "lexical")):
                started = time.thread_time()
                searcher.search(SearchRequest(text=question, owners=ids, mode=mode))
                spent[name].append(1e3 * (time.thread_time() - started))
        grown = rss_mib() - before
        file_mib = path.stat().st_size / 2**20
        database.close()
    return {
        "records": size,
        "owners": owners,
        "indexed_per_cpu_second": round(size / filling),
        "first_after_reopening_ms": round(1e3 * first, 1),
        **{f"{name}_{point}": value for name, times in spent.items() for point, value in percentiles(times).items()},
        **{f"fts5_{point}": value for point, value in plain_fts(texts, questions[3:]).items()},
        "rss_mib": round(grown),
        "file_mib": round(file_mib),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this benchmark's own options."""
    parser.add_argument("--records", type=int, nargs="+", help="sizes of the library")
    parser.add_argument("--owners", type=int, default=1, help="owner objects the records are spread over")
    parser.add_argument("--questions", type=int, default=100)


def main() -> None:
    """Measure each size and print the table."""
    chosen = options(__doc__.partition("\n")[0], add=add_options)
    sizes = chosen.records or (SIZES[:1] if chosen.smoke else SIZES)
    rows = [measure(size, chosen.owners, chosen.questions) for size in sizes]
    finish("query", rows, {}, as_json=chosen.json)


if __name__ == "__main__":
    main()
