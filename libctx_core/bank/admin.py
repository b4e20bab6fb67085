"""Trusted administration of a bank: everything that could lead around a scope."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from libctx_core.access import AdminToken, MetadataState, ResourceKind, ResourceMetadata
from libctx_core.bank.bridge import twin
from libctx_core.bank.cache import Address, CacheConfig
from libctx_core.bank.codec import TODO, WINDOW
from libctx_core.bank.locks import Passthrough
from libctx_core.bank.modes import StorageMode
from libctx_core.bank.pages import Pages, check_key
from libctx_core.bank.planes import Plane
from libctx_core.bank.remote import RemoteMemory
from libctx_core.bank.remote_plane import RemotePlane
from libctx_core.bank.state import BANKED_KEY, Retrieval, StorageMetadata, WriteBack
from libctx_core.errors import InvalidMetadataError, MetadataCapabilityError

_CODECS = {codec.kind: codec for codec in (WINDOW, TODO)}
_BANKED = str(ResourceKind.BANKED_CONTEXT)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a check of the stores found.

    Attributes:
        problem: ``orphan`` (enrolled without payload), ``invalid`` (malformed enrolment),
            ``unenrolled``, or ``duplicate`` (a resource id that several keys have).
        kind: Kind of the page.
        key: Its key.
    """

    problem: str
    kind: str
    key: str


T = TypeVar("T")


def _set(functions: dict[Address, T], address: Address, function: T | None) -> None:
    if function is None:
        functions.pop(address, None)
    else:
        functions[address] = function


