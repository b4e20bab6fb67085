"""The asynchronous catalog of sources and the group that composes it with a store."""

import builtins
from collections.abc import Iterable
from typing import Protocol, TypeVar, runtime_checkable

from libctx_core.errors import SourceNotFoundError
from libctx_core.sources.adapters import AnySourceAdapter, SourceRouter
from libctx_core.sources.values import ComponentGroup, Source, SourceRef

StoredT = TypeVar("StoredT", bound=Source)


@runtime_checkable
class SourceCatalogBackend(Protocol):
    """The reads that a catalog needs."""

    async def get(self, source: Source, /) -> Source:
        """Return the stored source with the identity of `source`."""
        ...

    async def list(self) -> tuple[Source, ...]:
        """Return the sources visible in one view of the backend."""
        ...


@runtime_checkable
class SourceStore(Protocol[StoredT]):
    """Keeps resolved sources for later reads and for lineage."""

    async def add(self, value: StoredT, /) -> StoredT:
        """Store a source; storing the same one again changes nothing."""
        ...


class SourceCatalog:
    """A read-only catalog routed by adapters.

    Args:
        backend: Where stored sources are read.
        adapters: What resolves and reads them; routing is by exact type.

    Raises:
        InvalidSourceAdapterError: An adapter lacks something.
        SourceConflictError: Two adapters share a route.
    """

    def __init__(self, *, backend: SourceCatalogBackend, adapters: Iterable[AnySourceAdapter]) -> None:
        self._backend = backend
        self._router = SourceRouter(adapters)

    async def list(self) -> tuple[Source, ...]:
        """Return the stored sources; every one of them has an adapter here."""
        sources = await self._backend.list()
        for source in sources:
            self.as_ref(source)
        return sources

    async def get(self, source: Source, /) -> Source:
        """Return the stored source that equals `source`.

        Raises:
            SourceNotFoundError: None does.
        """
        self.as_ref(source)
        stored = await self._backend.get(source)
        self.as_ref(stored)
        if type(stored) is not type(source) or stored != source:
            raise SourceNotFoundError(source)
        return stored

    def as_ref(self, source: Source, /) -> SourceRef:
        """Return the reference of a source: its adapter's name and its own.

        Raises:
            InvalidSourceEntryError: It is not a source.
            SourceAdapterNotFoundError: No adapter reads its class.
        """
        return self._router.as_ref(source)

    async def resolve(self, value: object, /) -> Source:
        """Return the source that describes a native value, without storing it.

        Raises:
            SourceAdapterNotFoundError: No adapter takes exactly this type.
            InvalidSourceResultError: The adapter returned another class than it declares.
        """
        adapter = self._router.for_input(value)
        return self._router.accept(adapter, await adapter.resolve(value))

    async def read(self, source: Source, /) -> object:
        """Return the native value a source describes, as its adapter reads it."""
        return await self._router.for_source(source).read(source)


class Sources(ComponentGroup):
    """Acquisition, storage and reading of sources under one name."""

    catalog: SourceCatalog
    store: SourceStore[Source]

    async def resolve(self, value: object, /) -> Source:
        """Return the source that describes a native value, without storing it."""
        return await self.catalog.resolve(value)

    async def add(self, source: Source, /) -> Source:
        """Store a resolved source; nothing is derived from it."""
        self.catalog.as_ref(source)
        stored = await self.store.add(source)
        self.catalog.as_ref(stored)
        return stored

    async def get(self, source: Source, /) -> Source:
        """Return the stored source that equals `source`."""
        return await self.catalog.get(source)

    async def list(self) -> builtins.tuple[Source, ...]:
        """Return the sources visible in the catalog."""
        return await self.catalog.list()

    async def read(self, source: Source, /) -> object:
        """Return the native value a source describes."""
        return await self.catalog.read(source)
