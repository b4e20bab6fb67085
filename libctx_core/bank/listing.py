"""Listing keys: what the scope may see, decided from enrolments without reading a page."""

from collections.abc import Iterator

from libctx_core.access import Operation, Presence
from libctx_core.bank.codec import TODO, WINDOW
from libctx_core.bank.pages import Pages
from libctx_core.bank.remote_plane import RemotePlane
from libctx_core.store.payloads import StoredEntry


def list_keys(
    pages: Pages, kind: str, *, stored: bool = True, skip_remote: bool = False, strict: bool = False
) -> list[str]:
    """Return the keys that are visible, in order, without repeats.

    Args:
        pages: The pipeline.
        kind: Kind of the pages.
        stored: List pages that are not in memory, too.
        skip_remote: Leave the remote memory out.
        strict: Refuse a scope that may list nothing, instead of returning nothing.

    Raises:
        ContextAccessDenied: A remote memory is involved, or `strict` is set, and the scope
            holds no ENUMERATE right; or the remote memory cannot keep metadata.
    """
    authority = pages.authority
    authority.selection(Operation.ENUMERATE, kind)
    remote = None if skip_remote else pages.state.remote
    if remote is not None or strict:
        authority.require_enumeration(kind)
    if remote is not None and not remote.holds_metadata:
        authority.refuse_incapable(Operation.ENUMERATE, kind)
    found = dict.fromkeys(_local(pages, kind, stored=stored))
    if remote is not None:
        found.update(dict.fromkeys(_remote(pages, remote, kind)))
    return list(found)


def _local(pages: Pages, kind: str, *, stored: bool) -> Iterator[str]:
    state = pages.state
    bound = {key for of, key in state.retrievals if of == kind}
    in_memory = bound | {key for of, key in state.cache.addresses() if of == kind}
    entries = [
        *state.memory.entries(kind),
        *[entry for entry in state.stored.entries(kind) if stored or entry.key in in_memory],
    ]
    known = {entry.key for entry in entries}
    entries += [StoredEntry(key, None, present=True) for key in sorted(bound - known)]
    for entry in entries:
        if (entry.present or entry.key in bound) and pages.authority.visible(
            kind, entry.key, entry.metadata, _is_present
        ):
            yield entry.key


def _remote(pages: Pages, remote: RemotePlane, kind: str) -> Iterator[str]:
    for entry in remote.entries(kind):
        address = (kind, entry.key)
        facts = pages.facts(remote, address)
        if pages.authority.visible(*address, facts.metadata, facts.presence):
            yield entry.key


def _is_present() -> Presence:
    return Presence.PRESENT


def visible_usage(pages: Pages) -> dict[str, int]:
    """Return number and document bytes of the pages in the cache that the scope may see."""
    cache = pages.state.cache
    visible = {(kind, key) for kind in (WINDOW.kind, TODO.kind) for key in list_keys(pages, kind, skip_remote=True)}
    entries, size = cache.usage([address for address in cache.addresses() if address in visible])
    return {"entries": entries, "bytes": size}
