"""The one object through which every room of a library asks whether it may.

A room holds an `Authority` and calls, before it touches a value, a callback or a backend:

* ``require(operation, kind, key, metadata)`` for reading, changing, deleting one resource,
* ``require_write`` for storing a whole value that may or may not exist,
* ``require_create`` and ``refuse_existing`` around enrolled creation,
* ``visible`` for one key of a listing, ``selection`` for a listing or a search in SQL,
* ``refuse_reference`` where a mutable reference is asked for,
* ``require_admin`` for trusted administration.

`metadata` is what the store knows of the resource, or a function that looks it up; it is
called only under a scope. Everything else about a scope stays in this package.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from libctx_core.access.audit import AccessEvent, Observer, notify
from libctx_core.access.context import AdminToken, ContextAccess
from libctx_core.access.context import access as default_access
from libctx_core.access.decision import (
    Decision,
    Presence,
    Verdict,
    decide,
    decide_create,
    decide_write,
)
from libctx_core.access.filters import OwnerFilter, filter_of
from libctx_core.access.guards import AccessGuard, Guard
from libctx_core.access.metadata import MetadataState, ResourceMetadata
from libctx_core.access.policy import CreatePolicy, EnforcementMode, UnscopedPolicy
from libctx_core.access.scope import Grant, Scope, confine, grant_of, scope_of
from libctx_core.errors import (
    ContextAccessDenied,
    InvalidMetadataError,
    ResourceExistsError,
    ScopeActiveError,
)
from libctx_core.errors.access import DenialReason, Operation

Lookup: TypeAlias = MetadataState | Callable[[], MetadataState]
Probe: TypeAlias = Callable[[], Presence]

ENUMERATION = "<enumeration>"
REMOTE = "<remote>"


# attribute access on an enumeration is slow on Python 3.11
_UNPROBED: Final = Presence.UNPROBED
_PRESENT: Final = Presence.PRESENT
_PROBE: Final = Verdict.PROBE
_ALLOW: Final = Verdict.ALLOW
_DENY: Final = UnscopedPolicy.DENY


def present() -> Presence:
    """Answer for a resource whose metadata lie on its own payload row."""
    return _PRESENT


class _Legacy:
    """Counts what passed only because it is not enrolled; approximate under threads."""

    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0


class Authority:
    """Decides for one library, under the ambient scope or under one it is bound to.

    Args:
        access: Where scopes come from.
        unscoped_policy: What calls without a scope may do; by default the access's own.
        create_policy: Which ids a CREATE right must cover.
        hide_existence: Under REQUIRE_ENROLLMENT, refuse the creation of a resource that
            exists but is invisible as if the right were missing.
        guard: Deny-only veto of plugins.
        observer: Told of what this authority denies, besides the observer of `access`.
        scope: A handle that is in force for every call, whatever the context says.
    """

    def __init__(
        self,
        access: ContextAccess = default_access,
        *,
        unscoped_policy: UnscopedPolicy | None = None,
        create_policy: CreatePolicy = CreatePolicy.EITHER,
        hide_existence: bool = False,
        guard: AccessGuard | None = None,
        observer: Observer | None = None,
        scope: Scope | None = None,
    ) -> None:
        if scope is not None:
            grant_of(scope)
        self.access = access
        self._policy = access.unscoped_policy if unscoped_policy is None else unscoped_policy
        self._create_policy = create_policy
        self._hide_existence = hide_existence
        self._guard = None if guard is None else Guard(guard)
        self._observer = observer
        self._scope = scope
        self._legacy = _Legacy()

    def bound(self, scope: Scope | None) -> "Authority":
        """Return an authority with the same rules that holds `scope` for every call.

        With None the ambient scope counts again, unless this one is bound already: a
        handle is never traded for a wider one.
        """
        if scope is None:
            return self
        bound = Authority(
            self.access,
            unscoped_policy=self._policy,
            create_policy=self._create_policy,
            hide_existence=self._hide_existence,
            observer=self._observer,
            scope=scope,
        )
        bound._guard = self._guard
        bound._legacy = self._legacy
        return bound

    @property
    def legacy_access_total(self) -> int:
        """Operations allowed only because a resource is not enrolled, bound authorities included."""
        return self._legacy.total

    @property
    def scope(self) -> Scope | None:
        """The scope in force: the handle, else the ambient one."""
        return self._scope if self._scope is not None else self.access.current_scope()

    @property
    def handle(self) -> Scope | None:
        """The scope it is bound to, if any."""
        return self._scope

    @property
    def unscoped_policy(self) -> UnscopedPolicy:
        """What calls without a scope may do here."""
        return self._policy

    # -- one resource ---------------------------------------------------------

    def require(self, operation: Operation, kind: str, key: str, metadata: Lookup, presence: Probe = present) -> None:
        """Check that an operation on one resource is allowed.

        Args:
            operation: What is attempted.
            kind: Kind of the resource.
            key: Its storage key, for the denial's attribute and the audit.
            metadata: Its metadata, or the function that looks them up.
            presence: Says whether the payload exists; called only once permission holds.

        Raises:
            ContextAccessDenied: It is not.
        """
        grant = self._grant(operation, kind, key)
        if grant is None:
            return
        state = self._look_up(metadata)
        self._finish(self._decide(grant, operation, kind, state, presence), grant, kind, key, state)

    def allowed(self, operation: Operation, kind: str, key: str, metadata: Lookup, presence: Probe = present) -> bool:
        """Return whether `require` would pass, without a denial being raised or reported."""
        scope = self.scope
        if scope is None:
            return self._policy is not _DENY
        grant = grant_of(scope)
        if not grant.is_live():
            return False
        state = self._look_up(metadata)
        decision = self._decide(grant, operation, kind, state, presence)
        return decision.verdict is _ALLOW and not self._vetoed(decision, grant, state)

    def require_write(self, kind: str, key: str, metadata: Lookup, presence: Probe = present) -> None:
        """Check that a whole value may be stored: WRITE if it exists, else CREATE.

        Raises:
            ContextAccessDenied: It may not.
        """
        grant = self._grant(Operation.WRITE, kind, key)
        if grant is None:
            return
        state = self._look_up(metadata)
        decision = decide_write(grant, self._policy, state, _UNPROBED, kind)
        if decision.verdict is _PROBE:
            decision = decide_write(grant, self._policy, state, presence(), kind)
        self._finish(decision, grant, kind, key, state)

    def require_create(self, kind: str, key: str, proposed: ResourceMetadata) -> None:
        """Check that a resource may be enrolled under the proposed metadata.

        Raises:
            InvalidMetadataError: The metadata are of another kind.
            ContextAccessDenied: It may not, or the metadata version is not understood.
        """
        if proposed.resource_kind != kind:
            raise InvalidMetadataError("resource_kind", "must be the kind of the resource that is created")
        if proposed.usable:
            grant = self._grant(Operation.CREATE, kind, key)
        else:
            scope = self.scope
            grant = None if scope is None else grant_of(scope)
        decision = decide_create(grant, self._policy, proposed, self._create_policy)
        self._finish(decision, grant, kind, key, proposed)

    def refuse_existing(self, kind: str, key: str, existing: MetadataState) -> None:
        """Raise what creating an existing resource raises, without saying more than the scope may know.

        Raises:
            ResourceExistsError: It exists.
            ContextAccessDenied: Its metadata are malformed, or its existence is hidden.
        """
        if existing is DenialReason.INVALID_METADATA:
            raise self.denial(Operation.CREATE, kind, key, DenialReason.INVALID_METADATA)
        scope = self.scope
        if self._hide_existence and scope is not None:
            grant = grant_of(scope)
            if grant.mode is EnforcementMode.REQUIRE_ENROLLMENT and not (
                isinstance(existing, ResourceMetadata)
                and any(
                    grant.allows(operation, existing.resource_id, existing.boundary_id)
                    for operation in (Operation.ENUMERATE, Operation.READ)
                )
            ):
                raise self.denial(Operation.CREATE, kind, key, DenialReason.MISSING_PERMISSION)
        raise ResourceExistsError(kind, key)

    def refuse_reference(
        self,
        operation: Operation,
        kind: str,
        key: str,
        metadata: Lookup,
        presence: Probe = present,
        *,
        checked: bool = True,
    ) -> None:
        """Refuse a retained mutable reference under a scope; without one it is allowed.

        Args:
            operation: READ for a reading reference, WRITE for one that is mutated.
            kind: Kind of the resource.
            key: Its storage key.
            metadata: Its metadata; the operation itself is checked first.
            presence: Says whether the payload exists.
            checked: False refuses at once, whatever the operation's own answer.

        Raises:
            ContextAccessDenied: A scope is in force.
        """
        if checked or self.scope is None:
            self.require(operation, kind, key, metadata, presence)
        if self.scope is not None:
            raise self.denial(operation, kind, key, DenialReason.UNSAFE_REFERENCE)

    def denial(
        self, operation: Operation, kind: str, key: str, reason: DenialReason = DenialReason.MISSING_PERMISSION
    ) -> ContextAccessDenied:
        """Report a denial and return it, for the caller to raise."""
        scope = self.scope
        self._report("access.denied", None if scope is None else grant_of(scope), operation, kind, key, reason)
        return ContextAccessDenied(operation, kind, key, reason)

    # -- many resources -------------------------------------------------------

    def visible(self, kind: str, key: str, metadata: Lookup, presence: Probe) -> bool:
        """Return whether a key is listed; one with malformed metadata is left out and reported."""
        scope = self.scope
        state = self._look_up(metadata) if scope is not None else None
        if scope is not None and state is DenialReason.INVALID_METADATA:
            self._report("access.excluded", grant_of(scope), Operation.ENUMERATE, kind, key, state)
        return self.allowed(Operation.ENUMERATE, kind, key, state, presence)

    def require_enumeration(self, kind: str) -> None:
        """Check that a scope holds any ENUMERATE selector, before keys are asked for.

        Raises:
            ContextAccessDenied: It holds none.
        """
        grant = self._grant(Operation.ENUMERATE, kind, ENUMERATION)
        if grant is not None and not grant.grants_any(Operation.ENUMERATE):
            raise self.denial(Operation.ENUMERATE, kind, ENUMERATION, DenialReason.MISSING_PERMISSION)

    def refuse_incapable(self, operation: Operation, kind: str, key: str = REMOTE) -> None:
        """Refuse a scoped operation on a backend that cannot hold metadata.

        Raises:
            ContextAccessDenied: A scope is in force.
        """
        if self._grant(operation, kind, key) is not None:
            raise self.denial(operation, kind, key, DenialReason.METADATA_UNAVAILABLE)

    def selection(self, operation: Operation, kind: str) -> OwnerFilter:
        """Return which owner objects the operation may touch, for SQL to apply before ranking.

        Raises:
            ContextAccessDenied: There is no scope and one is needed, or it has ended.
        """
        return filter_of(self._grant(operation, kind, ENUMERATION), operation)

    def confined(self, metadata: MetadataState) -> Scope | None:
        """Return the scope in force, limited to one resource; None without a scope.

        Callbacks that serve a resource run under it: they can reach nothing else.
        """
        scope = self.scope
        return None if scope is None else scope_of(confine(grant_of(scope), metadata))

    @property
    def guard(self) -> Guard | None:
        """The veto of plugins, which a store applies to a selection's enrolled objects; `forget` asks them anew."""
        return self._guard

    # -- administration -------------------------------------------------------

    def require_admin(self, action: str, token: AdminToken | None = None) -> None:
        """Check that trusted administration is allowed here.

        Raises:
            ScopeActiveError: A scope is in force.
            AdminTokenError: Unscoped use is denied and the host's token is not given.
        """
        if self._scope is not None:
            raise ScopeActiveError(action)
        self.access.require_admin(action, token, self._policy)

    # -- internals ------------------------------------------------------------

    def _grant(self, operation: Operation, kind: str, key: str) -> Grant | None:
        """Return the live grant in force, None where a call without a scope is allowed."""
        scope = self.scope
        if scope is None:
            if self._policy is _DENY:
                raise self.denial(operation, kind, key, DenialReason.UNSCOPED_EXECUTION)
            return None
        grant = grant_of(scope)
        if not grant.is_live():
            raise self.denial(operation, kind, key, DenialReason.MISSING_PERMISSION)
        return grant

    def _decide(self, grant: Grant, operation: Operation, kind: str, state: MetadataState, presence: Probe) -> Decision:
        decision = decide(grant, self._policy, state, _UNPROBED, operation, kind)
        if decision.verdict is _PROBE:
            decision = decide(grant, self._policy, state, presence(), operation, kind)
        return decision

    def _look_up(self, metadata: Lookup) -> MetadataState:
        if not callable(metadata):
            return metadata
        try:
            return metadata()
        except ContextAccessDenied as denial:
            return denial.reason
        except InvalidMetadataError:
            return DenialReason.INVALID_METADATA

    def _finish(self, decision: Decision, grant: Grant | None, kind: str, key: str, state: MetadataState) -> None:
        if decision.verdict is not _ALLOW:
            raise self.denial(decision.operation, kind, key, decision.reason or DenialReason.MISSING_PERMISSION)
        if decision.legacy:
            self._legacy.total += 1
        elif grant is not None and self._vetoed(decision, grant, state):
            raise self.denial(decision.operation, kind, key, DenialReason.MISSING_PERMISSION)

    def _vetoed(self, decision: Decision, grant: Grant, state: MetadataState) -> bool:
        return (
            self._guard is not None
            and isinstance(state, ResourceMetadata)
            and self._guard.denies(grant.principal.id, decision.operation, state)
        )

    def _report(
        self,
        name: str,
        grant: Grant | None,
        operation: Operation,
        kind: str,
        key: str,
        reason: DenialReason | None,
    ) -> None:
        chain, shadowed = ((), None) if grant is None else (grant.chain, grant.shadowed)
        event = AccessEvent(name, operation, str(kind), key, reason, chain, shadowed)
        self.access.report(event)
        notify(self._observer, event)
