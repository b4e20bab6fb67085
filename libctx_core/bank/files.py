"""Pages as files: `<key>.bank` and `<key>.todo`, each with its enrolment in `<file>.access`.

An enrolled page is created sidecar first and deleted sidecar last, so whatever a crash
leaves behind is an enrolment without payload, which nobody may use, and never a payload
without its enrolment.
"""

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final

from libctx_core.access import (
    DenialReason,
    MetadataState,
    ResourceKind,
    ResourceMetadata,
    decode_metadata,
    encode_metadata,
)
from libctx_core.access.metadata import MAX_DOCUMENT_BYTES
from libctx_core.bank.codec import document_version
from libctx_core.bank.filenames import is_shortened, key_of, name_of
from libctx_core.bank.safefile import (
    file_lock,
    names_fold_case,
    read_regular,
    remove,
    stamp_of,
    write_atomically,
)
from libctx_core.bank.state import BANKED_KEY
from libctx_core.errors import InvalidInputError, ResourceExistsError
from libctx_core.errors.bank import PayloadError, VersionConflictError
from libctx_core.store.payloads import ABSENT, Encode, Recheck, StoredEntry, StoredHead, StoredPage

MAX_PAGE_BYTES: Final = 256 * 1024 * 1024
REMEMBERED_PATHS: Final = 4096
SIDECAR: Final = ".access"
LOCK: Final = ".lck"
KEY: Final = ".key"


