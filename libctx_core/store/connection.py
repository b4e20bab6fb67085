"""Opening SQLite: owner-only files, pragmas, the vector extension, and its errors as ours."""

import errno
import importlib.util
import os
import random
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from libctx_core.errors import (
    ForeignDatabaseError,
    StoreBusyError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreMissingError,
    StorePathError,
    StoreReadOnlyError,
)

MEMORY = ":memory:"
BUSY_TIMEOUT = 30.0
"""Seconds a writer waits for another process's transaction."""

_POLL = 0.0005
"""Mean seconds between two looks at a busy lock. SQLite's own back-off grows to 100 ms
and starves whoever waits longest; a constant one lets each process have its turn."""

CHECKPOINT_PATIENCE = 1.0
"""Seconds a checkpoint waits for readers before it leaves the rest to the next one."""

_FOLDER = (
    apsw.SQLITE_READONLY_CANTINIT,
    apsw.SQLITE_READONLY_CANTLOCK,
    apsw.SQLITE_READONLY_DIRECTORY,
    apsw.SQLITE_READONLY_RECOVERY,
)
"""Extended results that mean the folder, not the file."""

_PAGE_CACHE_KIB = 16 * 1024


def prepare_file(path: Path, *, must_exist: bool) -> None:
    """Create the file and its directory for the owner only, before SQLite opens them.

    An existing file is never opened here: closing a second descriptor of a database
    drops the locks SQLite holds on it.
    """
    try:
        if path.is_dir():
            raise StorePathError(str(path), "is a directory; name a file")
        if path.exists():
            if not path.is_file():
                raise StorePathError(str(path), "is no regular file; name another one")
            return
        if must_exist:
            raise StoreMissingError(str(path), "does not exist")
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, parents=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        # another process was quicker
        return
    except StoreError:
        raise
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFullError(str(path), "the disk is full") from error
        raise StorePathError(str(path), f"cannot be used ({os.strerror(error.errno or 0)})") from error
    except ValueError as error:
        raise StorePathError(repr(str(path)), "holds a NUL character") from error


def tighten(path: Path) -> None:
    """Take an existing library, its log and its shared memory away from everybody but their owner."""
    if sys.platform == "win32":
        return
    for suffix in ("", "-wal", "-shm"):
        file = path.with_name(path.name + suffix)
        try:
            state = file.stat()
        except FileNotFoundError:
            continue
        if state.st_uid == os.geteuid() and stat.S_IMODE(state.st_mode) & 0o077:
            file.chmod(0o600)


def vector_extension() -> str | None:
    """Return the path of sqlite-vec's loadable module, or None where no wheel exists.

    The package itself is not imported: that would import numpy.
    """
    spec = importlib.util.find_spec("sqlite_vec")
    if spec is None or spec.origin is None:
        return None
    return str(Path(spec.origin).parent / "vec0")


def load_vector_extension(connection: apsw.Connection) -> str | None:
    """Load sqlite-vec by really loading it; return its version, or None if it cannot run."""
    path = vector_extension()
    if path is None:
        return None
    connection.enable_load_extension(True)
    try:
        connection.load_extension(path)
        version = connection.execute("SELECT vec_version()").get
    except apsw.Error:
        return None
    finally:
        connection.enable_load_extension(False)
    return str(version)


def _poll_busy(deadline_after: float) -> Callable[[int], bool]:
    waiting_since = 0.0

    def handler(prior_calls: int) -> bool:
        nonlocal waiting_since
        now = time.monotonic()
        if prior_calls == 0:
            waiting_since = now
        if now - waiting_since > deadline_after:
            return False
        time.sleep(_POLL * (0.5 + random.random()))  # noqa: S311 - jitter, not a secret
        return True

    return handler


@contextmanager
def patience(connection: apsw.Connection, seconds: float) -> Iterator[None]:
    """Let a connection wait for locks only so long, for some statements."""
    connection.set_busy_handler(_poll_busy(seconds))
    try:
        yield
    finally:
        connection.set_busy_handler(_poll_busy(BUSY_TIMEOUT))


def connect(path: str, *, writable: bool, busy_timeout: float = BUSY_TIMEOUT) -> apsw.Connection:
    """Open one connection with the library's settings.

    A reader of a WAL database needs the shared-memory file, so it is opened for
    writing at file level and barred from writing by `query_only`.
    """
    read_only_file = not writable and path != MEMORY and not os.access(path, os.W_OK)
    flags = apsw.SQLITE_OPEN_READONLY if read_only_file else apsw.SQLITE_OPEN_READWRITE
    if path == MEMORY:
        flags |= apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_MEMORY
    connection = apsw.Connection(path, flags=flags | apsw.SQLITE_OPEN_NOMUTEX, statementcachesize=256)
    connection.set_busy_handler(_poll_busy(busy_timeout))
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.execute(f"PRAGMA cache_size=-{_PAGE_CACHE_KIB}; PRAGMA temp_store=MEMORY; PRAGMA foreign_keys=ON")
    # always, not only while deleting: rows that move to another page leave copies behind otherwise
    connection.execute("PRAGMA secure_delete=ON")
    if not writable:
        connection.execute("PRAGMA query_only=ON")
    load_vector_extension(connection)
    return connection


def switch_to_wal(connection: apsw.Connection) -> None:
    """Put the file into write-ahead mode, once in its life.

    SQLite refuses at once, whatever the busy handler says, where two processes
    open a new file together: each would wait for the other.
    """
    handler = _poll_busy(BUSY_TIMEOUT)
    tries = 0
    while True:
        try:
            connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if not handler(tries):
                raise
            tries += 1
        else:
            return


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn SQLite's errors into the library's, naming the file and the way out."""
    try:
        yield
    except apsw.BusyError as error:
        raise StoreBusyError(path, "another process holds the write lock; try again") from error
    except apsw.ReadOnlyError as error:
        if error.extendedresult in _FOLDER:
            detail = "its folder may not be written, and the log beside it must be; copy the library elsewhere"
        else:
            detail = "is read-only; open it with read_only=True, or change its permissions"
        raise StoreReadOnlyError(path, detail) from error
    except apsw.FullError as error:
        raise StoreFullError(path, "the disk is full; nothing of this transaction was stored") from error
    except apsw.CorruptError as error:
        raise StoreCorruptError(path, "holds damaged pages; restore a backup, or export what is readable") from error
    except apsw.NotADBError as error:
        raise ForeignDatabaseError(path, "is not a SQLite database") from error
    except apsw.CantOpenError as error:
        raise StorePathError(path, "cannot be opened") from error
    except apsw.IOError as error:
        raise StoreError(path, "input/output error; check the disk and its file system") from error
    except apsw.ConnectionClosedError as error:
        raise StoreClosedError(path, "is closed") from error
