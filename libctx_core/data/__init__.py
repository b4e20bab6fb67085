"""Vocabularies and the embedding table: files that ship with the package, checked before use."""

import hashlib
from functools import lru_cache
from pathlib import Path

from libctx_core.errors import PackageDataError

FOLDER = Path(__file__).parent
"""Where the data files lie."""

SUMS = "SHA256SUMS"
"""Name of the checksum list, in the format of the ``sha256sum`` command."""


@lru_cache(maxsize=4)
def _sums(folder: Path) -> dict[str, str]:
    lines = (folder / SUMS).read_text("utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def data_files() -> tuple[str, ...]:
    """Return the names of all data files that the release lists.

    Raises:
        PackageDataError: The list is missing or unreadable.
    """
    try:
        return tuple(_sums(FOLDER))
    except (OSError, ValueError) as error:
        raise PackageDataError(SUMS, "the checksum list cannot be read") from error


def expected_sha256(name: str) -> str:
    """Return the SHA-256 (64 hexadecimal digits) that the release lists for a data file.

    Raises:
        PackageDataError: The list is missing or does not name the file.
    """
    try:
        return _sums(FOLDER)[name]
    except (OSError, ValueError, KeyError) as error:
        raise PackageDataError(name, "no checksum is listed") from error


def read_data(name: str) -> bytes:
    """Return the bytes of a data file whose checksum is right.

    Raises:
        PackageDataError: The file is missing, unreadable or altered.
    """
    expected = expected_sha256(name)
    try:
        content = (FOLDER / name).read_bytes()
    except OSError as error:
        raise PackageDataError(name, "the file cannot be read") from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise PackageDataError(name, "the checksum does not match")
    return content
