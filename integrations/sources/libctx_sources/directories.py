"""Directories: a listing with a fingerprint of every file."""

import os
from collections.abc import Iterator
from pathlib import Path

from libctx_core.errors import SourceChangedError, SourceTooLargeError, SourceUnreadableError, SourceVanishedError
from libctx_core.sources import BaseSourceAdapter, Source, SourceMaterialization, Value
from libctx_sources.passages import Passage, syntax_of
from libctx_sources.reading import (
    MAX_MATERIAL_BYTES,
    decode,
    is_database_in_use,
    material,
    origin_of,
    read_file,
    reread,
    short_name,
)

MAX_FILES = 20_000
"""Files of one directory, subdirectories included."""

MAX_DIRECTORY_BYTES = 8 * MAX_MATERIAL_BYTES
"""Bytes of all files of one directory: reading it back holds them all."""

SKIPPED = frozenset({".git", ".hg", ".svn", "__pycache__", "node_modules", ".venv", ".mypy_cache", ".ruff_cache"})
"""Names that are never walked into: what they hold is derived, or another tool's."""


class DirectoryInput(Value):
    """A directory with all files below it.

    Attributes:
        path: The directory.
        hidden: Also files and directories whose name starts with a dot.
    """

    path: Path
    hidden: bool = False


class DirectoryEntry(Value):
    """One file of a directory.

    Attributes:
        path: Path below the directory, with forward slashes.
        size: Bytes.
        digest: SHA-256, 64 hex digits.
    """

    path: str
    size: int
    digest: str


class DirectorySource(Source):
    """A directory as it was, referenced.

    Attributes:
        origin: The directory.
        digest: SHA-256 over the listing.
        entries: Its files, sorted by path.
    """

    origin: str
    digest: str
    entries: tuple[DirectoryEntry, ...]


def walk(root: os.PathLike[str] | str, *, hidden: bool = False) -> Iterator[Path]:
    """Yield the regular files below a directory, sorted; no links are followed, no open databases touched.

    Args:
        root: The directory.
        hidden: Also names that start with a dot.

    Raises:
        SourceVanishedError: It does not exist.
        SourceUnreadableError: It is no directory, or one below it may not be read.
    """
    origin = origin_of(root)
    try:
        with os.scandir(origin) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except FileNotFoundError as error:
        raise SourceVanishedError(origin) from error
    except OSError as error:
        raise SourceUnreadableError(origin, os.strerror(error.errno or 0)) from error
    for entry in entries:
        if entry.name in SKIPPED or (entry.name.startswith(".") and not hidden):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from walk(entry.path, hidden=hidden)
        elif entry.is_file(follow_symlinks=False) and not is_database_in_use(entry.path):
            yield Path(entry.path)


def _files(root: os.PathLike[str] | str, *, hidden: bool) -> Iterator[tuple[Path, int]]:
    """Yield what `walk` does with its size; empty files are left out."""
    for path in walk(root, hidden=hidden):
        try:
            size = path.stat().st_size
        except OSError as error:
            raise SourceChangedError(str(path), "it vanished while its directory was read") from error
        if size > 0:
            yield path, size


class DirectoryAdapter(BaseSourceAdapter[DirectoryInput, DirectorySource, dict[str, bytes]]):
    """References a directory; reading it back checks every file."""

    input_class = DirectoryInput
    name = "directory"
    source_class = DirectorySource

    def describe(self, value: DirectoryInput, /) -> DirectorySource:
        """Return the listing of a directory; empty files are left out.

        Raises:
            SourceUnreadableError: It holds no file, or too many.
            SourceTooLargeError: A file, or all of them together, have too many bytes.
            SourceChangedError: It changed while it was read.
        """
        origin = origin_of(value.path)
        entries: list[DirectoryEntry] = []
        total = 0
        for path, size in _files(origin, hidden=value.hidden):
            total += size
            if len(entries) == MAX_FILES:
                raise SourceUnreadableError(origin, f"holds more than {MAX_FILES} files; take in its parts")
            if total > MAX_DIRECTORY_BYTES:
                raise SourceTooLargeError(origin, total, MAX_DIRECTORY_BYTES)
            found = read_file(path)
            relative = path.relative_to(origin).as_posix()
            entries.append(DirectoryEntry(path=relative, size=len(found.data), digest=found.digest))
        if not entries:
            raise SourceUnreadableError(origin, "holds no files")
        listing = "".join(f"{entry.digest} {entry.path}\n" for entry in entries)
        digest = material(origin, listing.encode()).digest
        return DirectorySource(
            name=short_name(origin, digest),
            materialization=SourceMaterialization.REFERENCED,
            origin=origin,
            digest=digest,
            entries=tuple(entries),
        )

    def load(self, source: DirectorySource, /) -> dict[str, bytes]:
        """Return the bytes of every file by its path; all must be as they were.

        Raises:
            SourceVanishedError: A file is gone.
            SourceChangedError: A file holds other bytes, or files were added.
        """
        root = Path(source.origin)
        values = {entry.path: reread(str(root / entry.path), entry.digest) for entry in source.entries}
        present = sum(1 for _ in _files(root, hidden=False))
        if present > len(values) and not any(_is_hidden(entry.path) for entry in source.entries):
            raise SourceChangedError(source.origin, "files were added")
        return values

    def passages(self, source: DirectorySource, value: dict[str, bytes], /) -> Iterator[Passage]:
        """Yield the text of every file, located by its path."""
        for path, data in value.items():
            yield Passage(decode(data, f"{source.origin}/{path}"), locator=path, syntax=syntax_of(path))


def _is_hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))
