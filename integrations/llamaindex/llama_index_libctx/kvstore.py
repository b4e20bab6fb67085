"""Key-value pairs in the library file: what docstore, index store and ingestion cache stand on."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import apsw
from llama_index.core.storage.kvstore.types import DEFAULT_BATCH_SIZE, DEFAULT_COLLECTION, BaseKVStore
from pydantic_core import PydanticSerializationError, to_jsonable_python

from libctx_core.access import Scope
from libctx_core.concurrency import run_sync
from libctx_core.errors import InvalidInputError
from libctx_core.store import Component
from llama_index_libctx.library import PathOrLibrary, lease

T = TypeVar("T")

KEY_VALUES = Component(
    "llama_index_kv",
    (
        """
        CREATE TABLE llama_index_kv(
            id INTEGER PRIMARY KEY,
            collection TEXT NOT NULL,
            key TEXT NOT NULL,
            value TEXT NOT NULL,
            UNIQUE(collection, key)
        ) STRICT;
        """,
    ),
)

_PUT = (
    "INSERT INTO llama_index_kv(collection, key, value) VALUES(?, ?, ?)"
    " ON CONFLICT(collection, key) DO UPDATE SET value = excluded.value"
)


def encode(value: Mapping[str, Any]) -> str:
    """Return a value as JSON text that SQLite can hold; dates, sets and paths become JSON.

    Raises:
        InvalidInputError: Something in the value has no JSON form.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, default=to_jsonable_python)
    except (TypeError, ValueError, PydanticSerializationError) as error:
        raise InvalidInputError("value", "has a part that cannot be written as JSON") from error
    try:
        text.encode()
    except UnicodeEncodeError:
        # a lone surrogate is no UTF-8, its escape is
        return json.dumps(value, default=to_jsonable_python)
    return text


class KeyValueView(BaseKVStore):
    """The pairs as one connection sees them, so that several steps share a transaction.

    Only the synchronous methods work here; the asynchronous ones belong to the store.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def put(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        """Store one pair."""
        self._connection.execute(_PUT, (collection, key, encode(val)))

    def put_all(
        self,
        kv_pairs: Sequence[tuple[str, dict[str, Any]]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        """Store pairs; `batch_size` does not matter inside a transaction."""
        self._connection.executemany(_PUT, ((collection, key, encode(value)) for key, value in kv_pairs))

    def get(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """Return the value of a key, or None."""
        text = self._connection.execute(
            "SELECT value FROM llama_index_kv WHERE collection = ? AND key = ?", (collection, key)
        ).get
        return None if text is None else json.loads(text)

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """Return all pairs of a collection, oldest key first."""
        rows = self._connection.execute(
            "SELECT key, value FROM llama_index_kv WHERE collection = ? ORDER BY id", (collection,)
        )
        return {key: json.loads(text) for key, text in rows}

    def delete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Remove a pair; return whether it was there."""
        self._connection.execute("DELETE FROM llama_index_kv WHERE collection = ? AND key = ?", (collection, key))
        return bool(self._connection.changes())

    async def aput(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        """Not available inside a transaction."""
        raise NotImplementedError("a transaction runs in one thread; use put")

    async def aget(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """Not available inside a transaction."""
        raise NotImplementedError("a transaction runs in one thread; use get")

    async def aget_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """Not available inside a transaction."""
        raise NotImplementedError("a transaction runs in one thread; use get_all")

    async def adelete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Not available inside a transaction."""
        raise NotImplementedError("a transaction runs in one thread; use delete")


class LibraryKVStore(BaseKVStore):
    """LlamaIndex's key-value store in a library file.

    Values are JSON objects; each call returns new ones. Every write is one durable
    transaction, a list of pairs included.

    Args:
        library: The library, or the path of its file.
        collection_name: The collection of nodes whose access rules the pairs follow:
            whoever may read or write its nodes may read or write them.
        scope: Access scope that every call is held to.
    """

    def __init__(
        self,
        library: PathOrLibrary = ":memory:",
        *,
        collection_name: str = "default",
        scope: Scope | None = None,
    ) -> None:
        self._lease = lease(library)
        self._access = self._lease.access(collection_name, scope)
        self._lease.database.ensure(KEY_VALUES)

    def read(self, work: Callable[[KeyValueView], T]) -> T:
        """Run `work` on one snapshot of the pairs.

        Raises:
            ContextAccessDenied: Reading is not allowed.
        """
        with self._lease.database.read() as connection:
            self._access.require_read(connection)
            return work(KeyValueView(connection))

    def write(self, work: Callable[[KeyValueView], T]) -> T:
        """Run `work` in one transaction; if it raises, nothing of it is kept.

        Raises:
            ContextAccessDenied: Writing is not allowed.
        """

        def checked(connection: apsw.Connection) -> T:
            self._access.require_write(connection)
            return work(KeyValueView(connection))

        return self._lease.database.write(checked)

    def put(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        """Store one pair, replacing the value its key had."""
        self.write(lambda view: view.put(key, val, collection))

    def put_all(
        self,
        kv_pairs: Sequence[tuple[str, dict[str, Any]]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        """Store all pairs in one transaction, whatever the batch size."""
        if kv_pairs:
            self.write(lambda view: view.put_all(kv_pairs, collection))

    def get(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """Return the value of a key, or None."""
        return self.read(lambda view: view.get(key, collection))

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """Return all pairs of a collection, oldest key first."""
        return self.read(lambda view: view.get_all(collection))

    def delete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Remove a pair; return whether it was there."""
        return self.write(lambda view: view.delete(key, collection))

    async def aput(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        """Store one pair, off the event loop."""
        await run_sync(self.put, key, val, collection)

    async def aput_all(
        self,
        kv_pairs: Sequence[tuple[str, dict[str, Any]]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        """Store all pairs in one transaction, off the event loop."""
        await run_sync(self.put_all, kv_pairs, collection, batch_size)

    async def aget(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """Return the value of a key, or None."""
        return await run_sync(self.get, key, collection)

    async def aget_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """Return all pairs of a collection, oldest key first."""
        return await run_sync(self.get_all, collection)

    async def adelete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Remove a pair; return whether it was there."""
        return await run_sync(self.delete, key, collection)
