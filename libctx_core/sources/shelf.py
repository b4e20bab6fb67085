"""The stored sources of one collection: capture, list, read back, delete."""

import builtins
from collections.abc import Callable, Iterable

import apsw
from pydantic_core import PydanticSerializationError

from libctx_core.concurrency import Portal, run_sync
from libctx_core.errors import (
    SourceAdapterNotFoundError,
    SourceConflictError,
    SourceNotFoundError,
    SourceUnreadableError,
)
from libctx_core.errors.access import Operation
from libctx_core.sources.adapters import AnySourceAdapter, DirectSourceAdapter, SourceRouter
from libctx_core.sources.base import Value
from libctx_core.sources.content import ContentAdapter
from libctx_core.sources.guard import OpenGuard, OwnerGuard
from libctx_core.sources.values import Source, SourceRef, check_scope_id
from libctx_core.store import sources as rows
from libctx_core.store.database import Database
from libctx_core.store.owners import OWNERS, SOURCE, OwnerRow, find_owner, owner_by_id


class SourceEntry(Value):
    """A source in the journal of its collection.

    Attributes:
        position: Its place, from 1; a deleted source leaves a gap.
        ref: Its reference.
        source: The source.
        owner_id: Id of its owner object, which its chunks carry.
        superseded: Whether a newer version of the same origin was stored.
        created_at: When it was stored, seconds since the epoch.
    """

    position: int
    ref: SourceRef
    source: Source
    owner_id: int
    superseded: bool
    created_at: float


OnDelete = Callable[[apsw.Connection, OwnerRow], None]
"""Removes what was derived from a source, within the transaction that deletes it."""


