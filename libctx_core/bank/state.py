"""What a bank and all its scoped views share: planes, placements, callbacks, locks."""

import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from libctx_core.bank.bridge import Bridge, Maybe
from libctx_core.bank.cache import Address, CacheConfig, PageCache
from libctx_core.bank.locks import ContextLocks
from libctx_core.bank.modes import StorageMode
from libctx_core.bank.planes import MemoryPlane, StoredPlane
from libctx_core.bank.remote import RemoteMemory
from libctx_core.bank.remote_plane import RemotePlane
from libctx_core.bank.window import ContextWindow
from libctx_core.concurrency import Portal
from libctx_core.store.payloads import PayloadStore

Retrieval: TypeAlias = Callable[[str], Maybe[Any]]
"""Given a key, returns its page, of either colour."""

WriteBack: TypeAlias = Callable[[str, Any], Maybe[bool | None]]
"""Given a key and a page, stores it; False means that it did not."""

LOCKS: Final = 256
"""Pages share so many locks; what two pages wait for each other on is short."""

BANKED_KEY: Final = "__banked_context"
"""Storage name of the active banked context; no page can have it."""


@dataclass(slots=True)
class StorageMetadata:
    """How one page is kept.

    Attributes:
        kind: Kind of the page.
        key: Its key.
        storage_mode: Where it lives.
        last_accessed: Time of the last read or write, milliseconds since the epoch.
        access_count: Number of reads and writes.
        version: Version last seen.
    """

    kind: str
    key: str
    storage_mode: StorageMode
    last_accessed: int = 0
    access_count: int = 0
    version: int = 0

    def touch(self, version: int) -> None:
        """Count one use."""
        self.last_accessed = time.time_ns() // 1_000_000
        self.access_count += 1
        self.version = version


class BankState:
    """The shared state of a bank.

    Args:
        store: Where durable pages live.
        remote: A remote memory, if there is one.
        cache: Limits of pages kept in memory.
        portal: Thread for callbacks and backends that are only asynchronous.
    """

    def __init__(
        self, store: PayloadStore, remote: RemoteMemory | None, cache: CacheConfig | None, portal: Portal | None
    ) -> None:
        self.bridge = Bridge(portal)
        self.cache = PageCache(cache)
        self.memory = MemoryPlane()
        self.stored = StoredPlane(store, self.cache)
        self.remote: RemotePlane | None = None if remote is None else RemotePlane(remote, self.bridge)
        self.remote_everywhere = False
        self.placements: dict[Address, StorageMetadata] = {}
        self.retrievals: dict[Address, Retrieval] = {}
        self.write_backs: dict[Address, WriteBack] = {}
        self.locks = ContextLocks()
        self.banked = ContextWindow()
        self.banked_source: Address | None = None
        self._locks = [threading.RLock() for _ in range(LOCKS)]

    def lock(self, address: Address) -> AbstractContextManager[object]:
        """Return the lock under which a page is authorised and used; never taken for two pages at once."""
        return self._locks[hash(address) % LOCKS]

    def mode_of(self, address: Address) -> StorageMode:
        """Return where a page lives, or would live if it were stored now."""
        if self.remote_everywhere and self.remote is not None:
            return StorageMode.REMOTE
        placement = self.placements.get(address)
        if placement is not None:
            return placement.storage_mode
        return StorageMode.MEMORY_ONLY if address in self.memory else StorageMode.MEMORY_AND_DISK

    def place(self, address: Address, mode: StorageMode, version: int) -> None:
        """Record where a page lives, and one use of it."""
        placement = self.placements.get(address)
        if placement is None:
            placement = self.placements[address] = StorageMetadata(*address, mode)
        placement.storage_mode = mode
        placement.touch(version)

    def forget(self, address: Address) -> None:
        """Drop what is known of a page that is gone."""
        self.placements.pop(address, None)
