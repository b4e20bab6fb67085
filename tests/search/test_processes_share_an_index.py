"""Several processes append to one library while it is asked; each answer is of one moment."""

import subprocess
import sys

from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from libctx_core.store.database import Database
from libctx_core.store.index import read_state
from tests.search.library import HashEmbedder, add, keys, records_of

WRITER = """
import sys
from libctx_core.search.index import SearchIndex
from libctx_core.store.database import Database
from libctx_core.store.records import RecordInput
from tests.search.library import HashEmbedder

path, owner, name, count = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
database = Database(path)
index = SearchIndex(database)
embedder = HashEmbedder()
for at in range(count):
    made = [RecordInput(key=f"{name}{at}", kind="event", text=f"ferry number{at} of {name}", role="user")]
    vectors = embedder.embed_documents([record.text for record in made])
    database.write(
        lambda connection: index.add(connection, owner, made, vectors, profile=embedder.profile_id), durable=False
    )
database.close()
"""
COUNT = 60


def test_two_processes_append_while_a_third_asks(tmp_path):
    path = tmp_path / "library.db"
    database = Database(path)
    owner, _ = add(database, "shared", records_of(["ferry at the start"]), embedder=HashEmbedder())
    searcher = Searcher(database, HashEmbedder())
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(owner), name, str(COUNT)])
        for name in ("alpha", "beta")
    ]
    request = SearchRequest(text="ferry", owners=[owner], k=1_000)
    seen = 0
    while any(writer.poll() is None for writer in writers):
        found = searcher.search(request)
        assert len(found) >= max(1, seen), "what was found once does not vanish"
        assert len({hit.slot for hit in found}) == len(found)
        seen = len(found)
    assert [writer.returncode for writer in writers] == [0, 0]
    expected = {"r0", *(f"{name}{at}" for name in ("alpha", "beta") for at in range(COUNT))}
    assert set(keys(searcher.search(request))) == expected
    with database.read() as connection:
        state = read_state(connection, owner)
    assert (state.alive, state.posted, state.positions) == (len(expected),) * 3
    assert Searcher(database, HashEmbedder()).search(request) == searcher.search(request)
    database.close()


def test_another_connection_s_removal_is_seen_at_once(tmp_path):
    path = tmp_path / "library.db"
    mine, theirs = Database(path), Database(path)
    owner, slots = add(theirs, "shared", records_of(["ferry", "boat"]))
    searcher = Searcher(mine)
    assert len(searcher.search(SearchRequest(text="ferry", owners=[owner]))) == 2
    from libctx_core.search.index import SearchIndex

    theirs.write(lambda connection: SearchIndex(theirs).remove(connection, slots[:1]))
    assert keys(searcher.search(SearchRequest(text="ferry", owners=[owner]))) == ["r1"]
    mine.close()
    theirs.close()
