"""One library file: a pool of readers, one writer, and group commit between them."""

import os
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw

from libctx_core.errors import ForeignDatabaseError, StoreClosedError, StorePathError, StoreReadOnlyError
from libctx_core.store.connection import MEMORY, connect, prepare_file, translated
from libctx_core.store.migrations import APPLICATION_ID, Component, migrate

T = TypeVar("T")
Durability = Literal["full", "normal"]
ConnectHook = Callable[[apsw.Connection], None]

MAX_GROUP = 256
"""Writes that share one commit at most, so that the first in line is not kept waiting."""

MAX_IDLE_READERS = 8


class Database:
    """A library file, or a private database in memory, that threads and processes share.

    `write` runs a function inside one immediate transaction and returns when it is
    committed. A lone writer commits on its own thread; writers that meet hand their
    functions to one thread, which runs them in one transaction with a savepoint each
    and pays for one sync. `read` lends a connection that sees one snapshot.

    Args:
        path: The file, or ``":memory:"``.
        durability: ``"full"`` syncs every commit that asks for it, so an acknowledged
            event survives power loss; ``"normal"`` survives a killed process only.
        read_only: Refuse every write and never create or migrate the file.
        on_connect: Called with each new connection (the `sqlite_connect` hook).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "full",
        read_only: bool = False,
        on_connect: ConnectHook | None = None,
    ) -> None:
        self.in_memory = os.fspath(path) == MEMORY
        self.path = MEMORY if self.in_memory else str(Path(path).expanduser().absolute())
        self.durability = durability
        self.read_only = read_only
        self._on_connect = on_connect
        self._closed = False
        self._turn = threading.RLock()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._queued = 0
        self._counter_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._readers: queue.LifoQueue[apsw.Connection] = queue.LifoQueue()
        self._migrated: dict[str, int] = {}
        self._synchronous = ""
        if not self.in_memory:
            prepare_file(Path(self.path), must_exist=read_only)
        with translated(self.path):
            self._writer = self._connect(writable=not read_only)
            self._claim()

    def _connect(self, *, writable: bool) -> apsw.Connection:
        connection = connect(self.path, writable=writable)
        if self._on_connect is not None:
            self._on_connect(connection)
        return connection

    def _claim(self) -> None:
        """Mark a new file as ours; refuse anybody else's."""
        application = self._writer.pragma("application_id")
        tables = self._writer.execute("SELECT count(*) FROM sqlite_schema").get
        if application != APPLICATION_ID and (tables or self.read_only):
            self._writer.close()
            raise ForeignDatabaseError(self.path, "is a SQLite database of another application; name another file")
        if self.read_only:
            return
        if not self.in_memory:
            self._writer.pragma("journal_mode", "wal")
            self._writer.execute("PRAGMA wal_autocheckpoint=2000; PRAGMA journal_size_limit=67108864")
            if self._writer.pragma("fullfsync") == 0 and self.durability == "full":
                self._writer.execute("PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON")
        if application != APPLICATION_ID:
            self._writer.pragma("application_id", APPLICATION_ID)

    # -- schema ---------------------------------------------------------------

    def ensure(self, component: Component) -> None:
        """Bring one component's tables up to date; cheap when they are.

        Raises:
            NewerSchemaError: The file holds a newer version of the component.
        """
        if self._migrated.get(component.name) == len(component.steps):
            return
        with self._turn, translated(self.path):
            migrate(self._writer, component, self.path, read_only=self.read_only)
            self._migrated[component.name] = len(component.steps)

    # -- reading --------------------------------------------------------------

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Lend a connection on which all statements see one snapshot.

        Do not keep the connection, and do not call `write` while holding it for long.
        In memory the one connection is lent under the writer's lock.
        """
        if self._closed:
            raise StoreClosedError(self.path, "is closed")
        if self.in_memory:
            with self._turn, translated(self.path):
                yield self._writer
            return
        with translated(self.path):
            try:
                connection = self._readers.get_nowait()
            except queue.Empty:
                connection = self._connect(writable=False)
            try:
                connection.execute("BEGIN")
                try:
                    yield connection
                finally:
                    connection.execute("ROLLBACK")
            except BaseException:
                connection.close()
                raise
        if self._closed or self._readers.qsize() >= MAX_IDLE_READERS:
            connection.close()
        else:
            self._readers.put(connection)

    # -- writing --------------------------------------------------------------

    def write(self, work: Callable[[apsw.Connection], T], *, durable: bool = True) -> T:
        """Run `work(connection)` in one transaction; return its result once committed.

        `work` uses only the connection it is given and never calls `write` itself. If it
        raises, everything it did is rolled back and its error reaches the caller.

        Args:
            work: The statements. Keep it short: it holds the library's one write lock.
            durable: Whether this commit must survive power loss (under
                ``durability="full"``). Pass False for what can be rebuilt.

        Raises:
            StoreReadOnlyError: The library is open read-only.
            StoreBusyError: Another process held the lock longer than the busy timeout.
            StoreFullError: The disk is full; nothing was stored.
        """
        if self.read_only:
            raise StoreReadOnlyError(self.path, "is open read-only")
        if self._closed:
            raise StoreClosedError(self.path, "is closed")
        full = durable and self.durability == "full"
        if self._queued == 0 and self._turn.acquire(blocking=False):
            try:
                return self._commit_alone(work, full=full)
            finally:
                self._turn.release()
        job = _Job(work, full=full)
        self._enqueue(job)
        result: T = job.future.result()
        return result

    def _commit_alone(self, work: Callable[[apsw.Connection], T], *, full: bool) -> T:
        with translated(self.path):
            self._begin(full=full)
            try:
                result = work(self._writer)
                self._writer.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            return result

    def _begin(self, *, full: bool) -> None:
        wanted = "FULL" if full else "NORMAL"
        if self._synchronous != wanted:
            self._writer.execute(f"PRAGMA synchronous={wanted}")
            self._synchronous = wanted
        self._writer.execute("BEGIN IMMEDIATE")

    def _roll_back(self) -> None:
        if self._writer.in_transaction:
            self._writer.execute("ROLLBACK")

    def _enqueue(self, job: "_Job") -> None:
        with self._counter_lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="libctx-writer", daemon=True)
                self._thread.start()
            self._queued += 1
            self._queue.put(job)

    def _serve(self) -> None:
        while True:
            first = self._queue.get()
            if first is None:
                return
            stop = False
            with self._turn:
                group = [first]
                while len(group) < MAX_GROUP:
                    try:
                        job = self._queue.get_nowait()
                    except queue.Empty:
                        break
                    if job is None:
                        stop = True
                        break
                    group.append(job)
                self._commit_group(group)
                with self._counter_lock:
                    self._queued -= len(group)
            if stop:
                return

    def _commit_group(self, group: list["_Job"]) -> None:
        try:
            with translated(self.path):
                self._begin(full=any(job.full for job in group))
                try:
                    finished = [job for job in group if self._run_in_savepoint(job)]
                    self._writer.execute("COMMIT")
                except BaseException:
                    self._roll_back()
                    raise
        except BaseException as error:  # noqa: BLE001 - handed to every waiting caller
            for job in group:
                if not job.future.done():
                    job.future.set_exception(error)
            return
        for job in finished:
            job.future.set_result(job.result)

    def _run_in_savepoint(self, job: "_Job") -> bool:
        """Run one job; a failure undoes that job alone, unless it ended the transaction."""
        self._writer.execute("SAVEPOINT job")
        try:
            with translated(self.path):
                job.result = job.work(self._writer)
        except BaseException as error:
            if not self._writer.in_transaction:
                raise
            self._writer.execute("ROLLBACK TO job; RELEASE job")
            job.future.set_exception(error)
            return False
        self._writer.execute("RELEASE job")
        return True

    # -- whole file -----------------------------------------------------------

    def size(self) -> int:
        """Return the bytes of the database's pages, free ones included."""
        with self.read() as connection:
            return int(connection.pragma("page_count") or 0) * int(connection.pragma("page_size") or 0)

    def exclusive(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` on the writer outside a transaction (VACUUM, checkpoint, backup)."""
        if self._closed:
            raise StoreClosedError(self.path, "is closed")
        with self._turn, translated(self.path):
            return work(self._writer)

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy the library to a new file, consistent while others write.

        Raises:
            StorePathError: The target exists already or cannot be created.
        """
        destination = Path(target).expanduser().absolute()
        if destination.exists():
            raise StorePathError(str(destination), "already exists; a backup never overwrites")
        prepare_file(destination, must_exist=False)
        copy = apsw.Connection(str(destination))
        try:
            with (
                self.read() as source,
                translated(str(destination)),
                copy.backup("main", source, "main") as run,
            ):
                while not run.done:
                    run.step(1024)
        finally:
            copy.close()

    def vacuum(self) -> None:
        """Return free pages to the file system."""
        self.exclusive(lambda connection: connection.execute("VACUUM").fetchall())

    def truncate_wal(self) -> bool:
        """Move the write-ahead log into the file and empty it; False if a reader was in the way."""

        def run(connection: apsw.Connection) -> bool:
            if self.in_memory:
                return True
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
            return busy == 0

        return self.exclusive(run)

    def close(self) -> None:
        """Finish queued writes and close every connection; calling it again does nothing."""
        with self._counter_lock:
            if self._closed:
                return
            self._closed = True
            thread = self._thread
            if thread is not None:
                self._queue.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        while True:
            try:
                self._readers.get_nowait().close()
            except queue.Empty:
                break
        with self._turn:
            self._writer.close()


class _Job:
    """One queued write and the promise of its result."""

    __slots__ = ("full", "future", "result", "work")

    def __init__(self, work: Callable[[apsw.Connection], Any], *, full: bool) -> None:
        self.work = work
        self.full = full
        self.future: Future[Any] = Future()
        self.result: Any = None
