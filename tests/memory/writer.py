"""A process that writes entries and says what was acknowledged; run to be killed."""

import os
import sys

from libctx_core.memory import Memories, Proposal
from libctx_core.search.index import SearchIndex
from libctx_core.search.searcher import Searcher
from libctx_core.store import Database


def main(path: str, name: str, count: int) -> None:
    """Write until done or killed: adds, a revision of every third, forgetting of every fourth."""
    database = Database(path)
    memories = Memories(database, SearchIndex(database), Searcher(database))
    for at in range(count):
        done = memories.remember_many([Proposal(kind="fact", text=f"{name} {at} {part}.") for part in "ab"])
        acknowledge(f"add {done.citations[0].entry_id} {done.citations[1].entry_id}")
        entry = done.citations[0].entry_id
        if at % 3 == 0:
            memories.revise(entry, f"{name} {at} revised.")
            acknowledge(f"revise {entry}")
        if at % 4 == 0:
            memories.forget(entry)
            acknowledge(f"forget {entry}")
        if at % 5 == 0:
            memories.flush()
    database.close()
    acknowledge("done")


def acknowledge(line: str) -> None:
    """Tell the parent, past every buffer of this process."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
