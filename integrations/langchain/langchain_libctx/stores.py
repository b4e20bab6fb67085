"""`LibraryByteStore`: bytes by key, for LangChain's caches and parent documents."""

from collections.abc import AsyncIterator, Iterator, Sequence

import apsw
from langchain_core.stores import ByteStore

from langchain_libctx.guards import StoreGuard
from langchain_libctx.opening import DatabaseSource, open_database
from langchain_libctx.sql import fetch
from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.errors.access import Operation
from libctx_core.models import check_identifier
from libctx_core.store.migrations import Component

BYTES = Component(
    "langchain_bytes",
    (
        """
        CREATE TABLE byte_item(
            store TEXT NOT NULL,
            key TEXT NOT NULL,
            value BLOB NOT NULL,
            PRIMARY KEY(store, key)
        ) STRICT, WITHOUT ROWID;
        """,
    ),
)
_PAGE = 500


class LibraryByteStore(ByteStore):
    """A key-value store of bytes in a library file.

    Args:
        library: An open library or view, or a path that this object then owns.
        name: Name of the store within the library; several may share a file.
        scope: Held for every call; the store is one resource to it.
    """

    def __init__(self, library: DatabaseSource, *, name: str = "default", scope: Scope | None = None) -> None:
        self.name = check_identifier("name", name)
        self._file = open_database(library, scope)
        self._guard = StoreGuard(self._file, f"bytes:{name}")
        self._file.database.ensure(BYTES)

    def close(self) -> None:
        """Close the file if this object opened it."""
        self._file.close()

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the value of each key, None where there is none."""
        self._guard.require(Operation.READ)
        with self._file.database.read() as connection:
            return [self._value(connection, key) for key in keys]

    def _value(self, connection: apsw.Connection, key: str) -> bytes | None:
        rows = fetch(connection, "SELECT value FROM byte_item WHERE store = ? AND key = ?", (self.name, key))
        return rows[0][0] if rows else None

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Store values in one transaction; the last one of a key counts."""
        self._guard.require(Operation.WRITE)
        rows = [(self.name, check_identifier("key", key), bytes(value)) for key, value in key_value_pairs]

        def work(connection: apsw.Connection) -> None:
            connection.executemany(
                "INSERT INTO byte_item(store, key, value) VALUES(?,?,?)"
                " ON CONFLICT(store, key) DO UPDATE SET value = excluded.value",
                rows,
            )

        self._file.database.write(work)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete keys; those that are not there are no error."""
        self._guard.require(Operation.DELETE)
        rows = [(self.name, key) for key in keys]

        def work(connection: apsw.Connection) -> None:
            connection.executemany("DELETE FROM byte_item WHERE store = ? AND key = ?", rows)

        self._file.database.write(work)

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the keys that begin with a prefix, in order; reads a page at a time."""
        after = ""
        while True:
            page = self._keys(prefix or "", after)
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1]

    def _keys(self, prefix: str, after: str) -> list[str]:
        self._guard.require(Operation.ENUMERATE)
        with self._file.database.read() as connection:
            rows = fetch(
                connection,
                "SELECT key FROM byte_item WHERE store = ? AND key > ? AND key >= ?"
                " AND substr(key, 1, length(?)) = ? ORDER BY key LIMIT ?",
                (self.name, after, prefix, prefix, prefix, _PAGE),
            )
        return [row[0] for row in rows]

    # -- async twins ----------------------------------------------------------

    async def amget(self, keys: Sequence[str]) -> list[bytes | None]:
        """See `mget`; one thread hop."""
        return await run_sync(self.mget, keys)

    async def amset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """See `mset`; one thread hop."""
        await run_sync(self.mset, key_value_pairs)

    async def amdelete(self, keys: Sequence[str]) -> None:
        """See `mdelete`; one thread hop."""
        await run_sync(self.mdelete, keys)

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """See `yield_keys`; one thread hop per page."""
        after = ""
        while True:
            page = await run_sync(self._keys, prefix or "", after)
            for key in page:
                yield key
            if len(page) < _PAGE:
                return
            after = page[-1]
