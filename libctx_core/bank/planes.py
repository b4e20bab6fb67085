"""Planes: where a page lives, seen as live pages. Memory here; stored and remote beside it."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from libctx_core.access import MetadataState, Presence, ResourceMetadata
from libctx_core.bank.cache import Address, CachedPage, PageCache
from libctx_core.bank.codec import Codec
from libctx_core.bank.modes import StorageMode
from libctx_core.errors import ResourceExistsError
from libctx_core.errors.bank import VersionConflictError
from libctx_core.store.payloads import ABSENT, PayloadStore, Recheck, StoredEntry


class Loaded(NamedTuple):
    """A page as a plane holds it.

    Attributes:
        payload: The live page; it is copied before anybody outside the bank sees it.
        version: Its version.
        metadata: Its enrolment in the same moment, or None if the plane did not look again.
        looked: Whether `metadata` is an answer.
    """

    payload: Any
    version: int
    metadata: MetadataState = None
    looked: bool = False


class Head(NamedTuple):
    """What a plane knows of a page without its payload.

    Attributes:
        metadata: Its enrolment.
        presence: Whether it exists; `UNPROBED` where finding out costs a call of its own.
        stamp: Stamp of its document, where documents have one.
    """

    metadata: MetadataState
    presence: Presence
    stamp: object | None = None


class Facts:
    """What decisions and loading need to know of one page, looked up once, when asked for."""

    __slots__ = ("_address", "_plane", "_served", "head")

    def __init__(self, plane: "Plane", address: Address, *, served: bool) -> None:
        self._plane = plane
        self._address = address
        self._served = served
        self.head: Head | None = None

    def metadata(self) -> MetadataState:
        """Return the enrolment."""
        self.head = self._plane.head(*self._address)
        return self.head.metadata

    def presence(self) -> Presence:
        """Return whether the payload exists; one that a retrieval function serves does."""
        if self._served:
            return Presence.PRESENT
        if self.head is None or self.head.presence is Presence.UNPROBED:
            return self._plane.presence(*self._address)
        return self.head.presence


class Plane(Protocol):
    """Pages of every kind in one place."""

    holds_metadata: bool

    def head(self, kind: str, key: str) -> Head:
        """Return what is known of a key without its payload."""
        ...

    def presence(self, kind: str, key: str) -> Presence:
        """Return whether a payload exists, without reading it."""
        ...

    def load(self, codec: Codec[Any], key: str, mode: StorageMode, head: Head | None = None) -> Loaded | None:
        """Return a page, or None; `head` is what was just found out about it."""
        ...

    def store(
        self,
        codec: Codec[Any],
        key: str,
        payload: Any,
        mode: StorageMode,
        *,
        expected_version: int | None,
        recheck: Recheck | None,
    ) -> int:
        """Store a page that nobody else holds; return its version."""
        ...

    def create(
        self, codec: Codec[Any], key: str, payload: Any, metadata: ResourceMetadata | None, mode: StorageMode
    ) -> None:
        """Store a new page and its enrolment, or neither."""
        ...

    def delete(self, kind: str, key: str, *, recheck: Recheck | None, reserve: bool) -> bool:
        """Remove a page and, unless it stays reserved, its enrolment."""
        ...

    def put_metadata(self, key: str, metadata: ResourceMetadata, *, unique: bool) -> None:
        """Enrol a key."""
        ...

    def delete_metadata(self, kind: str, key: str) -> bool:
        """Remove an enrolment."""
        ...

    def entries(self, kind: str) -> Iterable[StoredEntry]:
        """Return the keys of a kind."""
        ...


@dataclass(slots=True)
class _Slot:
    payload: Any = None
    version: int = 0
    metadata: ResourceMetadata | None = None


class MemoryPlane:
    """Pages whose payload and enrolment live in memory only."""

    holds_metadata = True

    def __init__(self) -> None:
        self._slots: dict[Address, _Slot] = {}
        self._lock = threading.Lock()

    def __contains__(self, address: Address) -> bool:
        return address in self._slots

    def addresses(self) -> list[Address]:
        """Return the addresses of pages with a payload."""
        with self._lock:
            return [address for address, slot in self._slots.items() if slot.payload is not None]

    def head(self, kind: str, key: str) -> Head:
        """Return what is known of a key without its payload."""
        slot = self._slots.get((kind, key))
        if slot is None:
            return Head(None, Presence.ABSENT)
        return Head(slot.metadata, Presence.ABSENT if slot.payload is None else Presence.PRESENT)

    def presence(self, kind: str, key: str) -> Presence:
        """Return whether a payload exists."""
        return self.head(kind, key).presence

    def load(self, codec: Codec[Any], key: str, mode: StorageMode, head: Head | None = None) -> Loaded | None:
        """Return a page, or None."""
        with self._lock:
            slot = self._slots.get((codec.kind, key))
            if slot is None or slot.payload is None:
                return None
            return Loaded(slot.payload, slot.version, slot.metadata, looked=True)

    def store(
        self,
        codec: Codec[Any],
        key: str,
        payload: Any,
        mode: StorageMode,
        *,
        expected_version: int | None,
        recheck: Recheck | None,
    ) -> int:
        """Store a page; return its version."""
        with self._lock:
            slot = self._slots.get((codec.kind, key)) or _Slot()
            found = ABSENT if slot.payload is None else slot.version
            if recheck is not None:
                recheck(slot.metadata, slot.payload is not None)
            if expected_version is not None and expected_version != found:
                raise VersionConflictError(expected_version, None if found == ABSENT else found)
            payload.version = slot.version = found + 1
            slot.payload = payload
            self._slots[codec.kind, key] = slot
            return slot.version

    def create(
        self, codec: Codec[Any], key: str, payload: Any, metadata: ResourceMetadata | None, mode: StorageMode
    ) -> None:
        """Store a new page and its enrolment."""
        with self._lock:
            if (codec.kind, key) in self._slots:
                raise ResourceExistsError(codec.kind, key)
            payload.version = 0
            self._slots[codec.kind, key] = _Slot(payload, 0, metadata)

    def delete(self, kind: str, key: str, *, recheck: Recheck | None, reserve: bool) -> bool:
        """Remove a page and, unless it stays reserved, its enrolment."""
        with self._lock:
            slot = self._slots.get((kind, key))
            present = slot is not None and slot.payload is not None
            if recheck is not None:
                recheck(None if slot is None else slot.metadata, present)
            if slot is not None:
                if reserve and slot.metadata is not None:
                    slot.payload = None
                else:
                    del self._slots[kind, key]
            return present

    def put_metadata(self, key: str, metadata: ResourceMetadata, *, unique: bool) -> None:
        """Enrol a key."""
        address = (metadata.resource_kind, key)
        with self._lock:
            if unique and any(
                slot.metadata is not None and slot.metadata.resource_id == metadata.resource_id
                for other, slot in self._slots.items()
                if other != address
            ):
                raise ResourceExistsError(metadata.resource_kind, key)
            self._slots.setdefault(address, _Slot()).metadata = metadata

    def delete_metadata(self, kind: str, key: str) -> bool:
        """Remove an enrolment."""
        with self._lock:
            slot = self._slots.get((kind, key))
            if slot is None or slot.metadata is None:
                return False
            slot.metadata = None
            if slot.payload is None:
                del self._slots[kind, key]
            return True

    def entries(self, kind: str) -> Iterable[StoredEntry]:
        """Return the keys of a kind."""
        with self._lock:
            slots = [(key, slot) for (of, key), slot in self._slots.items() if of == kind]
        return [StoredEntry(key, slot.metadata, slot.payload is not None) for key, slot in slots]


class StoredPlane:
    """Pages in a `PayloadStore`, with those kept in memory that their mode allows.

    A kept page is used only while its stamp is still the stored one, so another process's
    write is seen at once.
    """

    holds_metadata = True

    def __init__(self, store: PayloadStore, cache: PageCache) -> None:
        self._store = store
        self._cache = cache
        self.put_metadata = store.put_metadata
        self.delete_metadata = store.delete_metadata
        self.entries = store.entries

    def head(self, kind: str, key: str) -> Head:
        """Return what is known of a key without its payload."""
        metadata, stamp = self._store.head(kind, key)
        return Head(metadata, Presence.ABSENT if stamp is None else Presence.PRESENT, stamp)

    def presence(self, kind: str, key: str) -> Presence:
        """Return whether a payload exists."""
        return Presence.ABSENT if self._store.stamp(kind, key) is None else Presence.PRESENT

    def load(self, codec: Codec[Any], key: str, mode: StorageMode, head: Head | None = None) -> Loaded | None:
        """Return a page, or None."""
        address = (codec.kind, key)
        kept = self._cache.get(address)
        if kept is not None and mode is not StorageMode.DISK_ONLY:
            stamp = self._store.stamp(*address) if head is None else head.stamp
            if stamp == kept.stamp:
                return Loaded(kept.payload, kept.version)
        page = self._store.read(*address)
        if page is None:
            self._cache.drop(address)
            return None
        payload = codec.decode(page.document)
        if page.version is not None:
            payload.version = page.version
        self._keep(address, payload, payload.version, page.stamp, len(page.document), mode)
        return Loaded(payload, payload.version, page.metadata, looked=True)

    def store(
        self,
        codec: Codec[Any],
        key: str,
        payload: Any,
        mode: StorageMode,
        *,
        expected_version: int | None,
        recheck: Recheck | None,
    ) -> int:
        """Store a page; return its version."""
        size = 0

        def encode(version: int) -> bytes:
            nonlocal size
            payload.version = version
            document = codec.encode(payload)
            size = len(document)
            return document

        version, stamp = self._store.write(codec.kind, key, encode, expected_version=expected_version, recheck=recheck)
        self._keep((codec.kind, key), payload, version, stamp, size, mode)
        return version

    def create(
        self, codec: Codec[Any], key: str, payload: Any, metadata: ResourceMetadata | None, mode: StorageMode
    ) -> None:
        """Store a new page and its enrolment."""
        payload.version = 0
        document = codec.encode(payload)
        stamp = self._store.create(codec.kind, key, metadata, lambda version: document)
        self._keep((codec.kind, key), payload, 0, stamp, len(document), mode)

    def delete(self, kind: str, key: str, *, recheck: Recheck | None, reserve: bool) -> bool:
        """Remove a page and, unless it stays reserved, its enrolment."""
        self._cache.drop((kind, key))
        return self._store.delete(kind, key, recheck=recheck, reserve=reserve)

    def _keep(self, address: Address, payload: Any, version: int, stamp: object, size: int, mode: StorageMode) -> None:
        if mode is StorageMode.DISK_ONLY:
            self._cache.drop(address)
        else:
            self._cache.put(address, CachedPage(payload, version, stamp, size, mode))
