"""Adapters: what turns a native value into a source and reads it back."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from libctx_core.concurrency import run_sync
from libctx_core.errors import (
    InvalidSourceAdapterError,
    InvalidSourceEntryError,
    InvalidSourceResultError,
    SourceAdapterNotFoundError,
    SourceConflictError,
)
from libctx_core.sources.values import Source, SourceRef

InputT = TypeVar("InputT")
SourceT = TypeVar("SourceT", bound=Source)
ValueT = TypeVar("ValueT")
ValueT_co = TypeVar("ValueT_co", covariant=True)


class SourceAdapter(Protocol[InputT, SourceT, ValueT_co]):
    """Resolves one exact input class and reads one concrete source class."""

    input_class: type[InputT]
    """The exact input class accepted by this adapter."""

    name: str
    """The stable registration name of this adapter."""

    source_class: type[SourceT]
    """The exact source class produced and read by this adapter."""

    async def resolve(self, value: InputT, /) -> SourceT:
        """Return the source that describes a native value, without changing a catalog."""
        ...

    async def read(self, source: SourceT, /) -> ValueT_co:
        """Return the native value that a source describes."""
        ...


AnySourceAdapter: TypeAlias = SourceAdapter[Any, Any, Any]


@runtime_checkable
class DirectSourceAdapter(Protocol):
    """An adapter that can also be called without an event loop."""

    def describe(self, value: Any, /) -> Any:
        """Return the source that describes a native value."""
        ...

    def load(self, source: Any, /) -> Any:
        """Return the native value that a source describes."""
        ...


class BaseSourceAdapter(ABC, Generic[InputT, SourceT, ValueT]):
    """An adapter written synchronously; its asynchronous half is one thread hop.

    Subclasses set `input_class`, `name` and `source_class`, and write `describe` and `load`.
    """

    input_class: type[InputT]
    name: str
    source_class: type[SourceT]

    @abstractmethod
    def describe(self, value: InputT, /) -> SourceT:
        """Return the source that describes a native value, without changing a catalog."""

    @abstractmethod
    def load(self, source: SourceT, /) -> ValueT:
        """Return the native value that a source describes."""

    async def resolve(self, value: InputT, /) -> SourceT:
        """Return the source that describes a native value, without changing a catalog."""
        return await run_sync(self.describe, value)

    async def read(self, source: SourceT, /) -> ValueT:
        """Return the native value that a source describes."""
        return await run_sync(self.load, source)


def check_adapter(adapter: AnySourceAdapter) -> AnySourceAdapter:
    """Return the adapter if a catalog can route to it.

    Raises:
        InvalidSourceAdapterError: A field is missing or of the wrong type.
    """
    kind = type(adapter)
    input_class: object = getattr(adapter, "input_class", None)
    if not isinstance(input_class, type):
        raise InvalidSourceAdapterError(kind, "input_class", "must be a class")
    name: object = getattr(adapter, "name", None)
    if not isinstance(name, str) or not name.strip():
        raise InvalidSourceAdapterError(kind, "name", "must be a non-blank string")
    source_class: object = getattr(adapter, "source_class", None)
    if not (isinstance(source_class, type) and issubclass(source_class, Source)):
        raise InvalidSourceAdapterError(kind, "source_class", "must be a subclass of Source")
    for operation in ("resolve", "read"):
        if not callable(getattr(adapter, operation, None)):
            raise InvalidSourceAdapterError(kind, operation, "must be callable")
    return adapter


class SourceRouter:
    """Finds the adapter of a value by its exact type; subclasses never match.

    Args:
        adapters: The adapters; no two may share an input class or a source class.

    Raises:
        InvalidSourceAdapterError: One of them lacks something.
        SourceConflictError: Two share a route (``input_class`` or ``source_class``).
    """

    def __init__(self, adapters: Iterable[AnySourceAdapter]) -> None:
        self._by_input: dict[type[object], AnySourceAdapter] = {}
        self._by_source: dict[type[object], AnySourceAdapter] = {}
        for adapter in adapters:
            check_adapter(adapter)
            if adapter.input_class in self._by_input:
                raise SourceConflictError("input_class", adapter.input_class)
            if adapter.source_class in self._by_source:
                raise SourceConflictError("source_class", adapter.source_class)
            self._by_input[adapter.input_class] = adapter
            self._by_source[adapter.source_class] = adapter

    @property
    def adapters(self) -> tuple[AnySourceAdapter, ...]:
        """The adapters, in the order they were given."""
        return tuple(self._by_input.values())

    def for_input(self, value: object) -> AnySourceAdapter:
        """Return the adapter that resolves values of exactly this type.

        Raises:
            SourceAdapterNotFoundError: There is none.
        """
        try:
            return self._by_input[type(value)]
        except KeyError:
            raise SourceAdapterNotFoundError("input", type(value)) from None

    def for_source(self, source: object) -> AnySourceAdapter:
        """Return the adapter that reads sources of exactly this type.

        Raises:
            InvalidSourceEntryError: It is not a source.
            SourceAdapterNotFoundError: No adapter reads its class.
        """
        if not isinstance(source, Source):
            raise InvalidSourceEntryError(type(source))
        try:
            return self._by_source[type(source)]
        except KeyError:
            raise SourceAdapterNotFoundError("source", type(source)) from None

    def as_ref(self, source: object) -> SourceRef:
        """Return the reference of a source: its adapter's name and its own."""
        adapter = self.for_source(source)
        assert isinstance(source, Source)
        return SourceRef(source_type=adapter.name, source_id=source.name)

    def accept(self, adapter: AnySourceAdapter, source: object) -> Source:
        """Return what an adapter resolved, if it has the class it declared and a valid reference.

        Raises:
            InvalidSourceResultError: It is of another class.
        """
        if type(source) is not adapter.source_class:
            raise InvalidSourceResultError(adapter.name, "resolve", adapter.source_class, type(source))
        self.as_ref(source)
        assert isinstance(source, Source)
        return source
