"""The one pipeline through which every page is read and stored; changes, creation and listing build on it.

Authority comes first: the decision is made before a value, a callback or a backend is
touched. Deciding and acting happen under one lock per page, and stores ask again inside
their transaction. Callbacks run outside of the lock, under a scope that is limited to
their page.
"""

from collections.abc import Callable
from typing import Any

from libctx_core.access import Authority, DenialReason, MetadataState, Operation, Presence
from libctx_core.access.identifiers import check_id
from libctx_core.bank.bridge import Maybe
from libctx_core.bank.cache import Address
from libctx_core.bank.codec import Codec
from libctx_core.bank.eviction import drop_surplus
from libctx_core.bank.modes import StorageMode
from libctx_core.bank.planes import Facts, Head, Loaded, Plane
from libctx_core.bank.state import BANKED_KEY, BankState
from libctx_core.errors import InvalidIdentifierError, MetadataCapabilityError, ScopeActiveError
from libctx_core.errors.bank import RetrievalEmptyError, WriteBackError
from libctx_core.store.payloads import ABSENT, Recheck


class Pages:
    """Pages of every kind under one authority.

    Args:
        state: What all views of a bank share.
        authority: Whose decisions count here.
    """

    def __init__(self, state: BankState, authority: Authority) -> None:
        self.state = state
        self.authority = authority

    # -- facts for decisions ----------------------------------------------------

    def mode_for(self, address: Address, *, skip_remote: bool) -> StorageMode:
        """Return where a page lives; under a scope the caller cannot choose another place.

        Raises:
            ScopeActiveError: `skip_remote` would lead around the metadata of a remote page.
        """
        mode = self.state.mode_of(address)
        if mode is not StorageMode.REMOTE or not skip_remote:
            return mode
        if self.authority.scope is not None:
            raise ScopeActiveError("choosing the plane of a resource")
        return StorageMode.MEMORY_ONLY if address in self.state.memory else StorageMode.MEMORY_AND_DISK

    def plane_of(self, mode: StorageMode) -> Plane:
        """Return the plane of a storage mode.

        Raises:
            MetadataCapabilityError: It is remote and the bank has no remote memory.
        """
        if mode is StorageMode.MEMORY_ONLY:
            return self.state.memory
        if mode is not StorageMode.REMOTE:
            return self.state.stored
        if self.state.remote is None:
            raise MetadataCapabilityError("storage mode REMOTE")
        return self.state.remote

    def facts(self, plane: Plane, address: Address) -> Facts:
        """Return what decisions about a page are made from, looked up when they ask."""
        return Facts(plane, address, served=address in self.state.retrievals)

    def is_locked(self, mode: StorageMode, address: Address) -> bool:
        """Return whether a lock here or at the remote memory hides the page."""
        if self.state.locks.page_is_locked(address[1]):
            return True
        remote = self.state.remote
        return mode is StorageMode.REMOTE and remote is not None and remote.is_locked(address[1])

    # -- reading ----------------------------------------------------------------

    def read(self, codec: Codec[Any], key: str, *, copy: bool = True, skip_remote: bool = False) -> Any:
        """Return a page; an empty one where there is none, or a lock hides it.

        Raises:
            ContextAccessDenied: The scope does not allow it, or `copy` is False under a scope.
        """
        address = (codec.kind, check_key(key))
        with self.state.lock(address):
            mode = self.mode_for(address, skip_remote=skip_remote)
            plane = self.plane_of(mode)
            facts = self.facts(plane, address)
            if copy:
                self.authority.require(Operation.READ, *address, facts.metadata, facts.presence)
            else:
                self.authority.refuse_reference(Operation.READ, *address, facts.metadata, facts.presence)
            if self.is_locked(mode, address):
                return codec.empty()
            if address not in self.state.retrievals:
                loaded = self._load(codec, plane, address, mode, facts.head)
                return loaded.payload.copy() if copy else loaded.payload
        return self.retrieve(codec, plane, address)

    def require(self, operation: Operation, codec: Codec[Any], key: str) -> bool:
        """Check an operation on a page without doing it; return whether the page exists.

        Raises:
            ContextAccessDenied: The scope does not allow it, or presence cannot be told.
        """
        address = (codec.kind, check_key(key))
        plane = self.plane_of(self.mode_for(address, skip_remote=False))
        facts = self.facts(plane, address)
        self.authority.require(operation, *address, facts.metadata, facts.presence)
        return facts.presence() is Presence.PRESENT

    def _load(self, codec: Codec[Any], plane: Plane, address: Address, mode: StorageMode, head: Head | None) -> Loaded:
        """Return what a plane holds, decided again if the plane looked at the metadata again."""
        loaded = plane.load(codec, address[1], mode, head)
        if loaded is None:
            return Loaded(codec.empty(), ABSENT)
        if loaded.looked:
            self.authority.require(Operation.READ, *address, loaded.metadata)
        self.state.place(address, mode, loaded.version)
        drop_surplus(self.state, self.authority, mode)
        return loaded

    def retrieve(self, codec: Codec[Any], plane: Plane, address: Address, operation: Operation = Operation.READ) -> Any:
        """Return a copy of what the retrieval function gives; decided again once it has answered.

        Raises:
            RetrievalEmptyError: It gave None.
        """
        function = self.state.retrievals.get(address)
        value = None if function is None else self._call(plane, address, lambda: function(address[1]))
        self.authority.require(operation, *address, self.facts(plane, address).metadata)
        if value is None:
            raise RetrievalEmptyError
        return codec.check(value).copy()

    def _call(self, plane: Plane, address: Address, function: Callable[[], Maybe[Any]]) -> Any:
        """Run a callback that serves one page, under a scope limited to that page."""
        if self.authority.scope is None:
            return self.state.bridge.settle(function())
        confined = self.authority.confined(plane.head(*address).metadata)
        assert confined is not None
        with self.authority.access.scope(confined):
            return self.state.bridge.settle(function())

    # -- storing ----------------------------------------------------------------

    def write(
        self,
        codec: Codec[Any],
        key: str,
        payload: Any,
        *,
        mode: StorageMode | None = None,
        skip_remote: bool = False,
        expected_version: int | None = None,
        combine: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        """Store a whole page. The caller's object is copied, never kept.

        Args:
            codec: Kind of the page.
            key: Its key.
            payload: The page.
            mode: Where it shall live; under a scope only new pages may choose.
            skip_remote: Leave the remote memory out.
            expected_version: Refuse unless this version is stored.
            combine: Makes the page to store from the stored and the given one.

        Raises:
            ContextAccessDenied: The scope does not allow it.
            VersionConflictError: Another version is stored.
        """
        payload = codec.check(payload).copy()
        address = (codec.kind, check_key(key))
        with self.state.lock(address):
            current = self.mode_for(address, skip_remote=skip_remote)
            plane = self.plane_of(current)
            facts = self.facts(plane, address)
            self.authority.require_write(*address, facts.metadata, facts.presence)
            target = self._settle_mode(codec, address, current, mode)
            self._require_write_at(self.plane_of(target), plane, address)
            if combine is not None:
                loaded = self.plane_of(target).load(codec, key, target)
                payload = payload if loaded is None else combine(loaded.payload, payload)
            if address not in self.state.write_backs:
                self.store(codec, address, payload, target, expected_version, self._write_recheck(address))
                return
        self.write_back(plane, address, payload)

    def _settle_mode(
        self, codec: Codec[Any], address: Address, current: StorageMode, wanted: StorageMode | None
    ) -> StorageMode:
        """Return where to store; a page that changes its plane is moved with its enrolment."""
        if wanted is None or wanted is current:
            return current
        source, target = self.plane_of(current), self.plane_of(wanted)
        known = source.presence(*address) is Presence.PRESENT or source.head(*address).metadata is not None
        if known and self.authority.scope is not None:
            raise ScopeActiveError("changing the storage mode of a resource")
        if known and source is not target:
            self.move(codec, address, source, target, wanted)
        return wanted

    def move(self, codec: Codec[Any], address: Address, source: Plane, target: Plane, mode: StorageMode) -> None:
        """Bring a page and its enrolment to another plane: created there before it is deleted here."""
        metadata = source.head(*address).metadata
        if isinstance(metadata, DenialReason):
            raise self.authority.denial(Operation.WRITE, *address, metadata)
        loaded = source.load(codec, address[1], StorageMode.DISK_ONLY)
        if loaded is not None:
            target.create(codec, address[1], loaded.payload.copy(), metadata, mode)
        elif metadata is not None:
            target.put_metadata(address[1], metadata, unique=False)
        source.delete(*address, recheck=None, reserve=False)
        self.state.place(address, mode, 0)

    def _require_write_at(self, target: Plane, decided: Plane, address: Address) -> None:
        """Decide again where a page goes to another plane than it was decided for."""
        if target is not decided:
            facts = self.facts(target, address)
            self.authority.require_write(*address, facts.metadata, facts.presence)

    def _write_recheck(self, address: Address) -> Recheck | None:
        bound = self.bound_authority()
        if bound is None:
            return None

        def recheck(state: MetadataState, exists: bool) -> None:
            presence = Presence.PRESENT if exists else Presence.ABSENT
            bound.require_write(*address, state, lambda: presence)

        return recheck

    def recheck(self, operation: Operation, address: Address) -> Recheck | None:
        """Return what a store asks inside its transaction; its thread knows no ambient scope."""
        bound = self.bound_authority()
        if bound is None:
            return None

        def recheck(state: MetadataState, exists: bool) -> None:
            bound.require(operation, *address, state)

        return recheck

    def bound_authority(self) -> Authority | None:
        """Return the authority bound to the scope in force, None without a scope."""
        scope = self.authority.scope
        return None if scope is None else self.authority.bound(scope)

    def store(
        self,
        codec: Codec[Any],
        address: Address,
        payload: Any,
        mode: StorageMode,
        expected_version: int | None,
        recheck: Recheck | None,
    ) -> None:
        """Store a page that nobody else holds, and keep the cache within its limits."""
        plane = self.plane_of(mode)
        version = plane.store(codec, address[1], payload, mode, expected_version=expected_version, recheck=recheck)
        self.state.place(address, mode, version)
        drop_surplus(self.state, self.authority, mode)

    def write_back(self, plane: Plane, address: Address, payload: Any) -> None:
        """Hand a page to its write-back function.

        Raises:
            WriteBackError: The function returned False, or is gone.
        """
        function = self.state.write_backs.get(address)
        stored = None if function is None else self._call(plane, address, lambda: function(address[1], payload))
        if function is None or stored is False:
            raise WriteBackError


def check_key(key: object) -> str:
    """Return a storage key.

    Raises:
        InvalidIdentifierError: It is blank, not exactly a string, not storable, or reserved.
    """
    checked = check_id(key, "key")
    if checked == BANKED_KEY:
        raise InvalidIdentifierError("key", "is reserved for the banked context")
    return checked
