"""Writers that meet share a commit, and nothing else."""

import threading
from concurrent.futures import ThreadPoolExecutor

import apsw
import pytest

from libctx_core.errors import StoreClosedError, StoreError
from libctx_core.store.database import Database

TABLE = "CREATE TABLE t(id INTEGER PRIMARY KEY, worker INTEGER, number INTEGER, UNIQUE(worker, number))"


@pytest.fixture(params=["file", "memory"])
def database(request, tmp_path):
    opened = Database(":memory:" if request.param == "memory" else tmp_path / "store")
    opened.write(lambda connection: connection.execute(TABLE).fetchall())
    yield opened
    opened.close()


def insert(worker, number):
    def work(connection):
        connection.execute("INSERT INTO t(worker, number) VALUES(?, ?)", (worker, number))
        return connection.last_insert_rowid()

    return work


def rows(database):
    with database.read() as connection:
        return connection.execute("SELECT worker, number FROM t ORDER BY id").fetchall()


def together(count, work):
    """Run `work(worker)` in so many threads that start at once."""
    start = threading.Barrier(count)

    def run(worker):
        start.wait()
        return work(worker)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.mark.parametrize("threads", [1, 4, 32])
def test_every_write_is_there_once_and_in_its_callers_order(database, threads):
    each = 320 // threads
    ids = together(threads, lambda worker: [database.write(insert(worker, number)) for number in range(each)])
    stored = rows(database)
    assert len(stored) == 320
    for worker in range(threads):
        assert [number for who, number in stored if who == worker] == list(range(each))
        assert ids[worker] == sorted(ids[worker])


def test_writers_that_meet_share_commits(tmp_path):
    """Fewer commits than writes: each commit is one sync of the disk."""
    commits = []

    def count(connection):
        connection.set_commit_hook(lambda: bool(commits.append(1)))

    database = Database(tmp_path / "store", on_connect=count)
    database.write(lambda connection: connection.execute(TABLE).fetchall())
    commits.clear()
    together(32, lambda worker: [database.write(insert(worker, number)) for number in range(20)])
    assert len(rows(database)) == 640
    assert len(commits) <= 320
    database.close()


def test_an_error_undoes_its_own_work_and_reaches_its_own_caller(database):
    class OwnError(Exception):
        def __init__(self, worker):
            self.worker = worker

    def run(worker):
        kept = []
        for number in range(20):
            if (number + worker) % 3 == 0:

                def work(connection, number=number):
                    insert(worker, number)(connection)
                    insert(worker, number + 1000)(connection)
                    raise OwnError(worker)

                with pytest.raises(OwnError) as caught:
                    database.write(work)
                assert caught.value.worker == worker
            else:
                database.write(insert(worker, number))
                kept.append((worker, number))
        return kept

    kept = together(16, run)
    assert sorted(rows(database)) == sorted(row for one in kept for row in one)


def test_a_statement_that_fails_is_the_callers_own_error(database):
    database.write(insert(1, 1))

    def run(worker):
        if worker % 2:
            with pytest.raises(apsw.ConstraintError):
                database.write(insert(1, 1))
        else:
            database.write(insert(worker + 100, 1))

    together(16, run)
    assert len(rows(database)) == 1 + 8


def test_a_rollback_inside_one_job_does_not_take_the_others_along(database):
    """Even work that ends the shared transaction itself harms only itself."""

    def run(worker):
        if worker == 3:
            with pytest.raises(Exception, match=r".+"):
                database.write(lambda connection: connection.execute("ROLLBACK"))
            return 0
        return database.write(insert(worker, 1))

    together(16, run)
    assert {worker for worker, _ in rows(database)} == set(range(16)) - {3}


def test_a_write_inside_a_write_is_refused_and_not_waited_for(database):
    def outer(connection):
        insert(1, 1)(connection)
        database.write(insert(1, 2))

    def run(worker):
        if worker % 2:
            with pytest.raises(StoreError, match="inside a write"):
                database.write(outer)
        else:
            database.write(insert(worker + 100, 1))

    together(8, run)
    assert sorted(worker for worker, _ in rows(database)) == [100, 102, 104, 106]


def test_a_write_while_reading_does_not_wait_for_itself(database):
    """Other writers queue meanwhile: in memory they wait for the reader, who must not wait for them."""

    def run(worker):
        for number in range(20):
            if worker % 2:
                with database.read() as connection:
                    assert connection.execute("SELECT count(*) FROM t").get >= 0
                    database.write(insert(worker, number))
            else:
                database.write(insert(worker, number))

    together(8, run)
    assert len(rows(database)) == 160


def test_closing_finishes_what_is_queued_and_refuses_the_rest(tmp_path):
    """Whoever got an answer before the end has it stored; nobody waits for ever."""
    database = Database(tmp_path / "store")
    database.write(lambda connection: connection.execute(TABLE).fetchall())
    start = threading.Barrier(17)

    def run(worker):
        start.wait()
        done = []
        for number in range(200):
            try:
                database.write(insert(worker, number))
            except StoreClosedError:
                break
            done.append((worker, number))
        return done

    with ThreadPoolExecutor(16) as pool:
        futures = [pool.submit(run, worker) for worker in range(16)]
        start.wait()
        database.write(insert(99, 0))
        database.close()
        acknowledged = {row for future in futures for row in future.result(timeout=60)}
    database = Database(tmp_path / "store")
    assert acknowledged <= set(rows(database))
    assert len(rows(database)) == len(acknowledged) + 1
    database.close()


def test_results_go_to_the_callers_they_belong_to(database):
    def run(worker):
        return [database.write(lambda connection, number=number: (worker, number)) for number in range(50)]

    assert together(16, run) == [[(worker, number) for number in range(50)] for worker in range(16)]
