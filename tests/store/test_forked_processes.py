"""A forked child never uses what it inherited: it is told so, opens the library again, and harms nobody."""

import os
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from libctx_core import LibraryOfContext
from libctx_core.errors import StoreClosedError, StoreError
from libctx_core.store import Database

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def in_child(work) -> str:
    """Return what `work` returns, or the class and message of what it raises, in a forked child."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = str(work())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return answer


def is_whole(path: Path) -> bool:
    with apsw.Connection(str(path)) as connection:
        return connection.execute("PRAGMA integrity_check").get == "ok"


def test_a_child_is_told_to_open_the_library_again_and_can(tmp_path):
    path = tmp_path / "library.db"
    with LibraryOfContext(path, plugins=[]) as library:
        governor = library.open_context_governor("thread")
        governor.record("user", "before the fork", event_id="before")
        calls = [
            lambda: governor.record("user", "in the child"),
            lambda: governor.open_event("before"),
            lambda: library.consult("fork"),
            lambda: library.memory.remember("in the child"),
            library.flush,
            library.database.vacuum,
        ]
        for call in calls:
            answer = in_child(call)
            assert answer.startswith("StoreClosedError: ")
            assert "open the library again in the child process" in answer

        def again():
            library.close()
            with LibraryOfContext(path, plugins=[]) as own:
                own.open_context_governor("thread").record("user", "in the child", event_id="child")
                return [event.event_id for event in own.open_context_governor("thread").history()]

        assert in_child(again) == "['before', 'child']"
        governor.record("user", "after the fork", event_id="after")
        assert [event.event_id for event in governor.history()] == ["before", "child", "after"]
    assert is_whole(path)


def test_a_library_in_memory_is_not_shared_by_accident():
    with LibraryOfContext(":memory:", plugins=[]) as library:
        governor = library.open_context_governor("thread")
        assert in_child(lambda: governor.record("user", "lost")).startswith("StoreClosedError")
        assert list(governor.history()) == []


def test_a_closed_library_stays_closed_and_may_be_opened_in_the_child(tmp_path):
    path = tmp_path / "library.db"
    database = Database(path)
    database.close()
    assert "is closed" in in_child(lambda: database.write(lambda connection: None))
    assert in_child(lambda: Database(path).write(lambda connection: 7)) == "7"


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_file_in_use_by_the_thread_that_forks_stays_shut_in_the_child(tmp_path, kind):
    path = tmp_path / "library.db"
    database = Database(path)
    database.write(lambda connection: connection.execute("CREATE TABLE t(x)"))

    def child():
        assert database.is_inherited
        try:
            Database(path)
        except StoreError as error:
            assert not isinstance(error, StoreClosedError)
            return error

    if kind == "read":
        with database.read() as connection:
            answer = in_child(child)
            assert connection.execute("SELECT count(*) FROM t").get == 0
    else:

        def work(connection):
            connection.execute("INSERT INTO t VALUES(1)")
            return in_child(child)

        answer = database.write(work)
    assert "was in use when this process was forked" in answer
    database.write(lambda connection: connection.execute("INSERT INTO t VALUES(2)"))
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM t").get == (1 if kind == "read" else 2)
    database.close()
    assert is_whole(path)


BUSY = """
import gc, os, sys, threading
from pathlib import Path
from libctx_core.errors import StoreError
from libctx_core.store import Database

path, forks, readers = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
database = Database(path, durability="normal")
database.write(lambda connection: connection.execute("CREATE TABLE t(x)"))
stop, written = threading.Event(), []


def write():
    while not stop.is_set():
        database.write(lambda connection: connection.executemany("INSERT INTO t VALUES(?)", [("x" * 500,)] * 20))
        written.append(20)


def read():
    while not stop.is_set():
        with database.read() as connection:
            connection.execute("SELECT count(*) FROM t").get


threads = [threading.Thread(target=target) for target in (write, write, *[read] * readers)]
for thread in threads:
    thread.start()
answers = []
for _ in range(forks):
    child = os.fork()
    if child == 0:
        try:
            own = Database(path, durability="normal")
        except StoreError:
            sys.exit(3)
        own.write(lambda connection: connection.execute("INSERT INTO t VALUES('child')"))
        own.close()
        gc.collect()
        sys.exit(0)  # not os._exit: the interpreter destroys whatever it finds
    answers.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads:
    thread.join()
with database.read() as connection:
    rows = connection.execute("SELECT count(*), sum(x = 'child') FROM t").fetchall()[0]
assert set(answers) <= ({0, 3} if readers else {0}), answers
added = answers.count(0)
assert rows == (sum(written) + added, added), (rows, sum(written), answers)
database.close()
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("readers", [0, 1])
def test_children_forked_in_the_midst_of_writes_and_reads_harm_nobody(tmp_path, readers):
    """Writes are waited for; while a thread never stops reading, the child may be refused, and nothing worse."""
    path = tmp_path / "library.db"
    done = subprocess.run(
        [sys.executable, "-c", BUSY, str(path), "15", str(readers)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert is_whole(path)
