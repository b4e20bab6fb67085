"""Appends: events a second and CPU per event, by threads, durability and backlog, beside plain SQLite; then the drain.

The peer is what one writes without a library: a connection per thread, one transaction
per event, the same three writes (event, outbox, head of the thread), the same settings.
Indexing is stopped while appends are measured, and measured alone at the end.
"""

import hashlib
import itertools
import sqlite3
import statistics
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report import cpu_ms, finish, options, percentiles, sentence

from libctx_core import LibraryOfContext

THREADS = (1, 4, 16, 64)
TEXTS = [sentence(number) for number in range(512)]

PEER_SCHEMA = """
CREATE TABLE event(id INTEGER PRIMARY KEY, thread INTEGER, sequence INTEGER, event_id TEXT, role TEXT, content TEXT,
    digest BLOB, created_at REAL, UNIQUE(thread, sequence), UNIQUE(thread, event_id));
CREATE TABLE outbox(event INTEGER PRIMARY KEY);
CREATE TABLE thread(id INTEGER PRIMARY KEY, last INTEGER);
INSERT INTO thread VALUES(1, 0);
"""


class Library:
    """The library under test, its indexer at rest."""

    name = "libctx"

    def __init__(self, path, durability, backlog):
        self._library = LibraryOfContext(path, durability=durability, plugins=[])
        self._library.runtime.indexer.close()
        self._governor = self._library.open_context_governor("bench")
        for base in range(0, backlog, 2_000):
            self._governor.record_many(
                {"role": "user", "content": TEXTS[n % 512]} for n in range(base, min(base + 2_000, backlog))
            )
        self._governor.record("user", "warm up")

    def writer(self):
        return lambda number: self._governor.record("user", TEXTS[number % 512])

    def close(self):
        self._library.close()


