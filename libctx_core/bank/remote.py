"""The remote memory: what a client of it offers, its results, and its failures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from libctx_core.access import ResourceMetadata
from libctx_core.bank.bridge import Maybe
from libctx_core.errors.bank import MemoryErrorType, MemoryRemoteError, RemoteFailure

T = TypeVar("T")

RESOURCE_METADATA: Final = "resource_metadata"
"""Capability: the backend keeps enrolment metadata and can tell presence without a payload."""
LOCKS: Final = "locks"
"""Capability: the backend knows which pages are locked."""

_BY_STATUS: Final = {
    400: MemoryErrorType.BAD_REQUEST,
    401: MemoryErrorType.AUTH,
    403: MemoryErrorType.AUTH,
    404: MemoryErrorType.NOT_FOUND,
    409: MemoryErrorType.CONFLICT,
}


@dataclass(frozen=True, slots=True)
class Success(Generic[T]):
    """A remote operation's result."""

    value: T


MemoryOperationResult: TypeAlias = Success[T] | RemoteFailure


def error_type_of(status_code: int | None) -> MemoryErrorType:
    """Return the class of failure an HTTP status means by default; None is no answer at all."""
    if status_code is None:
        return MemoryErrorType.TRANSPORT
    known = _BY_STATUS.get(status_code)
    if known is not None:
        return known
    return MemoryErrorType.SERVER if status_code >= 500 else MemoryErrorType.UNKNOWN


def require_value(operation: str, result: MemoryOperationResult[T]) -> T:
    """Return the value of a success.

    Raises:
        MemoryRemoteError: The operation failed.
    """
    if isinstance(result, RemoteFailure):
        raise MemoryRemoteError(operation, result)
    return result.value


def require_success(operation: str, result: MemoryOperationResult[object]) -> None:
    """Check that an operation succeeded.

    Raises:
        MemoryRemoteError: It failed.
    """
    require_value(operation, result)


@runtime_checkable
class ContextResourceMetadataBackend(Protocol):
    """Optional part of a remote memory: enrolment metadata, declared as `RESOURCE_METADATA`."""

    def get_resource_metadata(self, kind: str, key: str, /) -> Maybe[MemoryOperationResult[ResourceMetadata | None]]:
        """Return the enrolment of a key, None for none."""
        ...

    def put_resource_metadata(
        self, kind: str, key: str, metadata: ResourceMetadata, /
    ) -> Maybe[MemoryOperationResult[None]]:
        """Enrol a key."""
        ...

    def delete_resource_metadata(self, kind: str, key: str, /) -> Maybe[MemoryOperationResult[bool]]:
        """Remove an enrolment; whether there was one."""
        ...

    def resource_exists(self, kind: str, key: str, /) -> Maybe[MemoryOperationResult[bool | None]]:
        """Say whether a payload exists, None if that cannot be told, without reading it."""
        ...


@runtime_checkable
class RemoteMemory(Protocol):
    """A memory elsewhere. Each method may be a plain function or a coroutine function.

    Attributes:
        capabilities: Which optional parts it really has; nothing is guessed from its methods.
    """

    capabilities: frozenset[str]

    def list_keys(self, kind: str, /) -> Maybe[MemoryOperationResult[Sequence[str]]]:
        """Return the keys of a kind."""
        ...

    def get_page(self, kind: str, key: str, /) -> Maybe[MemoryOperationResult[bytes]]:
        """Return the document of a page; a missing one is a `notFound` failure."""
        ...

    def put_page(
        self, kind: str, key: str, document: bytes, expected_version: int | None, /
    ) -> Maybe[MemoryOperationResult[int]]:
        """Store a page and return its version; a version other than expected is a `conflict`."""
        ...

    def delete_page(self, kind: str, key: str, /) -> Maybe[MemoryOperationResult[bool]]:
        """Remove a page; whether there was one."""
        ...

    def page_is_locked(self, key: str, /) -> Maybe[MemoryOperationResult[bool]]:
        """Say whether a page is locked; asked only with the `LOCKS` capability."""
        ...
