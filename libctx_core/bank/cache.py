"""Pages kept in memory beside their store, and which of them go first."""

import itertools
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from libctx_core.bank.modes import StorageMode

Address: TypeAlias = tuple[str, str]
"""Kind and key of a page."""


class EvictionPolicy(StrEnum):
    """Which cached page goes first."""

    LRU = "LRU"
    LFU = "LFU"
    FIFO = "FIFO"
    MANUAL = "MANUAL"


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """Limits of the pages kept under DISK_WITH_CACHE.

    Attributes:
        max_memory_bytes: Bytes of their documents.
        max_entries: Number of pages.
        policy: Least recently used, least often used, oldest first, or never by itself.
    """

    max_memory_bytes: int = 100 * 1024 * 1024
    max_entries: int = 1000
    policy: EvictionPolicy = EvictionPolicy.LRU


@dataclass(slots=True)
class CachedPage:
    """One page in memory.

    Attributes:
        payload: The live page; whoever hands it out copies it.
        version: Version it was stored as.
        stamp: Stamp of the document it was made from.
        size: Bytes of that document.
        mode: Storage mode of the page.
        inserted: Order of insertion.
        used: Order of the last use.
        uses: Number of uses.
    """

    payload: Any
    version: int
    stamp: object
    size: int
    mode: StorageMode
    inserted: int = field(default=0)
    used: int = field(default=0)
    uses: int = field(default=0)


class PageCache:
    """Pages of a bank's store in memory. Only DISK_WITH_CACHE pages leave by themselves."""

    def __init__(self, config: CacheConfig | None = None) -> None:
        self.config = config or CacheConfig()
        self._pages: dict[Address, CachedPage] = {}
        self._ticks = itertools.count(1)
        self._lock = threading.Lock()

    def get(self, address: Address) -> CachedPage | None:
        """Return a page and count the use, or None."""
        page = self._pages.get(address)
        if page is not None:
            page.used = next(self._ticks)
            page.uses += 1
        return page

    def put(self, address: Address, page: CachedPage) -> None:
        """Keep a page, in place of an older one."""
        with self._lock:
            old = self._pages.get(address)
            tick = next(self._ticks)
            page.inserted = tick if old is None else old.inserted
            page.used = tick
            page.uses = 1 if old is None else old.uses + 1
            self._pages[address] = page

    def drop(self, address: Address) -> bool:
        """Forget a page; return whether it was kept."""
        with self._lock:
            return self._pages.pop(address, None) is not None

    def addresses(self) -> list[Address]:
        """Return what is kept, oldest insertion first."""
        with self._lock:
            return list(self._pages)

    def disposable(self) -> list[Address]:
        """Return the pages that may leave by themselves, the first to go first."""
        with self._lock:
            pages = [(at, page) for at, page in self._pages.items() if page.mode is StorageMode.DISK_WITH_CACHE]
        policy = self.config.policy
        if policy is EvictionPolicy.LRU:
            pages.sort(key=lambda item: item[1].used)
        elif policy is EvictionPolicy.LFU:
            pages.sort(key=lambda item: (item[1].uses, item[1].used))
        else:
            pages.sort(key=lambda item: item[1].inserted)
        return [at for at, _ in pages]

    def usage(self, addresses: Iterable[Address]) -> tuple[int, int]:
        """Return the number and the document bytes of those of `addresses` that are kept."""
        pages = [page for at in addresses if (page := self._pages.get(at)) is not None]
        return len(pages), sum(page.size for page in pages)

    def surplus(self) -> list[Address]:
        """Return what would have to go, in order, if everything may; the caller asks whether it may."""
        if self.config.policy is EvictionPolicy.MANUAL:
            return []
        candidates = self.disposable()
        entries, size = self.usage(candidates)
        if entries <= self.config.max_entries and size <= self.config.max_memory_bytes:
            return []
        return candidates

    def fits(self) -> bool:
        """Return whether the limits are kept."""
        entries, size = self.usage(self.disposable())
        return entries <= self.config.max_entries and size <= self.config.max_memory_bytes