class SourceShelf:
    """Sources of one collection, in a library file.

    Args:
        database: The library.
        collection: The collection, at most 256 characters.
        adapters: What resolves and reads them; the built-in `ContentAdapter` is added
            unless an adapter of its name is given.
        guard: Decides what the active scope may do.
        portal: Carries calls to adapters that are only asynchronous.
        on_delete: Removes what was derived from a source that is deleted.

    Raises:
        SourceConflictError: Two adapters share an input class, a source class or a name.
    """

    def __init__(
        self,
        database: Database,
        collection: str,
        adapters: Iterable[AnySourceAdapter] = (),
        *,
        guard: OwnerGuard | None = None,
        portal: Portal | None = None,
        on_delete: OnDelete | None = None,
    ) -> None:
        given = tuple(adapters)
        if all(adapter.name != ContentAdapter.name for adapter in given):
            given = (ContentAdapter(), *given)
        self.collection = check_scope_id(collection)
        self.router = SourceRouter(given)
        self._by_name: dict[str, AnySourceAdapter] = {}
        for adapter in given:
            if adapter.name in self._by_name:
                raise SourceConflictError("name", adapter.name)
            self._by_name[adapter.name] = adapter
        self._database = database
        self._guard: OwnerGuard = guard or OpenGuard()
        self._portal = portal or Portal()
        self._on_delete = on_delete
        database.ensure(OWNERS)
        database.ensure(rows.SOURCES)

    # -- adapters -------------------------------------------------------------

    def resolve(self, value: object) -> Source:
        """Return the source that describes a native value, without storing it.

        Raises:
            SourceAdapterNotFoundError: No adapter takes exactly this type.
            InvalidSourceResultError: The adapter returned another class than it declares.
        """
        adapter = self.router.for_input(value)
        if isinstance(adapter, DirectSourceAdapter):
            source = adapter.describe(value)
        else:
            source = self._portal.call(adapter.resolve, value)
        return self.router.accept(adapter, source)

    def read(self, source: Source) -> object:
        """Return the native value a source describes.

        Raises:
            SourceChangedError: It was referenced, and its place holds something else now.
            SourceVanishedError: It was referenced, and its place holds nothing now.
        """
        adapter = self.router.for_source(source)
        if isinstance(adapter, DirectSourceAdapter):
            return adapter.load(source)
        return self._portal.call(adapter.read, source)

    # -- storing --------------------------------------------------------------

    def capture(self, value: object) -> SourceEntry:
        """Resolve a native value and store its source."""
        return self.add(self.resolve(value))

    def add(self, source: Source) -> SourceEntry:
        """Store a source; storing an equal one again returns the stored one.

        If a newer version of its origin superseded it meanwhile, it is the current one again.

        Raises:
            SourceConflictError: Its identity names a source with other content.
            ContextAccessDenied: The active scope may not create it.
        """
        ref = self.router.as_ref(source)
        payload = payload_of(source)
        return self._database.write(lambda connection: self.add_in(connection, ref, source, payload))

    def add_in(self, connection: apsw.Connection, ref: SourceRef, source: Source, payload: str) -> SourceEntry:
        """Store a source within the caller's write transaction.

        Args:
            connection: The writer.
            ref: Reference of the source.
            source: The source.
            payload: Its `payload_of`, made before the transaction.
        """
        key = rows.source_owner_key(ref.source_type, ref.source_id)
        owner = find_owner(connection, SOURCE, self.collection, key)
        if owner is not None:
            self._guard.require(Operation.READ, SOURCE, self.collection, key, owner)
            row = rows.find_source(connection, self.collection, ref.source_type, ref.source_id)
            if row is None or row.payload != payload:
                raise SourceConflictError("identity", ref)
            if row.superseded_by is not None:
                self._guard.require(Operation.WRITE, SOURCE, self.collection, key, owner)
                row = rows.revive_source(connection, row)
            return _entry(row, ref, source)
        enrolment = self._guard.require(Operation.CREATE, SOURCE, self.collection, key, None)
        row = rows.insert_source(
            connection,
            self.collection,
            ref.source_type,
            ref.source_id,
            payload,
            origin=getattr(source, "origin", None),
            enrolment=enrolment,
        )
        return _entry(row, ref, source)

    def delete(self, ref: SourceRef) -> bool:
        """Delete a source and what was derived from it; False if it is not stored.

        Memory entries keep citing it; purge them where they must go too.

        Raises:
            ContextAccessDenied: The active scope may not delete it.
        """

        def run(connection: apsw.Connection) -> bool:
            key = rows.source_owner_key(ref.source_type, ref.source_id)
            owner = find_owner(connection, SOURCE, self.collection, key)
            if owner is None:
                return False
            self._guard.require(Operation.DELETE, SOURCE, self.collection, key, owner)
            if self._on_delete is not None:
                self._on_delete(connection, owner)
            rows.delete_source(connection, owner)
            return True

        return self._database.write(run)

    # -- reading --------------------------------------------------------------

    def get(self, ref: SourceRef) -> SourceEntry:
        """Return a stored source.

        Raises:
            SourceNotFoundError: None has this reference.
            SourceAdapterNotFoundError: No adapter of its name is registered here.
            ContextAccessDenied: The active scope may not read it.
        """
        with self._database.read() as connection:
            key = rows.source_owner_key(ref.source_type, ref.source_id)
            owner = find_owner(connection, SOURCE, self.collection, key)
            self._guard.require(Operation.READ, SOURCE, self.collection, key, owner)
            row = rows.find_source(connection, self.collection, ref.source_type, ref.source_id)
        if row is None:
            raise SourceNotFoundError(ref)
        return self._decode(row)

    def list(self, *, superseded: bool = False) -> tuple[Source, ...]:
        """Return the sources the active scope may see, in journal order.

        Args:
            superseded: Also those of which a newer version was stored.
        """
        return tuple(entry.source for entry in self.entries() if superseded or not entry.superseded)

    def entries(self, *, after: int = 0, limit: int | None = None) -> "builtins.tuple[SourceEntry, ...]":
        """Return a window of the journal.

        Args:
            after: Position to start behind.
            limit: Journal rows to look at; those the active scope may not see are left out.
        """
        with self._database.read() as connection:
            found = list(rows.iterate_sources(connection, self.collection, after=after, limit=limit))
            owners = [owner for row in found if (owner := owner_by_id(connection, row.owner)) is not None]
        visible = {owner.id for owner in self._guard.permitted(Operation.ENUMERATE, owners)}
        return tuple(self._decode(row) for row in found if row.owner in visible)

    def position(self) -> int:
        """Return the highest position the journal gave away, 0 if it is empty."""
        with self._database.read() as connection:
            return rows.journal_position(connection, self.collection)

    def _decode(self, row: rows.SourceRow) -> SourceEntry:
        try:
            adapter = self._by_name[row.source_type]
        except KeyError:
            raise SourceAdapterNotFoundError("source", Source) from None
        source = adapter.source_class.model_validate_json(row.payload)
        return _entry(row, SourceRef(source_type=row.source_type, source_id=row.source_id), source)

    # -- asynchronous twins ---------------------------------------------------

    async def aresolve(self, value: object) -> Source:
        """Return the source that describes a native value, without storing it."""
        adapter = self.router.for_input(value)
        return self.router.accept(adapter, await adapter.resolve(value))

    async def aread(self, source: Source) -> object:
        """Return the native value a source describes."""
        return await self.router.for_source(source).read(source)

    async def acapture(self, value: object) -> SourceEntry:
        """Resolve a native value and store its source."""
        return await self.aadd(await self.aresolve(value))

    async def aadd(self, source: Source) -> SourceEntry:
        """Store a source; storing an equal one again returns the stored one."""
        return await run_sync(self.add, source)

    async def adelete(self, ref: SourceRef) -> bool:
        """Delete a source and what was derived from it; False if it is not stored."""
        return await run_sync(self.delete, ref)

    async def aget(self, ref: SourceRef) -> SourceEntry:
        """Return a stored source."""
        return await run_sync(self.get, ref)

    async def alist(self, *, superseded: bool = False) -> tuple[Source, ...]:
        """Return the sources the active scope may see, in journal order."""
        return await run_sync(self.list, superseded=superseded)

    async def aentries(self, *, after: int = 0, limit: int | None = None) -> tuple[SourceEntry, ...]:
        """Return a window of the journal."""
        return await run_sync(self.entries, after=after, limit=limit)