class PlainSqlite:
    """One connection per thread, waiting for its turn by SQLite's own means."""

    name = "sqlite3"

    def __init__(self, path, durability, backlog):
        self._path, self._synchronous, self._open = path, durability.upper(), []
        connection = self._connect()
        connection.execute("PRAGMA journal_mode=WAL")
        connection.executescript(PEER_SCHEMA)
        write = self.writer(connection)
        connection.execute("PRAGMA synchronous=OFF")
        for number in range(backlog):
            write(number)
        connection.execute(f"PRAGMA synchronous={self._synchronous}")

    def _connect(self):
        connection = sqlite3.connect(self._path, timeout=60, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA synchronous={self._synchronous}")
        self._open.append(connection)
        return connection

    def writer(self, connection=None):
        own = connection or self._connect()

        def write(number):
            content = TEXTS[number % 512]
            digest = hashlib.sha256(content.encode()).digest()
            own.execute("BEGIN IMMEDIATE")
            last = own.execute("SELECT last FROM thread WHERE id = 1").fetchone()[0] + 1
            cursor = own.execute(
                "INSERT INTO event(thread, sequence, event_id, role, content, digest, created_at)"
                " VALUES(1, ?, ?, 'user', ?, ?, ?)",
                (last, uuid.uuid4().hex, content, digest, time.time()),
            )
            own.execute("INSERT INTO outbox VALUES(?)", (cursor.lastrowid,))
            own.execute("UPDATE thread SET last = ? WHERE id = 1", (last,))
            own.execute("COMMIT")

        return write

    def close(self):
        for connection in self._open:
            connection.close()


def measure(contestant, threads, events):
    """Return events a second, CPU per event and the waits of single writers."""
    each = max(2, events // threads)
    start = threading.Barrier(threads + 1)

    def run(number):
        write, waits = contestant.writer(), []
        start.wait()
        for step in range(each):
            begun = time.perf_counter()
            write(number * each + step)
            waits.append((time.perf_counter() - begun) * 1e3)
        return waits

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(run, number) for number in range(threads)]
        start.wait()
        cpu, wall = time.process_time(), time.perf_counter()
        waits = [wait for one in running for wait in one.result()]
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    waits.sort()
    return {
        "events_per_s": round(each * threads / wall),
        "cpu_us": round(cpu / (each * threads) * 1e6),
        "p50_ms": round(statistics.median(waits), 3),
        "p99_ms": round(waits[int(len(waits) * 0.99)], 1),
    }


def appends(folder, events, backlogs, thread_counts):
    """Return one row per contestant, durability, backlog and number of threads."""
    rows = []
    for durability in ("full", "normal"):
        for backlog in backlogs:
            for threads in thread_counts:
                for kind in (Library, PlainSqlite):
                    contestant = kind(folder / f"{kind.name}-{len(rows)}.sqlite", durability, backlog)
                    figures = measure(contestant, threads, events)
                    contestant.close()
                    rows.append(
                        {"store": kind.name, "durability": durability, "backlog": backlog, "threads": threads} | figures
                    )
    return rows


def single_commit(folder, durability, runs):
    """Return the CPU of one commit on its caller's thread, in milliseconds, once the log has its size."""
    library = Library(folder / f"commit-{durability}.sqlite", durability, 2_000)
    write, numbers = library.writer(), itertools.count()
    cpu_ms(lambda: write(next(numbers)), runs)
    times = cpu_ms(lambda: write(next(numbers)), runs)
    library.close()
    return percentiles(times)


def bulk(folder, count):
    """Return events a second and CPU per event of `record_many`."""
    with LibraryOfContext(folder / "bulk.sqlite", plugins=[]) as library:
        library.runtime.indexer.close()
        governor = library.open_context_governor("bench")
        governor.record("user", "warm up")
        cpu, wall = time.process_time(), time.perf_counter()
        for base in range(0, count, 1_000):
            governor.record_many({"role": "user", "content": TEXTS[n % 512]} for n in range(base, base + 1_000))
        return (
            round(count / (time.perf_counter() - wall)),
            round((time.process_time() - cpu) / count * 1e6),
        )


def drain(folder, count):
    """Return events a second, by the wall and by the CPU, at which a backlog of one thread becomes searchable."""
    path = folder / "drain.sqlite"
    library = Library(path, "full", count)
    library.close()
    with LibraryOfContext(folder / "warm.sqlite", plugins=[]) as warm:
        warm.open_context_governor("s").record("user", "load what is loaded once")
        warm.flush(120)
    cpu, wall = time.process_time(), time.perf_counter()
    with LibraryOfContext(path, plugins=[]) as opened:
        assert opened.flush(3_600)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        assert opened.stats().records == count + 1
    return round(count / wall), round(count / cpu)


def ratio(rows, durability, threads, backlogs):
    """Return the CPU per event with the large backlog over that with the small one."""
    by_backlog = {
        row["backlog"]: row["cpu_us"]
        for row in rows
        if (row["store"], row["durability"], row["threads"]) == ("libctx", durability, threads)
    }
    return round(by_backlog[backlogs[1]] / by_backlog[backlogs[0]], 2)


def gain(rows, durability, threads):
    """Return the library's events a second over the peer's, without a backlog."""
    rates = {
        row["store"]: row["events_per_s"]
        for row in rows
        if (row["durability"], row["threads"], row["backlog"]) == (durability, threads, 0)
    }
    return round(rates["libctx"] / rates["sqlite3"], 2)


def main():
    """Print one row per configuration, then what follows from them."""
    arguments = options(__doc__)
    events, backlogs, counts = (200, (0, 1_000), (1, 4)) if arguments.smoke else (2_000, (0, 10_000), THREADS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = appends(folder, events, backlogs, counts)
        bulk_rate, bulk_cpu = bulk(folder, 1_000 if arguments.smoke else 20_000)
        drain_rate, drain_cpu_rate = drain(folder, 500 if arguments.smoke else 10_000)
        summary = {
            "commit_cpu_ms_full": single_commit(folder, "full", events // 2)["p50"],
            "commit_cpu_ms_normal": single_commit(folder, "normal", events // 2)["p50"],
            "backlog_cpu_ratio_full": ratio(rows, "full", 1, backlogs),
            "backlog_cpu_ratio_normal": ratio(rows, "normal", 1, backlogs),
            **{f"rate_over_sqlite3_full_{n}_threads": gain(rows, "full", n) for n in counts},
            "record_many_events_per_s": bulk_rate,
            "record_many_cpu_us": bulk_cpu,
            "drain_events_per_s": drain_rate,
            "drain_events_per_cpu_s": drain_cpu_rate,
        }
    finish("append", rows, summary, as_json=arguments.json)


if __name__ == "__main__":
    main()
