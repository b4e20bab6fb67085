"""What the fault tests run in processes of their own, until they are killed."""

import sqlite3
import time

import numpy as np

from libctx_core import LibraryOfContext
from libctx_core.testing.processes import say, wait_for_parent


class Lengths:
    """An embedder of two dimensions that depends on nothing but the length of a text."""

    profile_id = "lengths-2"
    dimension = 2

    def embed_documents(self, texts, /):
        rows = np.array([[len(text), 1.0] for text in texts], dtype=np.float32).reshape(len(texts), 2)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_query(self, text, /):
        return self.embed_documents([text])[0]


class Stuck(Lengths):
    """The same, but it stops for ever while it embeds."""

    def embed_documents(self, texts, /):
        say(len(texts))
        wait_for_parent()
        return super().embed_documents(texts)


def open_library(path, durability="full", embedder=False):
    return LibraryOfContext(path, embedder=embedder, tokenizer=len, durability=durability, plugins=[])


def live_until_killed(path: str, durability: str, prefix: str) -> None:
    """Go through turns, batches, amendments and protections; say each event once it is acknowledged."""
    with open_library(path, durability) as library:
        governor = library.open_context_governor("s", token_budget=2_000)
        for number in range(1_000_000):
            question, answer = f"{prefix}-{number}-q", f"{prefix}-{number}-a"
            governor.prepare(f"question {number} of {prefix}", event_id=question)
            say(question)
            governor.commit(f"answer {number} of {prefix}", event_id=answer)
            say(answer)
            if number % 3 == 0:
                batch = [f"{prefix}-{number}-{part}" for part in range(3)]
                governor.record_many({"role": "user", "content": f"part {name}", "event_id": name} for name in batch)
                for name in batch:
                    say(name)
            if number % 4 == 0:
                governor.amend(answer, f"answer {number} of {prefix}, corrected")
                governor.protect_event(question)


def write_thread(path: str, prefix: str, count: str) -> None:
    """Record into the shared thread when the parent says go, with an indexer of its own."""
    with open_library(path) as library:
        governor = library.open_context_governor("shared")
        say("ready")
        wait_for_parent()
        for number in range(int(count)):
            governor.record("user", f"word{prefix}{number} from {prefix}", event_id=f"{prefix}-{number}")
        say("done")


def stick_while_indexing(path: str) -> None:
    """Lease everything that waits, and stop in the embedder."""
    library = open_library(path, embedder=Stuck())
    library.flush(3600)


def read_from_outside(path: str) -> None:
    """Do with the file what a curious person does with the SQLite of the standard library, until told to stop."""
    say("ready")
    counts = []
    for number in range(1_000_000):
        connection = sqlite3.connect(path, timeout=0.05, isolation_level=None)
        try:
            connection.execute("BEGIN")
            counts.append(connection.execute("SELECT count(*) FROM event").fetchone()[0])
            time.sleep(0.02)
            assert connection.execute("SELECT count(*) FROM event").fetchone()[0] == counts[-1]
            connection.execute("COMMIT")
            connection.execute(f"PRAGMA wal_checkpoint({('PASSIVE', 'FULL', 'RESTART', 'TRUNCATE')[number % 4]})")
        except sqlite3.OperationalError as error:
            assert "locked" in str(error) or "busy" in str(error), error
        finally:
            connection.close()
        if number == 20:
            say(counts)
            return


def hold_a_snapshot(path: str) -> None:
    """Keep one read transaction open until killed."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN")
    say(connection.execute("SELECT count(*) FROM event").fetchone()[0])
    wait_for_parent()
    say(connection.execute("SELECT count(*) FROM event").fetchone()[0])


def enlist_and_wait() -> None:
    """Say the name of a worker of this process."""
    from libctx_core.governor import workers

    say(workers.enlist())
    wait_for_parent()
