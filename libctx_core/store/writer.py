"""The one connection that writes: a lone caller commits at once, callers that meet share a commit."""

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, TypeVar

import apsw

from libctx_core.errors import StoreClosedError, StoreError
from libctx_core.store.connection import translated

T = TypeVar("T")
Work = Callable[[apsw.Connection], T]

MAX_GROUP = 256
"""Writes that share one commit at most, so that the first in line is not kept waiting."""


class Writer:
    """Runs functions in transactions, one at a time.

    Args:
        connection: The connection, which nobody else uses from now on.
        path: The file's name, for messages.
    """

    def __init__(self, connection: apsw.Connection, path: str) -> None:
        self.path = path
        self._connection = connection
        self._turn = threading.RLock()
        self._depth = 0
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._queued = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._synchronous = ""

    # -- transactions ---------------------------------------------------------

    def run(self, work: Work[T], *, full: bool) -> T:
        """Run `work` in one transaction and return its result once it is committed.

        Args:
            work: The statements. It runs again, alone, if the commit it shared fails.
            full: Whether the commit is synced to the disk.
        """
        if self._turn.acquire(blocking=False):
            try:
                # whoever holds the turn already must not wait for a thread that waits for the turn
                if self._depth or not self._queued:
                    return self._commit_alone(work, full=full)
            finally:
                self._turn.release()
        job = _Job(work, full=full)
        self._enqueue(job)
        result: T = job.wait()
        return result

    def _commit_alone(self, work: Work[T], *, full: bool) -> T:
        with translated(self.path):
            self._begin(full=full)
            self._depth += 1
            try:
                result = work(self._connection)
                self._connection.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._depth -= 1
            return result

    def _begin(self, *, full: bool) -> None:
        if self._connection.in_transaction:
            raise StoreError(self.path, "a write was asked for inside a write; use the connection that was lent")
        wanted = "FULL" if full else "NORMAL"
        if self._synchronous != wanted:
            self._connection.execute(f"PRAGMA synchronous={wanted}")
            self._synchronous = wanted
        self._connection.execute("BEGIN IMMEDIATE")

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    # -- group commit ---------------------------------------------------------

    def _enqueue(self, job: "_Job") -> None:
        with self._lock:
            if self._closed:
                raise StoreClosedError(self.path, "is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="libctx-writer", daemon=True)
                self._thread.start()
            self._queued += 1
            self._queue.put(job)

    def _serve(self) -> None:
        stop = False
        while not stop:
            first = self._queue.get()
            if first is None:
                return
            with self.held():
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
                with self._lock:
                    self._queued -= len(group)
            for job in group:
                job.finish()

    def _commit_group(self, group: list["_Job"]) -> None:
        """Run each job in a savepoint of one transaction; if that fails, each in its own."""
        begun = False
        try:
            with translated(self.path):
                self._begin(full=any(job.full for job in group))
                begun = True
                try:
                    for job in group:
                        self._run_in_savepoint(job)
                    self._connection.execute("COMMIT")
                except BaseException:
                    self._roll_back()
                    raise
        except BaseException as error:  # noqa: BLE001 - handed to every waiting caller
            unfinished = [job for job in group if job.error is None]
            for job in unfinished:
                if begun and len(group) > 1:
                    self._retry_alone(job)
                else:
                    job.error = error

    def _run_in_savepoint(self, job: "_Job") -> None:
        """Run one job; a failure undoes that job alone, unless it ended the transaction."""
        self._connection.execute("SAVEPOINT job")
        try:
            with translated(self.path):
                job.result = job.work(self._connection)
        except BaseException as error:
            if not self._connection.in_transaction:
                raise
            self._connection.execute("ROLLBACK TO job; RELEASE job")
            job.error = error
            return
        self._connection.execute("RELEASE job")

    def _retry_alone(self, job: "_Job") -> None:
        try:
            job.result = self._commit_alone(job.work, full=job.full)
        except BaseException as error:  # noqa: BLE001 - handed to the waiting caller
            job.error = error

    # -- the connection itself ------------------------------------------------

    @contextmanager
    def held(self) -> Iterator[apsw.Connection]:
        """Lend the connection outside a transaction; writers wait meanwhile."""
        with self._turn:
            self._depth += 1
            try:
                yield self._connection
            finally:
                self._depth -= 1

    def close(self) -> None:
        """Finish what is queued, refuse what comes later, and close the connection."""
        with self._lock:
            self._closed = True
            thread = self._thread
            if thread is not None:
                self._queue.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        with self._turn:
            self._connection.close()


class _Job:
    """One queued write, and the caller that waits for it."""

    __slots__ = ("_done", "error", "full", "result", "work")

    def __init__(self, work: Work[Any], *, full: bool) -> None:
        # scopes are context variables: what the work decides, it must decide under its caller's
        context = copy_context()
        self.work: Work[Any] = lambda connection: context.run(work, connection)
        self.full = full
        self.result: Any = None
        self.error: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def wait(self) -> Any:
        """Return the result once the commit is through, or raise what the work raised."""
        with self._done:
            if self.error is not None:
                raise self.error
            return self.result

    def finish(self) -> None:
        """Let the caller go on."""
        self._done.release()
