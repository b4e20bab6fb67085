"""Files of a git repository at a commit: content that can vanish, but never change."""

import hashlib
import os
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from libctx_core.errors import SourceTooLargeError, SourceUnreadableError, SourceVanishedError
from libctx_core.sources import Value
from libctx_sources.material import MaterialAdapter, MaterialSource
from libctx_sources.passages import Passage, syntax_of
from libctx_sources.reading import MAX_MATERIAL_BYTES, decode, material, origin_of, short_name

TIMEOUT = 60.0
"""Seconds one call of git may take."""

_CONFIG = ("-c", "core.fsmonitor=false", "-c", "protocol.allow=never", "-c", "core.hooksPath=/dev/null")
_FILE_MODES = ("100644", "100755")


class GitInput(Value):
    """A file of a repository at a commit.

    Attributes:
        repository: A directory of the repository.
        path: Path of the file within it, with forward slashes.
        commit: Anything that names a commit; resolved at once.
        capture: Keep the bytes; otherwise they are read from the repository again.
    """

    repository: Path
    path: str
    commit: str = "HEAD"
    capture: bool = False


class GitSource(MaterialSource):
    """A file at a commit.

    Attributes:
        repository: Directory of the repository.
        commit: The commit, 40 or 64 hex digits.
        path: Path of the file.
        blob: Object id of its content.
    """

    repository: str
    commit: str
    path: str
    blob: str


def _git(repository: str, arguments: Sequence[str]) -> bytes:
    """Run git without configuration of its own, prompts, hooks or network; return what it prints.

    Raises:
        SourceUnreadableError: Git is missing, refuses, or takes too long.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(  # noqa: S603 - the program is fixed, values stand behind options that end option parsing
            ["git", *_CONFIG, "-C", repository, *arguments],  # noqa: S607 - whichever git the user has
            capture_output=True,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT,
        )
    except FileNotFoundError as error:
        raise SourceUnreadableError(repository, "the program git is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise SourceUnreadableError(repository, f"git did not answer within {TIMEOUT:g} s") from error
    if done.returncode != 0:
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise SourceUnreadableError(repository, f"git refused: {reason[0][:200]}")
    return done.stdout


def resolve_commit(repository: os.PathLike[str] | str, commit: str = "HEAD") -> str:
    """Return the id of a commit.

    Raises:
        SourceUnreadableError: It is no repository, or names no commit.
    """
    origin = origin_of(repository)
    if not Path(origin).is_dir():
        raise SourceUnreadableError(origin, "is no directory of a git repository")
    found = _git(origin, ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}"])
    return found.decode().strip()


class _Blob(Value):
    blob: str
    size: int
    path: str


def _blobs(repository: str, commit: str, path: str | None = None) -> Iterator[_Blob]:
    where = [] if path is None else ["--", path]
    listing = _git(repository, ["--literal-pathspecs", "ls-tree", "-r", "-z", "--long", "--full-tree", commit, *where])
    for line in filter(None, listing.split(b"\0")):
        facts, _, name = line.partition(b"\t")
        mode, kind, blob, size = facts.decode().split()
        if kind == "blob" and mode in _FILE_MODES:
            yield _Blob(blob=blob, size=int(size), path=name.decode("utf-8", "replace"))


def git_files(repository: os.PathLike[str] | str, commit: str = "HEAD", *, capture: bool = False) -> Iterator[GitInput]:
    """Yield an input for every file of a commit that is neither empty nor too large.

    Args:
        repository: A directory of the repository.
        commit: Anything that names a commit.
        capture: Keep the bytes.
    """
    origin = origin_of(repository)
    resolved = resolve_commit(origin, commit)
    for found in _blobs(origin, resolved):
        if 0 < found.size <= MAX_MATERIAL_BYTES:
            yield GitInput(repository=Path(origin), path=found.path, commit=resolved, capture=capture)


class GitAdapter(MaterialAdapter[GitInput, GitSource]):
    """References or captures a file of a local repository; nothing is ever fetched."""

    input_class = GitInput
    name = "git"
    source_class = GitSource

    def describe(self, value: GitInput, /) -> GitSource:
        """Return the source of a file at a commit.

        Raises:
            SourceUnreadableError: There is no such repository, commit or file, or it is empty.
            SourceTooLargeError: The file is too large.
        """
        origin = origin_of(value.repository)
        commit = resolve_commit(origin, value.commit)
        found = next((blob for blob in _blobs(origin, commit, value.path) if blob.path == value.path), None)
        if found is None:
            raise SourceUnreadableError(origin, f"commit {commit[:12]} holds no such file")
        if found.size > MAX_MATERIAL_BYTES:
            raise SourceTooLargeError(f"{origin}/{value.path}", found.size, MAX_MATERIAL_BYTES)
        data = _git(origin, ["cat-file", "blob", found.blob])
        return self.describe_material(
            material(f"{origin}/{value.path}", data),
            capture=value.capture,
            name=short_name(f"{origin}/{value.path}", hashlib.sha256(f"{commit} {found.blob}".encode()).hexdigest()),
            repository=origin,
            commit=commit,
            path=value.path,
            blob=found.blob,
            description=f"{value.path} at commit {commit[:12]}",
        )

    def load(self, source: GitSource, /) -> bytes:
        """Return the bytes of the file at its commit, from the repository if they were not captured.

        Raises:
            SourceVanishedError: The repository is gone, or no longer holds the object.
        """
        if source.content is not None:
            return source.content
        if not Path(source.repository).is_dir():
            raise SourceVanishedError(source.repository)
        try:
            return _git(source.repository, ["cat-file", "blob", source.blob])
        except SourceUnreadableError as error:
            raise SourceVanishedError(source.origin) from error

    def passages(self, source: GitSource, value: bytes, /) -> Iterator[Passage]:
        """Yield the whole text, located by commit and path."""
        text = decode(value, source.origin)
        yield Passage(text, locator=f"{source.commit[:12]}:{source.path}", syntax=syntax_of(source.path))
