"""How a class of this package gets at its library: a handle, or a path that it then owns."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Protocol, TypeVar

from libctx_core.access.authority import Authority
from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.library import LibraryOfContext, LibraryView
from libctx_core.store.database import Database
from libctx_core.store.owners import OWNERS

DEFAULT_NAMESPACE = "default"


DatabaseSource = LibraryView | Database | str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class OpenFile:
    """An open library file, and who decides about what is kept in it.

    Attributes:
        database: The file.
        authority: Decides, under the scope that is held.
        namespace: The default collection.
        owned: Whether it was opened here and must be closed here.
    """

    database: Database
    authority: Authority
    namespace: str
    owned: bool

    def close(self) -> None:
        """Close the file if it was opened here."""
        if self.owned:
            self.database.close()


def open_database(source: DatabaseSource, scope: Scope | None = None) -> OpenFile:
    """Open a library file for tables that need no search and no governor.

    Args:
        source: An open library or view, its database, or a path (``":memory:"`` included).
        scope: Held for every call, whatever the context variables say.
    """
    if isinstance(source, LibraryView):
        return OpenFile(source.database, source.authority.bound(scope), source.namespace, owned=False)
    given = isinstance(source, Database)
    database = source if isinstance(source, Database) else Database(source)
    database.ensure(OWNERS)
    return OpenFile(database, Authority().bound(scope), DEFAULT_NAMESPACE, owned=not given)


LibrarySource = LibraryView | str | os.PathLike[str]


def open_library(source: LibrarySource, scope: Scope | None = None) -> tuple[LibraryView, LibraryOfContext | None]:
    """Return the library to work with, held under `scope`, and what the caller must close.

    Args:
        source: An open library or view, or a path (``":memory:"`` included).
        scope: Held for every call, whatever the context variables say.
    """
    owned = None if isinstance(source, LibraryView) else LibraryOfContext(source)
    view = source if isinstance(source, LibraryView) else owned
    assert view is not None, "one of the two is set"
    return (view if scope is None else view.scoped(scope)), owned


class Closing(Protocol):
    """Something with a `close` method."""

    def close(self) -> None:
        """Release the library file."""
        ...


C = TypeVar("C", bound=Closing)
A = TypeVar("A", bound=Closing)


class Opened(Generic[C, A]):
    """Result of a `from_conn_string`: enter it with ``with`` or with ``async with``.

    Args:
        build: Opens the object for ``with``.
        abuild: Opens the object for ``async with``; runs on the loop.
    """

    def __init__(self, build: Callable[[], C], abuild: Callable[[], Awaitable[A]]) -> None:
        self._build = build
        self._abuild = abuild
        self._current: Closing | None = None

    def __enter__(self) -> C:
        opened = self._build()
        self._current = opened
        return opened

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._current is not None:
            self._current.close()
            self._current = None

    async def __aenter__(self) -> A:
        opened = await self._abuild()
        self._current = opened
        return opened

    async def __aexit__(self, *details: object) -> None:
        await run_sync(self.__exit__, None, None, None)