def payload_of(source: Source) -> str:
    """Return the JSON a source is stored as.

    Raises:
        SourceUnreadableError: It holds something JSON cannot express.
    """
    try:
        payload = source.model_dump_json()
    except (PydanticSerializationError, UnicodeEncodeError) as error:
        raise SourceUnreadableError(source.name, "its description cannot be written as JSON") from error
    return payload


def _entry(row: rows.SourceRow, ref: SourceRef, source: Source) -> SourceEntry:
    return SourceEntry.trusted(
        position=row.position,
        ref=ref,
        source=source,
        owner_id=row.owner,
        superseded=row.superseded_by is not None,
        created_at=row.created_at,
    )


class SQLiteSourceStore:
    """The seed's asynchronous store and catalog backend, over a `SourceShelf`."""

    def __init__(self, shelf: SourceShelf) -> None:
        self._shelf = shelf

    async def add(self, value: Source, /) -> Source:
        """Store a source; storing an equal one again returns the stored one."""
        return (await self._shelf.aadd(value)).source

    async def get(self, source: Source, /) -> Source:
        """Return the stored source with the identity of `source`.

        Raises:
            SourceNotFoundError: None has it.
        """
        try:
            return (await self._shelf.aget(self._shelf.router.as_ref(source))).source
        except SourceNotFoundError:
            raise SourceNotFoundError(source) from None

    async def list(self) -> tuple[Source, ...]:
        """Return the sources the active scope may see."""
        return await self._shelf.alist(superseded=True)
