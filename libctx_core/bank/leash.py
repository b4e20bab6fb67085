"""The introspection leash: which pages an agent's memory tools may look at and change."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

EVERY_PAGE: Final = "*"

_leash: Final[ContextVar["Leash | None"]] = ContextVar("libctx_leash", default=None)


@dataclass(frozen=True, slots=True)
class Leash:
    """What memory tools may do, on top of what the scope allows.

    Attributes:
        allowed_page_keys: Pages, or ``*`` for every page.
        allow_page_creation: Whether pages that do not exist may be written.
        allow_read: Whether pages may be read.
        allow_write: Whether pages may be changed.
    """

    allowed_page_keys: frozenset[str] = frozenset()
    allow_page_creation: bool = False
    allow_read: bool = True
    allow_write: bool = False

    @classmethod
    def on(
        cls,
        pages: Iterable[str],
        *,
        allow_page_creation: bool = False,
        allow_read: bool = True,
        allow_write: bool = False,
    ) -> "Leash":
        """Return a leash on these pages."""
        return cls(frozenset(pages), allow_page_creation, allow_read, allow_write)

    def intersect(self, inner: "Leash") -> "Leash":
        """Return what both allow."""
        if EVERY_PAGE in self.allowed_page_keys:
            pages = inner.allowed_page_keys
        elif EVERY_PAGE in inner.allowed_page_keys:
            pages = self.allowed_page_keys
        else:
            pages = self.allowed_page_keys & inner.allowed_page_keys
        return Leash(
            pages,
            self.allow_page_creation and inner.allow_page_creation,
            self.allow_read and inner.allow_read,
            self.allow_write and inner.allow_write,
        )

    def covers(self, page: str) -> bool:
        """Return whether the page is on the leash at all."""
        return EVERY_PAGE in self.allowed_page_keys or page in self.allowed_page_keys

    def may_read(self, page: str) -> bool:
        """Return whether the page may be read."""
        return self.allow_read and self.covers(page)

    def may_write(self, page: str, *, exists: bool) -> bool:
        """Return whether the page may be written."""
        return self.allow_write and self.covers(page) and (exists or self.allow_page_creation)


NO_LEASH_DENIES: Final = Leash()
PERMISSIVE: Final = Leash(frozenset({EVERY_PAGE}), allow_page_creation=True, allow_write=True)


def current_leash() -> Leash | None:
    """Return the leash in force, or None."""
    return _leash.get()


@contextmanager
def introspection(leash: Leash) -> Iterator[Leash]:
    """Put a leash in force for a block; inside another one both must allow.

    Leaving it in a foreign context changes nothing there.
    """
    outer = _leash.get()
    effective = leash if outer is None else outer.intersect(leash)
    token = _leash.set(effective)
    try:
        yield effective
    finally:
        if _leash.get() is effective:
            # in another context, restoring what was outside of the block could widen it
            with suppress(ValueError):
                _leash.reset(token)
