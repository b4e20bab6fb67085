"""Locks that hide pages and lorebook entries from reading and selection."""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

Passthrough: TypeAlias = Callable[[], bool]

_log = logging.getLogger("libctx.bank")


@dataclass(frozen=True, slots=True)
class Lock:
    """One lock.

    Attributes:
        name: The locked page or lorebook key; also the lock's own name among its sort.
        pages: Further pages of a page lock; the pages a key lock holds on, empty for all.
        is_page: Whether pages are locked, or a lorebook key.
        locked: Its state.
        passthrough: Says whether the caller may pass anyhow; if it fails, the state counts.
    """

    name: str
    pages: frozenset[str]
    is_page: bool
    locked: bool = True
    passthrough: Passthrough | None = None

    def holds(self) -> bool:
        """Return whether it keeps the caller out now."""
        if not self.locked:
            return False
        if self.passthrough is None:
            return True
        try:
            return self.passthrough() is not True
        except Exception:  # noqa: BLE001 - a failing passthrough lets nobody pass
            _log.exception("a lock's passthrough failed; the lock holds")
            return True


class ContextLocks:
    """The locks of one bank. Names are compared exactly, page and key locks are kept apart."""

    def __init__(self) -> None:
        self._locks: dict[tuple[bool, str], Lock] = {}
        self._guard = threading.Lock()

    def add(
        self,
        name: str,
        pages: str | Iterable[str] = (),
        *,
        is_page: bool = False,
        locked: bool = True,
        passthrough: Passthrough | None = None,
    ) -> None:
        """Add a lock, or replace the one of its name.

        Args:
            name: The page or lorebook key.
            pages: Pages, as an iterable or separated by commas.
            is_page: Lock the page `name` and `pages`; otherwise the lorebook key `name`
                on `pages`, or on every page.
            locked: Its first state.
            passthrough: Called without arguments; True lets the caller pass.
        """
        listed = pages.split(",") if isinstance(pages, str) else pages
        names = frozenset(page.strip() for page in listed if page.strip())
        with self._guard:
            self._locks = {**self._locks, (is_page, name): Lock(name, names, is_page, locked, passthrough)}

    def remove(self, name: str, *, is_page: bool = False) -> bool:
        """Remove a lock; return whether it was there."""
        with self._guard:
            kept = {key: lock for key, lock in self._locks.items() if key != (is_page, name)}
            found = len(kept) != len(self._locks)
            self._locks = kept
        return found

    def set_state(self, name: str, *, locked: bool, is_page: bool = False) -> bool:
        """Lock or unlock; return whether there is such a lock."""
        with self._guard:
            lock = self._locks.get((is_page, name))
            if lock is None:
                return False
            self._locks = {**self._locks, (is_page, name): replace(lock, locked=locked)}
        return True

    def names(self, *, is_page: bool = False) -> list[str]:
        """Return the names of page or key locks."""
        return [lock.name for lock in self._locks.values() if lock.is_page is is_page]

    def page_is_locked(self, page: str) -> bool:
        """Return whether any page lock that names the page holds."""
        return bool(self._locks) and any(
            lock.is_page and (page == lock.name or page in lock.pages) and lock.holds() for lock in self._locks.values()
        )

    def key_is_locked(self, page: str, key: str) -> bool:
        """Return whether a lorebook key is locked on a page."""
        lock = self._locks.get((False, key))
        return lock is not None and (not lock.pages or page in lock.pages) and lock.holds()