class FileBankStore:
    """A `PayloadStore` over two directories.

    Args:
        lorebook_directory: Holds context windows and the banked context's enrolment.
        todo_directory: Holds todo lists.
        on_step: Called with a name after each step that reached the disk; for crash tests.
    """

    def __init__(
        self,
        lorebook_directory: str | Path,
        todo_directory: str | Path,
        *,
        on_step: Callable[[str], None] | None = None,
    ) -> None:
        lore, todo = Path(lorebook_directory), Path(todo_directory)
        for directory in (lore, todo):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._places = {
            str(ResourceKind.CONTEXT_WINDOW): (lore, ".bank"),
            str(ResourceKind.TODO_LIST): (todo, ".todo"),
            str(ResourceKind.BANKED_CONTEXT): (lore, ".bank"),
        }
        self._fold_case = names_fold_case(lore)
        self._step = on_step or _ignore
        self._paths = lru_cache(maxsize=REMEMBERED_PATHS)(self._build_paths)

    def payload_path(self, kind: str, key: str) -> Path:
        """Return where a page is stored; its enrolment is beside it under the same name plus `.access`.

        Raises:
            InvalidInputError: No page of this kind is kept in files.
        """
        return self._paths(kind, key)[0]

    def _build_paths(self, kind: str, key: str) -> tuple[Path, Path]:
        """Return the paths of a page and of its sidecar."""
        place = self._places.get(kind)
        if place is None:
            raise InvalidInputError("kind", "is not kept in files")
        directory, suffix = place
        banked = kind == ResourceKind.BANKED_CONTEXT
        name = BANKED_KEY if banked else name_of(key, fold_case=self._fold_case)
        path = directory / f"{name}{suffix}"
        return path, _beside(path, SIDECAR)

    def head(self, kind: str, key: str, /) -> StoredHead:
        """Return what the sidecar says, and the payload's stamp; only a name that is not there is no enrolment."""
        path, sidecar = self._paths(kind, key)
        return StoredHead(_read_sidecar(sidecar), _stamp(path))

    def stamp(self, kind: str, key: str, /) -> object | None:
        """Return the stamp of a payload, None where there is none."""
        return _stamp(self.payload_path(kind, key))

    def read(self, kind: str, key: str, /) -> StoredPage | None:
        """Return a page, its enrolment read after it, or None."""
        path = self.payload_path(kind, key)
        try:
            document, stamp = read_regular(path, MAX_PAGE_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PayloadError("page", "cannot be read as a regular file of this user") from error
        return StoredPage(document, None, stamp, _read_sidecar(_beside(path, SIDECAR)))

    def write(
        self,
        kind: str,
        key: str,
        encode: Encode,
        *,
        expected_version: int | None = None,
        recheck: Recheck | None = None,
    ) -> tuple[int, object]:
        """Store a page; its version is 0, or one above the stored one.

        Raises:
            VersionConflictError: Another version is stored; nothing was changed.
        """
        path = self.payload_path(kind, key)
        with file_lock(_lock_of(path)):
            page = self.read(kind, key)
            found = ABSENT if page is None else document_version(page.document)
            if recheck is not None:
                recheck(_read_sidecar(_beside(path, SIDECAR)), page is not None)
            if expected_version is not None and expected_version != found:
                raise VersionConflictError(expected_version, None if found == ABSENT else found)
            self._remember_key(path, key)
            return found + 1, write_atomically(path, encode(found + 1))

    def create(self, kind: str, key: str, metadata: ResourceMetadata | None, encode: Encode) -> object:
        """Store a new page, version 0, and its enrolment, or neither; return its stamp.

        Raises:
            ResourceExistsError: There is a payload or a sidecar already.
        """
        path, sidecar = self._paths(kind, key)
        document = encode(0)
        with file_lock(_lock_of(path)):
            if _stamp(path) is not None or _stamp(sidecar) is not None:
                raise ResourceExistsError(kind, key)
            self._remember_key(path, key)
            try:
                if metadata is not None:
                    write_atomically(sidecar, encode_metadata(metadata), exclusive=True)
                    self._step("sidecar")
                stamp = write_atomically(path, document, exclusive=True)
                self._step("payload")
            except FileExistsError as error:
                # somebody who does not take the lock was faster, and what is there is theirs
                raise ResourceExistsError(kind, key) from error
            except BaseException as error:
                _roll_back(path, sidecar, error)
                raise
            return stamp

    def delete(self, kind: str, key: str, *, recheck: Recheck | None = None, reserve: bool = False) -> bool:
        """Remove a page and, unless it stays reserved, its enrolment; return whether there was a page."""
        path = self.payload_path(kind, key)
        with file_lock(_lock_of(path)):
            if recheck is not None:
                recheck(*_facts(path))
            found = remove(path)
            self._step("payload")
            if not reserve:
                remove(_beside(path, SIDECAR))
                self._step("sidecar")
            return found

    def put_metadata(self, key: str, metadata: ResourceMetadata, *, unique: bool = False) -> None:
        """Enrol a key, with or without a payload, replacing what is there.

        Raises:
            ResourceExistsError: `unique` is set and another key has this resource id.
        """
        kind = metadata.resource_kind
        path = self.payload_path(kind, key)
        if unique and any(
            isinstance(entry.metadata, ResourceMetadata)
            and entry.metadata.resource_id == metadata.resource_id
            and (of, entry.key) != (kind, key)
            for of in self._places
            for entry in self.entries(of)
        ):
            raise ResourceExistsError(kind, key)
        with file_lock(_lock_of(path)):
            self._remember_key(path, key)
            write_atomically(_beside(path, SIDECAR), encode_metadata(metadata))

    def delete_metadata(self, kind: str, key: str) -> bool:
        """Remove an enrolment; return whether there was one."""
        path = self.payload_path(kind, key)
        with file_lock(_lock_of(path)):
            return remove(_beside(path, SIDECAR))

    def entries(self, kind: str, /) -> Iterable[StoredEntry]:
        """Return every key of a kind that has a payload or a sidecar, in order of their names."""
        directory, suffix = self._places[kind]
        files = set(os.listdir(directory))  # noqa: PTH208 - names are enough, and a path each is not free
        names = {name.removesuffix(suffix) for name in files if name.endswith(suffix)}
        sidecars = suffix + SIDECAR
        names |= {name.removesuffix(sidecars) for name in files if name.endswith(sidecars)}
        names -= {BANKED_KEY} if kind != ResourceKind.BANKED_CONTEXT else names - {BANKED_KEY}
        for name in sorted(names):
            key = (
                self._read_key(directory / f"{name}{suffix}")
                if is_shortened(name)
                else key_of(name, fold_case=self._fold_case)
            )
            if key is not None:
                # looked for even if it was not listed: it may be younger than the listing
                metadata = _read_sidecar(f"{directory}{os.sep}{name}{sidecars}")
                yield StoredEntry(key, metadata, f"{name}{suffix}" in files)

    def _remember_key(self, path: Path, key: str) -> None:
        """Keep the key of a shortened name beside it."""
        if is_shortened(path.name):
            write_atomically(_beside(path, KEY), key.encode())

    def _read_key(self, path: Path) -> str | None:
        try:
            key = read_regular(_beside(path, KEY), MAX_DOCUMENT_BYTES)[0].decode()
        except (OSError, UnicodeDecodeError):
            return None
        return key if path.name.startswith(name_of(key, fold_case=self._fold_case)) else None


def _roll_back(path: Path, sidecar: Path, error: BaseException) -> None:
    """Undo a creation, payload first; the sidecar stays where the payload might have."""
    try:
        remove(path)
    except OSError:
        error.add_note("the enrolment was kept: whether the payload was stored could not be confirmed")
        return
    remove(sidecar)


def _ignore(step: str) -> None:
    """Take no notice of a step."""


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _lock_of(path: Path) -> Path:
    return _beside(path, SIDECAR + LOCK)


def _stamp(path: Path) -> object | None:
    """Return the stamp of whatever has this name, None where nothing has."""
    try:
        return stamp_of(path.lstat())
    except FileNotFoundError:
        return None


def _facts(path: Path) -> tuple[MetadataState, bool]:
    return _read_sidecar(_beside(path, SIDECAR)), _stamp(path) is not None


def _read_sidecar(path: Path | str) -> MetadataState:
    try:
        return decode_metadata(read_regular(path, MAX_DOCUMENT_BYTES)[0])
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return DenialReason.INVALID_METADATA
