"""One library file: a pool of readers beside one writer, its schema, and the file as a whole."""

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Literal, TypeVar

import apsw

from libctx_core.errors import ForeignDatabaseError, StoreClosedError, StoreError, StorePathError, StoreReadOnlyError
from libctx_core.store import forking
from libctx_core.store.connection import (
    CHECKPOINT_PATIENCE,
    MEMORY,
    connect,
    patience,
    prepare_file,
    switch_to_wal,
    tighten,
    translated,
)
from libctx_core.store.migrations import APPLICATION_ID, Component, migrate
from libctx_core.store.writer import Writer

T = TypeVar("T")
Durability = Literal["full", "normal"]
ConnectHook = Callable[[apsw.Connection], None]

MAX_IDLE_READERS = 8

READERS_PATIENCE = 0.2
"""Seconds a fork waits for readers of other threads to finish."""


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

    Raises:
        StoreError: The file cannot be used; its leaf says why.
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
        self._ended = ""
        self._closing = threading.Lock()
        self._idle: deque[apsw.Connection] = deque()
        self._readers: set[apsw.Connection] = set()
        self._pause: AbstractContextManager[apsw.Connection] | None = None
        self._migrated: dict[str, int] = {}
        if forking.is_shut(self.path):
            raise StoreError(self.path, forking.SHUT)
        if not self.in_memory:
            prepare_file(Path(self.path), must_exist=read_only)
        with translated(self.path):
            connection = self._connect(writable=not read_only)
            try:
                self._claim(connection)
            except BaseException:
                connection.close()
                raise
        self._writer = Writer(connection, self.path)
        forking.watch(self)

    def _connect(self, *, writable: bool) -> apsw.Connection:
        connection = connect(self.path, writable=writable)
        if self._on_connect is not None:
            try:
                self._on_connect(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _claim(self, connection: apsw.Connection) -> None:
        """Mark a new file as ours; refuse anybody else's and leave it as it is."""
        application = _application(connection)
        if application != APPLICATION_ID and (self.read_only or _holds_anything(connection)):
            # another process may have claimed the new file between the two looks
            application = _application(connection)
            if application != APPLICATION_ID:
                raise ForeignDatabaseError(self.path, "is a SQLite database of another application; name another file")
        if self.read_only:
            return
        if connection.readonly("main"):
            raise StoreReadOnlyError(
                self.path, "may not be written; open it with read_only=True, or change its permissions"
            )
        if not self.in_memory:
            tighten(Path(self.path))
            switch_to_wal(connection)
            connection.execute("PRAGMA wal_autocheckpoint=2000; PRAGMA journal_size_limit=67108864")
            if self.durability == "full":
                connection.execute("PRAGMA fullfsync=ON; PRAGMA checkpoint_fullfsync=ON")
        if application != APPLICATION_ID:
            connection.pragma("application_id", APPLICATION_ID)

    # -- schema ---------------------------------------------------------------

    def ensure(self, component: Component) -> None:
        """Bring one component's tables up to date; cheap when they are.

        Raises:
            NewerSchemaError: The file holds a newer version of the component.
            StoreReadOnlyError: Steps are missing and the library is open read-only.
        """
        if self._migrated.get(component.name) == len(component.steps):
            return
        self.exclusive(lambda connection: migrate(connection, component, self.path, read_only=self.read_only))
        self._migrated[component.name] = len(component.steps)

    # -- reading --------------------------------------------------------------

    @contextmanager
    def read(self) -> Iterator[apsw.Connection]:
        """Lend a connection on which all statements see one snapshot.

        Do not keep the connection, and do not call `write` while holding it for long.
        In memory the one connection is lent under the writer's lock.

        Raises:
            StoreClosedError: The library is closed.
        """
        if self._ended:
            raise StoreClosedError(self.path, self._ended)
        if self.in_memory:
            with translated(self.path), self._writer.held() as connection:
                yield connection
            return
        with translated(self.path):
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect(writable=False)
                self._readers.add(connection)
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                self._take_back(connection)

    def select(self, statement: str, bindings: tuple[object, ...]) -> list[tuple[Any, ...]]:
        """Return the rows of one statement, a snapshot of its own; half the price of `read` for a look-up.

        Raises:
            StoreClosedError: The library is closed.
        """
        connection = self._idle_reader()
        if connection is None:
            with self.read() as lent:
                return list(lent.execute(statement, bindings))
        try:
            return list(connection.execute(statement, bindings))
        except apsw.Error:
            with translated(self.path):
                raise
        finally:
            self._take_back(connection)

    def _idle_reader(self) -> apsw.Connection | None:
        if self._ended or self.in_memory:
            return None
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _take_back(self, connection: apsw.Connection) -> None:
        """Keep a reader for the next caller, unless something still holds its snapshot."""
        if self._ended and self.is_inherited:
            return
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        if len(self._idle) >= MAX_IDLE_READERS or connection.txn_state() != apsw.SQLITE_TXN_NONE:
            self._readers.discard(connection)
            connection.close()
            return
        self._idle.append(connection)
        if self._ended:
            self._close_idle()

    def _close_idle(self) -> None:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return
            self._readers.discard(connection)
            connection.close()

    # -- writing --------------------------------------------------------------

    def write(self, work: Callable[[apsw.Connection], T], *, durable: bool = True) -> T:
        """Run `work(connection)` in one transaction; return its result once committed.

        `work` uses only the connection it is given and never calls `write` itself. If it
        raises, everything it did is rolled back and its error reaches the caller. It may
        be run a second time, on a rolled back slate, when the commit it shared failed.

        Args:
            work: The statements. Keep it short: it holds the library's one write lock.
            durable: Whether this commit must survive power loss (under
                ``durability="full"``). Pass False for what can be rebuilt.

        Raises:
            StoreReadOnlyError: The library is open read-only.
            StoreClosedError: The library is closed.
            StoreBusyError: Another process held the lock longer than the busy timeout.
            StoreFullError: The disk is full; nothing was stored.
        """
        if self.read_only:
            raise StoreReadOnlyError(self.path, "is open read-only")
        if self._ended:
            raise StoreClosedError(self.path, self._ended)
        return self._writer.run(work, full=durable and self.durability == "full")

    # -- whole file -----------------------------------------------------------

    def size(self) -> int:
        """Return the bytes of the database's pages, free ones included."""
        with self.read() as connection:
            return int(connection.pragma("page_count") or 0) * int(connection.pragma("page_size") or 0)

    def exclusive(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run `work` on the writer outside a transaction (VACUUM, checkpoint, migration)."""
        if self._ended:
            raise StoreClosedError(self.path, self._ended)
        with translated(self.path), self._writer.held() as connection:
            return work(connection)

    def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy the library to a new file, consistent while others write.

        Raises:
            StorePathError: The target exists already or cannot be created.
            StoreFullError: There is no room for it; no part of it is left behind.
        """
        destination = Path(target).expanduser().absolute()
        if destination.exists():
            raise StorePathError(str(destination), "already exists; a backup never overwrites")
        prepare_file(destination, must_exist=False)
        try:
            with self.read() as source, translated(str(destination)):
                _copy(source, str(destination))
        except BaseException:
            destination.unlink()
            raise

    def vacuum(self) -> None:
        """Return free pages to the file system."""
        self.exclusive(lambda connection: connection.execute("VACUUM").fetchall())

    def truncate_wal(self) -> bool:
        """Move the write-ahead log into the file and empty it; False if a reader was in the way."""
        if self.in_memory:
            return True

        def run(connection: apsw.Connection) -> bool:
            # a reader of another process may stay for minutes, and writers wait here
            with patience(connection, CHECKPOINT_PATIENCE):
                busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
            return bool(busy == 0)

        return self.exclusive(run)

    def close(self) -> None:
        """Finish queued writes and close every connection; calling it again does nothing."""
        with self._closing:
            if self._ended:
                return
            self._ended = "is closed"
        self._writer.close()
        self._close_idle()

    # -- forked processes -----------------------------------------------------

    @property
    def is_inherited(self) -> bool:
        """Whether this process was forked after the library was opened, and has to open it again."""
        return self._ended is forking.FORKED

    def rest(self) -> None:
        """Wait until nothing is being written, and for readers as long as they usually take."""
        if self._ended:
            return
        self._pause = self._writer.held()
        self._pause.__enter__()
        deadline = time.monotonic() + READERS_PATIENCE
        while len(self._readers) > len(self._idle) and time.monotonic() < deadline:
            time.sleep(0.001)

    def wake(self) -> None:
        """Go on after a fork, in the parent."""
        if self._pause is not None:
            self._pause.__exit__(None, None, None)
            self._pause = None

    def abandon(self) -> None:
        """Give up the inherited connections after a fork, in the child."""
        if not self._ended:
            self._ended, self._closing = forking.FORKED, threading.Lock()
        if self._pause is None:
            return
        with self._writer.held() as connection:
            busy = connection.in_transaction or len(self._readers) > len(self._idle)
            if busy and not self.in_memory:
                forking.shut(self.path, self._writer, self._readers)
            else:
                self._close_idle()
                connection.close()
        self.wake()


def _application(connection: apsw.Connection) -> int:
    return int(connection.pragma("application_id") or 0)


def _holds_anything(connection: apsw.Connection) -> bool:
    return bool(connection.execute("SELECT count(*) FROM sqlite_schema").get)


def _copy(source: apsw.Connection, target: str) -> None:
    copy = apsw.Connection(target)
    try:
        with copy.backup("main", source, "main") as run:
            while not run.done:
                run.step(1024)
    finally:
        copy.close()
