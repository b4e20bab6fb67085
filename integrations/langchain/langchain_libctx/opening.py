"""How a class of this package gets at its library: a handle, or a path that it then owns."""

import os
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Generic, Protocol, TypeVar, runtime_checkable

from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.library import LibraryOfContext, LibraryView
from libctx_core.store.database import Database

T = TypeVar("T")


@runtime_checkable
class HasDatabase(Protocol):
    """Anything that holds an open library file, such as a `LibraryOfContext`."""

    @property
    def database(self) -> Database:
        """The open file."""
        ...


DatabaseSource = HasDatabase | Database | str | os.PathLike[str]


def open_database(source: DatabaseSource) -> tuple[Database, bool]:
    """Return the open library file behind `source`, and whether the caller must close it.

    Args:
        source: An open library, its database, or a path (``":memory:"`` included).
    """
    if isinstance(source, Database):
        return source, False
    if isinstance(source, str | os.PathLike):
        return Database(source), True
    return source.database, False


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
