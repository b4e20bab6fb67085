"""One open library per file and process, shared by every object that names its path."""

import os
import threading
import weakref
from pathlib import Path
from typing import TypeAlias

import anyio._backends._asyncio  # noqa: F401 - 0.1 s that the first hop would spend on the event loop
import apsw

from libctx_core import LibraryOfContext, LibraryView
from libctx_core.access import Operation, Scope
from libctx_core.search.collection import VectorCollection
from libctx_core.search.collection_guard import CollectionGuard
from libctx_core.search.vectors import VectorIndex
from libctx_core.store import Database
from libctx_core.store.owners import VECTOR_COLLECTION, find_owner

MEMORY = ":memory:"

_open: "weakref.WeakValueDictionary[tuple[int, str], LibraryLease]" = weakref.WeakValueDictionary()
_given: "weakref.WeakValueDictionary[int, LibraryLease]" = weakref.WeakValueDictionary()
_lock = threading.Lock()


class CollectionAccess:
    """Who may touch what belongs to a collection of nodes without being one of its nodes."""

    def __init__(self, view: LibraryView, name: str) -> None:
        self._guard = CollectionGuard(view.authority, view.namespace, name)
        self._place = (VECTOR_COLLECTION, view.namespace, name)

    def require_read(self, connection: apsw.Connection) -> None:
        """Return if the collection may be read.

        Raises:
            ContextAccessDenied: It may not.
        """
        self._guard.require(Operation.READ, find_owner(connection, *self._place))

    def require_write(self, connection: apsw.Connection) -> None:
        """Return if the collection may be written, or created where it does not exist.

        Raises:
            ContextAccessDenied: It may not.
        """
        owner = find_owner(connection, *self._place)
        self._guard.require(Operation.CREATE if owner is None else Operation.WRITE, owner)


class LibraryLease:
    """A share in an open library; one opened here closes when its last share is gone."""

    def __init__(self, library: LibraryView) -> None:
        self.library = library
        self._vectors = VectorIndex()
        self._file = _identity(self.path)

    @property
    def database(self) -> Database:
        """The library's file."""
        return self.library.database

    @property
    def path(self) -> str:
        """Path of the file, or ``":memory:"``."""
        return self.library.database.path

    @property
    def is_current(self) -> bool:
        """Whether the path still names the file that is open here."""
        return self._file == _identity(self.path)

    def view(self, scope: Scope | None) -> LibraryView:
        """Return the library held under a scope, or as it is."""
        return self.library if scope is None else self.library.scoped(scope)

    def collection(
        self, name: str, *, dimension: int | None = None, profile: str | None = None, scope: Scope | None = None
    ) -> VectorCollection:
        """Return a vector collection of the library; all of one file share their cached vectors."""
        view = self.view(scope)
        return VectorCollection(
            self.database,
            name,
            collection=view.namespace,
            dimension=dimension,
            profile=profile,
            index=self._vectors,
            guard=CollectionGuard(view.authority, view.namespace, name),
        )

    def access(self, name: str, scope: Scope | None = None) -> CollectionAccess:
        """Return who may touch what belongs to a collection."""
        return CollectionAccess(self.view(scope), name)

    def collection_names(self) -> list[str]:
        """Return the names of the vector collections in the library's namespace, by age."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT key FROM owner WHERE kind = ? AND collection = ? ORDER BY id",
                (VECTOR_COLLECTION, self.library.namespace),
            )
            return [name for (name,) in rows]


PathOrLibrary: TypeAlias = str | os.PathLike[str] | LibraryView | LibraryLease


def lease(library: PathOrLibrary) -> LibraryLease:
    """Return a share in a library, opening its file if this process has not.

    A library handed in stays the caller's to close. Each ``":memory:"`` is a library of
    its own.
    """
    if isinstance(library, LibraryLease):
        return library
    if isinstance(library, LibraryView):
        with _lock:
            # the lease keeps the library alive, so its id names nothing else meanwhile
            given = _given.get(id(library))
            if given is None:
                given = _given[id(library)] = LibraryLease(library)
            return given
    if os.fspath(library) == MEMORY:
        return _opened(MEMORY)
    path = str(Path(library).expanduser().resolve())
    with _lock:
        # a forked child must not use its parent's connections
        shared = _open.get((os.getpid(), path))
        if shared is None or not shared.is_current:
            shared = _open[os.getpid(), path] = _opened(path)
        return shared


def _identity(path: str) -> tuple[int, int] | None:
    """Return what tells a file from another of its name, None where there is none."""
    try:
        state = Path(path).stat()
    except OSError:
        return None
    return state.st_dev, state.st_ino


def _opened(path: str) -> LibraryLease:
    library = LibraryOfContext(path)
    opened = LibraryLease(library)
    weakref.finalize(opened, library.close)
    return opened