class BankAdmin:
    """Administration of one bank; each call checks that no scope is in force.

    Args:
        pages: The bank's pipeline.
        token: The authority's token, needed where unscoped use is denied.
    """

    def __init__(self, pages: Pages, token: AdminToken | None) -> None:
        self._pages = pages
        self._token = token

    def _check(self, action: str) -> None:
        self._pages.authority.require_admin(action, self._token)

    def _plane(self, kind: str, key: str) -> Plane:
        if kind == _BANKED:
            return self._pages.state.stored
        return self._pages.plane_of(self._pages.mode_for((kind, key), skip_remote=False))

    # -- enrolment ----------------------------------------------------------------

    def register_resource_metadata(self, key: str, metadata: ResourceMetadata, *, unique: bool = False) -> None:
        """Enrol a key, whether or not it has a payload, replacing what is there.

        Args:
            key: The storage key; ignored for the banked context.
            metadata: Its enrolment.
            unique: Refuse a resource id that another key of the same plane has.

        Raises:
            ScopeActiveError: A scope is in force.
            InvalidMetadataError: The schema version is unknown, or the kind is.
            MetadataCapabilityError: The page is remote and the remote memory keeps no metadata.
            ResourceExistsError: The resource id is taken.
        """
        self._check("registering resource metadata")
        if not metadata.usable or metadata.resource_kind not in self._pages.authority.access.kinds:
            raise InvalidMetadataError("metadata", "must have schema version 1 and a known kind")
        kind, key = metadata.resource_kind, self._key(metadata.resource_kind, key)
        plane = self._plane(kind, key)
        if not plane.holds_metadata:
            raise MetadataCapabilityError("registering resource metadata")
        with self._pages.state.lock((kind, key)):
            plane.put_metadata(key, metadata, unique=unique)

    def delete_resource_metadata(self, key: str, kind: str) -> bool:
        """Remove an enrolment, which makes the resource legacy-shared; return whether there was one.

        Raises:
            ScopeActiveError: A scope is in force.
            MetadataCapabilityError: The page is remote and the remote memory keeps no metadata.
        """
        self._check("deleting resource metadata")
        key = self._key(kind, key)
        plane = self._plane(kind, key)
        if not plane.holds_metadata:
            raise MetadataCapabilityError("deleting resource metadata")
        with self._pages.state.lock((kind, key)):
            return plane.delete_metadata(kind, key)

    def get_resource_metadata(self, key: str, kind: str) -> MetadataState:
        """Return an enrolment without its payload, or why it cannot be read.

        Raises:
            ScopeActiveError: A scope is in force.
        """
        self._check("reading resource metadata")
        key = self._key(kind, key)
        return self._plane(kind, key).head(kind, key).metadata

    @staticmethod
    def _key(kind: str, key: str) -> str:
        return BANKED_KEY if kind == _BANKED else check_key(key)

    def doctor(self) -> list[Finding]:
        """Return what needs a person: orphans, malformed and missing enrolments, shared resource ids."""
        self._check("checking the stores")
        findings: list[Finding] = []
        owners: dict[str, list[tuple[str, str]]] = {}
        for kind in _CODECS:
            for plane in (self._pages.state.memory, self._pages.state.stored):
                for entry in plane.entries(kind):
                    if isinstance(entry.metadata, ResourceMetadata):
                        owners.setdefault(entry.metadata.resource_id, []).append((kind, entry.key))
                        problem = None if entry.present else "orphan"
                    else:
                        problem = "unenrolled" if entry.metadata is None else "invalid"
                    if problem is not None:
                        findings.append(Finding(problem, kind, entry.key))
        findings += [
            Finding("duplicate", *address)
            for addresses in owners.values()
            if len(addresses) > 1
            for address in addresses
        ]
        return findings

    # -- callbacks and planes -----------------------------------------------------

    def set_retrieval(self, key: str, function: Retrieval | None, *, kind: str = WINDOW.kind) -> None:
        """Let a function serve a page in place of the store; None removes it."""
        self._check("setting a retrieval function")
        _set(self._pages.state.retrievals, (kind, check_key(key)), function)

    def set_write_back(self, key: str, function: WriteBack | None, *, kind: str = WINDOW.kind) -> None:
        """Let a function store a page in place of the store; None removes it."""
        self._check("setting a write-back function")
        _set(self._pages.state.write_backs, (kind, check_key(key)), function)

    def set_remote(self, remote: RemoteMemory | None, *, everywhere: bool = False) -> None:
        """Connect a remote memory, or disconnect it with None.

        Args:
            remote: The remote memory.
            everywhere: Let every page live there, whatever its storage mode.
        """
        self._check("connecting a remote memory")
        state = self._pages.state
        state.remote = None if remote is None else RemotePlane(remote, state.bridge)
        state.remote_everywhere = everywhere

    def set_storage_mode(self, key: str, mode: StorageMode, *, kind: str = WINDOW.kind) -> None:
        """Let a page live elsewhere; its payload and enrolment move along."""
        self._check("setting a storage mode")
        address = (kind, check_key(key))
        with self._pages.state.lock(address):
            source = self._pages.plane_of(self._pages.state.mode_of(address))
            target = self._pages.plane_of(mode)
            if source is not target:
                self._pages.move(_CODECS[kind], address, source, target, mode)
            self._pages.state.place(address, mode, 0)
            if mode is StorageMode.DISK_ONLY:
                self._pages.state.cache.drop(address)

    def configure_cache(self, config: CacheConfig) -> None:
        """Set the limits of pages kept in memory; they hold from the next page on."""
        self._check("configuring the cache")
        self._pages.state.cache.config = config

    def storage_metadata(self) -> list[StorageMetadata]:
        """Return how each page used so far is kept."""
        self._check("reading storage metadata")
        return list(self._pages.state.placements.values())

    # -- locks ----------------------------------------------------------------------

    def add_lock(
        self,
        name: str,
        pages: str | Iterable[str] = (),
        *,
        is_page: bool = False,
        locked: bool = True,
        passthrough: Passthrough | None = None,
    ) -> None:
        """Add a lock; see `ContextLocks.add`."""
        self._check("adding a lock")
        self._pages.state.locks.add(name, pages, is_page=is_page, locked=locked, passthrough=passthrough)

    def remove_lock(self, name: str, *, is_page: bool = False) -> bool:
        """Remove a lock; return whether it was there."""
        self._check("removing a lock")
        return self._pages.state.locks.remove(name, is_page=is_page)

    def set_lock_state(self, name: str, *, locked: bool, is_page: bool = False) -> bool:
        """Lock or unlock; return whether there is such a lock."""
        self._check("changing a lock")
        return self._pages.state.locks.set_state(name, locked=locked, is_page=is_page)

    def lock_names(self, *, is_page: bool = False) -> list[str]:
        """Return the names of page or key locks."""
        self._check("listing locks")
        return self._pages.state.locks.names(is_page=is_page)

    aregister_resource_metadata = twin(register_resource_metadata)
    adelete_resource_metadata = twin(delete_resource_metadata)
    aget_resource_metadata = twin(get_resource_metadata)
    aset_storage_mode = twin(set_storage_mode)
    adoctor = twin(doctor)
