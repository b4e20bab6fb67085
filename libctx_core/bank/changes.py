"""Changing a page in place: read, let a function change the copy, store if nobody was faster."""

from collections.abc import Callable
from typing import Any, Final

from libctx_core.access import Operation
from libctx_core.bank.bridge import Maybe
from libctx_core.bank.cache import Address
from libctx_core.bank.codec import WINDOW, Codec
from libctx_core.bank.modes import StorageMode
from libctx_core.bank.pages import Pages, check_key
from libctx_core.bank.planes import Plane
from libctx_core.bank.window import ContextWindow
from libctx_core.errors.bank import PageLockedError, VersionConflictError
from libctx_core.store.payloads import ABSENT

MAX_RETRIES: Final = 10_000
"""Repetitions of a change that others keep overtaking, before it is given up."""


def change(
    pages: Pages, codec: Codec[Any], key: str, block: Callable[[Any], Maybe[Any]], *, blind: bool = False
) -> Any:
    """Run `block` on a copy of a page, store what it made of it, and return a copy of that.

    The block may be called again with newer contents if somebody else stored in the
    meantime, so it should do nothing but change the page. Nothing is locked while it
    runs, and a reference it keeps is worthless afterwards.

    Args:
        pages: The pipeline.
        codec: Kind of the page.
        key: Its key.
        block: Changes the page it is given; of either colour.
        blind: Require WRITE only; the caller must not give the contents away.

    Raises:
        ContextAccessDenied: READ or WRITE is not allowed.
        PageLockedError: A lock hides the page.
        VersionConflictError: Others were faster every time.
    """
    address = (codec.kind, check_key(key))
    seen: int | None = None
    for _ in range(MAX_RETRIES):
        plane, mode, page, seen = _base(pages, codec, address, blind=blind)
        pages.state.bridge.settle(block(page))
        changed = codec.check(page).copy()
        try:
            _store(pages, codec, plane, address, changed, mode, seen)
        except VersionConflictError:
            continue
        return changed.copy()
    raise VersionConflictError(seen, None)


def _base(
    pages: Pages, codec: Codec[Any], address: Address, *, blind: bool
) -> tuple[Plane, StorageMode, Any, int | None]:
    """Return a copy to work on and its version, None where a retrieval function made it."""
    with pages.state.lock(address):
        mode = pages.mode_for(address, skip_remote=False)
        plane = pages.plane_of(mode)
        facts = pages.facts(plane, address)
        pages.authority.require(Operation.WRITE, *address, facts.metadata, facts.presence)
        if not blind:
            pages.authority.require(Operation.READ, *address, facts.metadata, facts.presence)
        if pages.is_locked(mode, address):
            raise PageLockedError
        if address not in pages.state.retrievals:
            loaded = plane.load(codec, address[1], mode, facts.head)
            if loaded is None:
                return plane, mode, codec.empty(), ABSENT
            return plane, mode, loaded.payload.copy(), loaded.version
    operation = Operation.WRITE if blind else Operation.READ
    return plane, mode, pages.retrieve(codec, plane, address, operation), None


def _store(
    pages: Pages,
    codec: Codec[Any],
    plane: Plane,
    address: Address,
    payload: Any,
    mode: StorageMode,
    version: int | None,
) -> None:
    with pages.state.lock(address):
        facts = pages.facts(plane, address)
        pages.authority.require(Operation.WRITE, *address, facts.metadata, facts.presence)
        if address not in pages.state.write_backs:
            pages.store(codec, address, payload, mode, version, pages.recheck(Operation.WRITE, address))
            return
    pages.write_back(plane, address, payload)


def merge_into(pages: Pages, key: str, window: ContextWindow) -> bool:
    """Store what merging the stored window into a copy of `window` gives; return whether it held anything."""
    found = False

    def merge(stored: ContextWindow) -> None:
        nonlocal found
        found = not stored.is_empty()
        merged = window.copy()
        merged.merge(stored)
        stored.lore_book_keys = merged.lore_book_keys
        stored.context_elements = merged.context_elements
        stored.converse_history = merged.converse_history

    change(pages, WINDOW, key, merge)
    return found
