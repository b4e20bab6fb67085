"""Durable cursors of triggers, moved in the transaction of what the move stands for."""

from typing import NamedTuple

import apsw

from libctx_core.concurrency import run_sync
from libctx_core.errors import InvalidInputError
from libctx_core.sources.values import SourceCursor, check_scope_id, reference_fault
from libctx_core.store import sources as rows
from libctx_core.store.database import Database
from libctx_core.triggers.policy import MAX_BINDING_NAME_LENGTH


class StoredCursor(NamedTuple):
    """A cursor as it is stored.

    Attributes:
        cursor: How far its trigger got.
        generation: How often it moved; a move names the generation it was based on.
    """

    cursor: SourceCursor
    generation: int


class CursorStore:
    """Cursors of one collection.

    Args:
        database: The library.
        collection: The collection, at most 256 characters.
    """

    def __init__(self, database: Database, collection: str) -> None:
        self.collection = check_scope_id(collection)
        self._database = database
        database.ensure(rows.SOURCES)

    def read(self, binding: str) -> StoredCursor:
        """Return the cursor of a binding; at 0 with generation 0 if it never moved.

        Raises:
            InvalidInputError: The name is blank, padded or over 128 characters.
        """
        name = _check_binding(binding)
        with self._database.read() as connection:
            sequence, generation = rows.read_cursor(connection, self.collection, name)
        return StoredCursor(SourceCursor(sequence=sequence), generation)

    def move_in(self, connection: apsw.Connection, binding: str, cursor: SourceCursor, *, generation: int) -> int:
        """Move a cursor within the caller's write transaction; return its new generation.

        Args:
            connection: The writer.
            binding: Name of the cursor.
            cursor: Where to.
            generation: Generation the move is based on.

        Raises:
            GenerationConflictError: Somebody moved it in the meantime.
        """
        name = _check_binding(binding)
        return rows.move_cursor(connection, self.collection, name, cursor.sequence, generation=generation)

    def move(self, binding: str, cursor: SourceCursor, *, generation: int) -> int:
        """Move a cursor on its own; return its new generation.

        Raises:
            GenerationConflictError: Somebody moved it in the meantime.
        """
        return self._database.write(lambda connection: self.move_in(connection, binding, cursor, generation=generation))

    async def aread(self, binding: str) -> StoredCursor:
        """Return the cursor of a binding."""
        return await run_sync(self.read, binding)

    async def amove(self, binding: str, cursor: SourceCursor, *, generation: int) -> int:
        """Move a cursor on its own; return its new generation."""
        return await run_sync(self.move, binding, cursor, generation=generation)


def _check_binding(value: str) -> str:
    fault = reference_fault(value, MAX_BINDING_NAME_LENGTH)
    if fault is not None:
        raise InvalidInputError("binding", fault)
    return value
