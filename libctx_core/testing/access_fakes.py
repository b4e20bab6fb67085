"""Stand-ins for stores and remote memories that count what is asked of them and can be made to fail."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from libctx_core.access import MetadataState, ResourceMetadata
from libctx_core.bank.codec import document_version
from libctx_core.bank.remote import LOCKS, RESOURCE_METADATA, MemoryOperationResult, Success
from libctx_core.errors.bank import MemoryErrorType, RemoteFailure
from libctx_core.store.payloads import ABSENT, Encode, PayloadStore, Recheck, StoredEntry, StoredHead, StoredPage

Address = tuple[str, str]
T = TypeVar("T")

VALUE_CALLS = ("read", "write", "create", "delete")
"""What touches a payload; a denied operation must cause none of it."""


class SpyStore:
    """A `PayloadStore` that counts the calls it passes on.

    Args:
        inner: The store behind it.

    Attributes:
        calls: Calls by method name.
        before: Called with a method name before it is passed on; may raise.
    """

    def __init__(self, inner: PayloadStore) -> None:
        self._inner = inner
        self.calls: Counter[str] = Counter()
        self.before: Callable[[str], None] = _nothing

    def values_touched(self) -> int:
        """Return how often a payload was touched."""
        return sum(self.calls[name] for name in VALUE_CALLS)

    def _note(self, name: str) -> None:
        self.calls[name] += 1
        self.before(name)

    def head(self, kind: str, key: str, /) -> StoredHead:
        """Count and pass on."""
        self._note("head")
        return self._inner.head(kind, key)

    def stamp(self, kind: str, key: str, /) -> object | None:
        """Count and pass on."""
        self._note("stamp")
        return self._inner.stamp(kind, key)

    def read(self, kind: str, key: str, /) -> StoredPage | None:
        """Count and pass on."""
        self._note("read")
        return self._inner.read(kind, key)

    def write(
        self,
        kind: str,
        key: str,
        encode: Encode,
        *,
        expected_version: int | None = None,
        recheck: Recheck | None = None,
    ) -> tuple[int, object]:
        """Count and pass on."""
        self._note("write")
        return self._inner.write(kind, key, encode, expected_version=expected_version, recheck=recheck)

    def create(self, kind: str, key: str, metadata: ResourceMetadata | None, encode: Encode) -> object:
        """Count and pass on."""
        self._note("create")
        return self._inner.create(kind, key, metadata, encode)

    def delete(self, kind: str, key: str, *, recheck: Recheck | None = None, reserve: bool = False) -> bool:
        """Count and pass on."""
        self._note("delete")
        return self._inner.delete(kind, key, recheck=recheck, reserve=reserve)

    def put_metadata(self, key: str, metadata: ResourceMetadata, *, unique: bool = False) -> None:
        """Count and pass on."""
        self._note("put_metadata")
        self._inner.put_metadata(key, metadata, unique=unique)

    def delete_metadata(self, kind: str, key: str) -> bool:
        """Count and pass on."""
        self._note("delete_metadata")
        return self._inner.delete_metadata(kind, key)

    def entries(self, kind: str, /) -> Iterable[StoredEntry]:
        """Count and pass on."""
        self._note("entries")
        return self._inner.entries(kind)


def _nothing(name: str) -> None:
    """Take no notice of a call."""


class FakeRemoteMemory:
    """A remote memory in this process, with fault injection.

    Args:
        capabilities: What it declares; leave `RESOURCE_METADATA` out for an older backend.

    Attributes:
        pages: Documents by kind and key.
        metadata: Enrolments by kind and key.
        locked: Keys of locked pages.
        calls: Calls by method name.
        failures: What a method answers, or raises, instead of working, by its name.
        presence_unknown: Answer None when asked whether a payload exists.
    """

    def __init__(self, capabilities: Iterable[str] = (RESOURCE_METADATA, LOCKS)) -> None:
        self.capabilities = frozenset(capabilities)
        self.pages: dict[Address, bytes] = {}
        self.metadata: dict[Address, ResourceMetadata] = {}
        self.locked: set[str] = set()
        self.calls: Counter[str] = Counter()
        self.failures: dict[str, RemoteFailure | BaseException] = {}
        self.presence_unknown = False

    def _answer(self, name: str, work: Callable[[], MemoryOperationResult[T]]) -> MemoryOperationResult[T]:
        self.calls[name] += 1
        failure = self.failures.get(name)
        if isinstance(failure, BaseException):
            raise failure
        return work() if failure is None else failure

    def list_keys(self, kind: str, /) -> MemoryOperationResult[Sequence[str]]:
        """Return the keys of a kind."""
        return self._answer("list_keys", lambda: Success([key for of, key in self.pages if of == kind]))

    def get_page(self, kind: str, key: str, /) -> MemoryOperationResult[bytes]:
        """Return a document."""
        return self._answer("get_page", lambda: _found(self.pages.get((kind, key))))

    def put_page(
        self, kind: str, key: str, document: bytes, expected_version: int | None, /
    ) -> MemoryOperationResult[int]:
        """Store a document, version 0 or one above the stored one."""
        return self._answer("put_page", lambda: self._put(kind, key, document, expected_version))

    def _put(self, kind: str, key: str, document: bytes, expected: int | None) -> MemoryOperationResult[int]:
        stored = self.pages.get((kind, key))
        version = ABSENT if stored is None else document_version(stored)
        if expected is not None and expected != version:
            return RemoteFailure(409, MemoryErrorType.CONFLICT)
        given = b'"version":%d' % document_version(document)
        self.pages[kind, key] = document.replace(given, b'"version":%d' % (version + 1))
        return Success(version + 1)

    def delete_page(self, kind: str, key: str, /) -> MemoryOperationResult[bool]:
        """Remove a document."""
        return self._answer("delete_page", lambda: _removed(self.pages, (kind, key)))

    def page_is_locked(self, key: str, /) -> MemoryOperationResult[bool]:
        """Say whether a page is locked."""
        return self._answer("page_is_locked", lambda: Success(key in self.locked))

    def get_resource_metadata(self, kind: str, key: str, /) -> MemoryOperationResult[ResourceMetadata | None]:
        """Return an enrolment."""
        return self._answer("get_resource_metadata", lambda: Success(self.metadata.get((kind, key))))

    def put_resource_metadata(self, kind: str, key: str, metadata: ResourceMetadata, /) -> MemoryOperationResult[None]:
        """Enrol a key."""
        return self._answer("put_resource_metadata", lambda: self._enrol(kind, key, metadata))

    def _enrol(self, kind: str, key: str, metadata: ResourceMetadata) -> MemoryOperationResult[None]:
        self.metadata[kind, key] = metadata
        return Success(None)

    def delete_resource_metadata(self, kind: str, key: str, /) -> MemoryOperationResult[bool]:
        """Remove an enrolment."""
        return self._answer("delete_resource_metadata", lambda: _removed(self.metadata, (kind, key)))

    def resource_exists(self, kind: str, key: str, /) -> MemoryOperationResult[bool | None]:
        """Say whether a payload exists, None where that is set to be unknown."""
        present: bool | None = None if self.presence_unknown else (kind, key) in self.pages
        return self._answer("resource_exists", lambda: Success(present))


class AsyncRemoteMemory:
    """The same remote memory with coroutine functions, each of which yields to the loop once.

    Args:
        inner: The memory behind it.
        pause: Awaited before each call.
    """

    def __init__(self, inner: FakeRemoteMemory, pause: Callable[[], Any]) -> None:
        self.inner = inner
        self.capabilities = inner.capabilities
        self._pause = pause

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.inner, name)

        async def call(*arguments: object) -> Any:
            await self._pause()
            return method(*arguments)

        return call


def _found(document: bytes | None) -> MemoryOperationResult[bytes]:
    return RemoteFailure(404, MemoryErrorType.NOT_FOUND) if document is None else Success(document)


def _removed(where: dict[Address, Any], address: Address) -> MemoryOperationResult[bool]:
    if where.pop(address, None) is None:
        return RemoteFailure(404, MemoryErrorType.NOT_FOUND)
    return Success(value=True)


def metadata_of(store: PayloadStore, kind: str, key: str) -> MetadataState:
    """Return the enrolment a store holds for a key."""
    return store.head(kind, key).metadata
