"""Reading bytes that may be too many, no regular file, or changing: one clear error each."""

import codecs
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

from libctx_core.errors import SourceChangedError, SourceTooLargeError, SourceUnreadableError, SourceVanishedError

MAX_MATERIAL_BYTES = 32 * 1024 * 1024
"""Bytes of one file that an adapter takes in."""

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


class Material(NamedTuple):
    """Bytes as they were read.

    Attributes:
        origin: Where they were found.
        data: The bytes.
        digest: Their SHA-256, 64 hex digits.
    """

    origin: str
    data: bytes
    digest: str


def origin_of(path: os.PathLike[str] | str) -> str:
    """Return the absolute path of a file as text; symbolic links are not followed.

    Raises:
        SourceUnreadableError: The path cannot be written as UTF-8.
    """
    origin = os.path.abspath(os.fspath(path))  # noqa: PTH100 - Path.resolve would follow links
    try:
        origin.encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(origin).decode("utf-8", "replace")
        raise SourceUnreadableError(shown, "the path is not UTF-8") from error
    return origin


def is_database_in_use(path: str) -> bool:
    """Tell whether a file belongs to a SQLite database that is open somewhere.

    Opening and closing such a file drops the locks this process holds on it.
    """
    for suffix in ("-shm", "-wal", "-journal"):
        if path.endswith(suffix) and Path(path.removesuffix(suffix)).exists():
            return True
    return Path(f"{path}-shm").exists()


def read_file(path: os.PathLike[str] | str, *, limit: int = MAX_MATERIAL_BYTES) -> Material:
    """Return the bytes of a regular file that did not change while it was read.

    Args:
        path: The file.
        limit: Bytes it may have.

    Raises:
        SourceVanishedError: There is nothing at the path.
        SourceTooLargeError: It has more bytes.
        SourceChangedError: It changed while it was read.
        SourceUnreadableError: It is empty, a directory, a pipe, a loop of symbolic links
            or a database in use, or may not be read.
    """
    origin = origin_of(path)
    try:
        if not stat.S_ISREG(Path(origin).stat().st_mode):
            raise SourceUnreadableError(origin, "is no regular file")
        if is_database_in_use(origin):
            raise SourceUnreadableError(origin, "is a SQLite database in use; reading it would drop its locks")
        with Path(origin).open("rb") as file:
            before = os.fstat(file.fileno())
            if before.st_size > limit:
                raise SourceTooLargeError(origin, before.st_size, limit)
            data = file.read(limit + 1)
            after = os.fstat(file.fileno())
    except FileNotFoundError as error:
        raise SourceVanishedError(origin) from error
    except OSError as error:
        raise SourceUnreadableError(origin, os.strerror(error.errno or 0)) from error
    if _state(before) != _state(after) or len(data) != after.st_size:
        raise SourceChangedError(origin, "it was written to while it was read")
    return material(origin, data)


def _state(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns


def material(origin: str, data: bytes) -> Material:
    """Return bytes with their digest.

    Raises:
        SourceUnreadableError: There are none.
        SourceTooLargeError: There are too many.
    """
    if not data:
        raise SourceUnreadableError(origin, "is empty")
    if len(data) > MAX_MATERIAL_BYTES:
        raise SourceTooLargeError(origin, len(data), MAX_MATERIAL_BYTES)
    return Material(origin, data, hashlib.sha256(data).hexdigest())


def reread(origin: str, digest: str) -> bytes:
    """Return the bytes of a referenced file, if they are still those that were referenced.

    Raises:
        SourceVanishedError: The file is gone.
        SourceChangedError: It holds other bytes now.
    """
    try:
        found = read_file(origin)
    except SourceUnreadableError as error:
        raise SourceChangedError(origin, error.detail) from error
    if found.digest != digest:
        raise SourceChangedError(origin, "its SHA-256 is another")
    return found.data


def decode(data: bytes, origin: str) -> str:
    """Return text from UTF-8, or from what a byte order mark names.

    Raises:
        SourceUnreadableError: It is binary, or in another encoding.
    """
    encoding = next((name for mark, name in _BOMS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        kind = "binary" if b"\x00" in data[:8192] else "not UTF-8 text"
        raise SourceUnreadableError(origin, f"is {kind} (byte {error.start} of {len(data)})") from error
    if "\x00" in text:
        raise SourceUnreadableError(origin, "is binary: it holds NUL characters")
    if not text.strip():
        raise SourceUnreadableError(origin, "holds nothing but white space")
    return text


def parsed_json(data: bytes, origin: str) -> Any:
    """Return a JSON document.

    Raises:
        SourceUnreadableError: It is truncated or otherwise no JSON, or nested too deeply.
    """
    try:
        return json.loads(decode(data, origin))
    except json.JSONDecodeError as error:
        raise SourceUnreadableError(origin, f"is no complete JSON (line {error.lineno}: {error.msg})") from error
    except RecursionError as error:
        raise SourceUnreadableError(origin, "is nested too deeply") from error


def short_name(origin: str, digest: str) -> str:
    """Return a name for bytes found somewhere: readable, at most 256 characters, new with every change.

    Args:
        origin: Where they were found.
        digest: Their SHA-256.
    """
    tail = origin.replace("\\", "/").rstrip("/").rpartition("/")[2].strip() or "material"
    place = hashlib.sha256(origin.encode()).hexdigest()[:8]
    return f"{tail[-200:].strip()}@{place}.{digest[:16]}"
