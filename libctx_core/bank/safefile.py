"""Files that others must not be able to swap, read, or see half written."""

import errno
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)

_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})

Stamp = tuple[int, int, int]


def stamp_of(state: os.stat_result) -> Stamp:
    """Return what changes whenever a file is replaced: time, size and inode."""
    return state.st_mtime_ns, state.st_size, state.st_ino


def read_regular(path: Path | str, limit: int) -> tuple[bytes, Stamp]:
    """Read a regular file that belongs to this user or to root.

    Raises:
        FileNotFoundError: There is nothing under this name.
        OSError: It is a link, directory or pipe, somebody else's, too large, or unreadable.
    """
    descriptor = os.open(path, os.O_RDONLY | _NOFOLLOW | _NONBLOCK)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError("is not a regular file")
        if sys.platform != "win32" and state.st_uid not in {os.geteuid(), 0}:
            raise PermissionError("belongs to another user")
        if state.st_size > limit:
            raise OSError(f"exceeds {limit} bytes")
        data = os.read(descriptor, state.st_size + 1)
        while len(data) < state.st_size and (more := os.read(descriptor, state.st_size - len(data))):
            data += more
        return data, stamp_of(state)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, data: bytes, *, exclusive: bool = False) -> Stamp:
    """Put a whole file in place, synced, or nothing; readable for the owner only.

    Args:
        path: The file.
        data: Its content.
        exclusive: Fail if there is anything under this name.

    Raises:
        FileExistsError: There is, and `exclusive` is set.
    """
    descriptor, temporary = tempfile.mkstemp(prefix=".tmp-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            stamp = stamp_of(os.fstat(file.fileno()))
        if exclusive:
            _publish_new(Path(temporary), path)
        else:
            Path(temporary).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise
    sync_directory(path.parent)
    return stamp


def _publish_new(temporary: Path, path: Path) -> None:
    if sys.platform == "win32":
        temporary.rename(path)
        return
    try:
        os.link(temporary, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # the caller's lock is what keeps others out on a file system without hard links
        if path.is_symlink() or path.exists():
            raise FileExistsError(error.errno, "exists") from error
        temporary.replace(path)
    else:
        temporary.unlink()


def remove(path: Path) -> bool:
    """Remove a file and sync its directory; return whether it was there."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    sync_directory(path.parent)
    return True


def sync_directory(path: Path) -> None:
    """Make renames and removals in a directory durable; Windows does so by itself."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a lock file, waiting for other threads and processes.

    Raises:
        OSError: The lock file is a link, or cannot be created.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NOFOLLOW, 0o600)
    try:
        _acquire(descriptor)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX)


def names_fold_case(directory: Path) -> bool:
    """Return whether a directory does not tell capitals from small letters."""
    with tempfile.NamedTemporaryFile(prefix=".probe-a", dir=directory) as probe:
        return probe_exists(Path(probe.name))


def probe_exists(path: Path) -> bool:
    """Return whether the file is found under its name in capitals."""
    return path.with_name(path.name.upper()).exists()
