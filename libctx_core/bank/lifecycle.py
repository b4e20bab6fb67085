"""Enrolled creation, deletion and eviction of pages."""

from typing import Any

from libctx_core.access import DenialReason, Operation, Presence, ResourceMetadata
from libctx_core.bank.cache import Address
from libctx_core.bank.codec import Codec
from libctx_core.bank.eviction import drop_if_allowed, drop_surplus
from libctx_core.bank.modes import StorageMode
from libctx_core.bank.pages import Pages, check_key
from libctx_core.bank.planes import Plane
from libctx_core.errors import MetadataCapabilityError, ResourceExistsError


def create(
    pages: Pages,
    codec: Codec[Any],
    key: str,
    metadata: ResourceMetadata,
    payload: Any,
    mode: StorageMode,
    *,
    skip_remote: bool = False,
) -> None:
    """Store a new page and its enrolment as one.

    Raises:
        InvalidMetadataError: The metadata are of another kind.
        ContextAccessDenied: CREATE is not allowed, the metadata version is unknown, or the
            remote memory cannot keep metadata.
        ResourceExistsError: There is a page, or an enrolment, of this key.
    """
    payload = codec.check(payload).copy()
    authority, state = pages.authority, pages.state
    if metadata.resource_kind == codec.kind:
        check_key(key)
    authority.require_create(codec.kind, key, metadata)
    address = (codec.kind, key)
    with state.lock(address):
        if skip_remote:
            pages.mode_for(address, skip_remote=True)
        elif state.remote_everywhere and state.remote is not None:
            mode = StorageMode.REMOTE
        plane = pages.plane_of(mode)
        _refuse_existing(pages, plane, address)
        try:
            plane.create(codec, key, payload, metadata, mode)
        except ResourceExistsError:
            authority.refuse_existing(*address, plane.head(*address).metadata)
        state.place(address, mode, 0)
        drop_surplus(state, authority, mode)


def _refuse_existing(pages: Pages, plane: Plane, address: Address) -> None:
    authority = pages.authority
    if not plane.holds_metadata:
        authority.refuse_incapable(Operation.CREATE, *address)
        raise MetadataCapabilityError("creating an enrolled resource")
    local: list[Plane] = [pages.state.memory, pages.state.stored]
    for candidate in local if plane in local else [plane]:
        facts = pages.facts(candidate, address)
        known = facts.metadata()
        if known is DenialReason.METADATA_UNAVAILABLE:
            raise authority.denial(Operation.CREATE, *address, known)
        if known is not None:
            authority.refuse_existing(*address, known)
        presence = facts.presence()
        if presence is Presence.UNKNOWN:
            raise authority.denial(Operation.CREATE, *address, DenialReason.METADATA_UNAVAILABLE)
        if presence is Presence.PRESENT:
            authority.refuse_existing(*address, None)


def delete(pages: Pages, codec: Codec[Any], key: str, *, skip_remote: bool = False, reserve: bool = False) -> bool:
    """Delete a page and its enrolment; return whether there was a page.

    Args:
        pages: The pipeline.
        codec: Kind of the page.
        key: Its key.
        skip_remote: Leave the remote memory out.
        reserve: Keep the enrolment, so that the key does not become shared.

    Raises:
        ContextAccessDenied: DELETE is not allowed.
    """
    address = (codec.kind, check_key(key))
    with pages.state.lock(address):
        plane = pages.plane_of(pages.mode_for(address, skip_remote=skip_remote))
        _require_delete(pages, plane, address)
        found = plane.delete(*address, recheck=pages.recheck(Operation.DELETE, address), reserve=reserve)
        pages.state.forget(address)
        return found


def evict(pages: Pages, kind: str, key: str) -> bool:
    """Drop a page from memory; one that lives nowhere else is gone. Return whether it was there.

    Raises:
        ContextAccessDenied: DELETE is not allowed.
    """
    address = (kind, check_key(key))
    with pages.state.lock(address):
        plane = pages.plane_of(pages.mode_for(address, skip_remote=False))
        _require_delete(pages, plane, address)
        if plane is pages.state.memory:
            pages.state.forget(address)
            return plane.delete(*address, recheck=None, reserve=False)
        return pages.state.cache.drop(address)


def _require_delete(pages: Pages, plane: Plane, address: Address) -> None:
    facts = pages.facts(plane, address)
    pages.authority.require(Operation.DELETE, *address, facts.metadata, facts.presence)


def evict_all(pages: Pages) -> int:
    """Drop every page from memory, stopping at the first that may not be; return how many went."""
    addresses = [*pages.state.cache.addresses(), *pages.state.memory.addresses()]
    return sum(evict(pages, *address) for address in addresses)


def clear_cache(pages: Pages) -> int:
    """Drop the DISK_WITH_CACHE pages that may be dropped, keep the others; return how many went."""
    return sum(drop_if_allowed(pages.state, pages.authority, address) for address in pages.state.cache.disposable())
