"""Issuing scopes and holding them for a stretch of execution."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextvars import ContextVar, Token
from datetime import datetime
from typing import Final, ParamSpec, TypeVar
from weakref import WeakSet

from libctx_core.access.audit import AccessEvent, Listener, Observer, notify
from libctx_core.access.blocks import ChildBlock, ScopeBlock
from libctx_core.access.containment import RESOLVER_TIMEOUT, Containment
from libctx_core.access.kinds import ResourceKind, ResourceKinds
from libctx_core.access.life import Clock, Life, system_clock
from libctx_core.access.policy import EnforcementMode, UnscopedPolicy
from libctx_core.access.propagation import ContextAsyncIterator, ContextIterator, ScopedExecutor, carry
from libctx_core.access.rights import Rights
from libctx_core.access.scope import Grant, Scope, grant_of, scope_of
from libctx_core.access.selectors import Principal
from libctx_core.errors import (
    AdminTokenError,
    ContextAccessDenied,
    InvalidInputError,
    ScopeActiveError,
    ScopeLeakError,
)
from libctx_core.errors.access import Operation

P = ParamSpec("P")
T = TypeVar("T")

EXECUTION: Final = "<execution>"


class AdminToken:
    """Proof of being the host that built an authority; compared by identity."""

    __slots__ = ()


class ContextAccess:
    """Issues scopes and knows which one is in force in the running context.

    One mechanism, a context variable, serves synchronous and asynchronous code: tasks,
    `asyncio.to_thread` and callbacks inherit the scope, bare threads and executors do
    not (see `propagate` and `ScopedExecutor`). Make few of these: each owns a variable.

    Args:
        unscoped_policy: What calls without a scope may do; stores may be stricter.
        on_event: Observer of denials and irregularities; no protected value in them.
        debug: Raise `ScopeLeakError` where a scope is exited out of order, instead of
            only reporting it.
        clock: Monotonic and wall time, for scopes that expire.
    """

    def __init__(
        self,
        *,
        unscoped_policy: UnscopedPolicy = UnscopedPolicy.LEGACY_ALLOWED,
        on_event: Observer | None = None,
        debug: bool = False,
        clock: Clock = system_clock,
    ) -> None:
        self._current: ContextVar[Scope | None] = ContextVar("libctx_scope", default=None)
        self._unscoped_policy = unscoped_policy
        self._observer = on_event
        self._listeners: WeakSet[Listener] = WeakSet()
        self._debug = debug
        self._clock = clock
        self._token = AdminToken()
        self._token_taken = False
        self.kinds = ResourceKinds()

    @property
    def unscoped_policy(self) -> UnscopedPolicy:
        """What calls without a scope may do."""
        return self._unscoped_policy

    # -- issuing --------------------------------------------------------------

    def issue_root_scope(
        self,
        principal: Principal,
        rights: Rights,
        mode: EnforcementMode = EnforcementMode.LEGACY_COMPATIBLE,
        *,
        expires_at: datetime | None = None,
        bound_to_context: bool = False,
    ) -> Scope:
        """Make a scope, in trusted host code.

        Args:
            principal: Whose authority it is.
            rights: What it grants; an immutable value, so later changes are impossible.
            mode: How resources without metadata are treated.
            expires_at: An aware time after which every operation under it is denied.
            bound_to_context: Make it unusable outside this context and its copies.

        Raises:
            InvalidInputError: An argument has another type, or the time is naive.
        """
        if type(principal) is not Principal or type(rights) is not Rights:
            raise InvalidInputError("principal, rights", "must be a Principal and Rights")
        if expires_at is not None and expires_at.tzinfo is None:
            raise InvalidInputError("expires_at", "must carry a time zone")
        life = Life(self._clock, expires_at=expires_at.timestamp() if expires_at else None)
        if bound_to_context:
            life.bind()
        return scope_of(Grant(principal, EnforcementMode(mode), (rights,), (life,), (principal.id,)))

    def attenuate(self, scope: Scope, requested: Rights, *, layered: bool = False) -> Scope:
        """Narrow a scope; see `Scope.attenuate`."""
        grant_of(scope)
        return scope.attenuate(requested, layered=layered)

    async def attenuate_for_resources(
        self, scope: Scope, requested: Rights, resolver: Containment, *, recheck: bool = False
    ) -> Scope:
        """Narrow a scope with a resolver; see `Scope.attenuate_for_resources`."""
        grant_of(scope)
        return await scope.attenuate_for_resources(requested, resolver, recheck=recheck)

    def revoke(self, scope: Scope) -> None:
        """End a scope and everything derived from it, wherever it is installed."""
        grant = grant_of(scope)
        grant.lives[-1].revoke()
        self._announce(AccessEvent("access.revoked", chain=grant.chain, shadowed=grant.shadowed))

    # -- installing -----------------------------------------------------------

    def current_scope(self) -> Scope | None:
        """Return the scope in force here, or None."""
        return self._current.get()

    def scope(self, scope: Scope, *, layered: bool = False) -> ScopeBlock:
        """Return a block, ``with`` or ``async with``, in which `scope` is in force.

        Inside another scope the outer principal acts, the rights are intersected by
        equal selectors, and the stricter mode holds; the outer scope returns afterwards.

        Args:
            scope: What to install.
            layered: Require both scopes to cover an operation, instead of intersecting
                selectors by value.
        """
        return ScopeBlock(self, scope, layered=layered)

    def child_scope(self, principal: Principal, requested: Rights, *, layered: bool = False) -> ChildBlock:
        """Return a block in which a delegated principal acts with at most the ambient rights.

        Raises:
            ContextAccessDenied: On entering, with DELEGATE, if no delegable scope is in force.
        """
        return ChildBlock(self, principal, requested, layered=layered)

    def child_scope_for_resources(
        self,
        principal: Principal,
        requested: Rights,
        resolver: Containment,
        *,
        recheck: bool = False,
        timeout: float = RESOLVER_TIMEOUT,
    ) -> ChildBlock:
        """Return a block like `child_scope` that also keeps resources of granted boundaries.

        Args:
            principal: Who acts inside.
            requested: The most that the child may do.
            resolver: Asked which requested resource lies in which granted boundary.
            recheck: Keep such a grant only while the resource stays in the boundary.
            timeout: Seconds each answer may take under ``async with``.
        """
        return ChildBlock(self, principal, requested, resolver=resolver, recheck=recheck, timeout=timeout)

    # -- carrying -------------------------------------------------------------

    def propagate(self, function: Callable[P, T]) -> Callable[P, T]:
        """Return `function` bound to the scope in force now, for threads and callbacks."""
        return carry(self, function)

    def executor(self, inner: Executor) -> ScopedExecutor:
        """Return an executor that carries the submitter's scope into `inner`."""
        return ScopedExecutor(inner, self)

    def wrap_iter(self, source: Iterable[T]) -> Iterator[T]:
        """Return an iterator that runs every step of `source` in the context of this moment."""
        return ContextIterator(source)

    def wrap_aiter(self, source: AsyncIterable[T]) -> AsyncIterator[T]:
        """Return an asynchronous iterator that runs every step in the context of this moment."""
        return ContextAsyncIterator(source)

    # -- administration -------------------------------------------------------

    def take_admin_token(self) -> AdminToken:
        """Hand out the administration token, once: to the host that built this authority.

        Raises:
            AdminTokenError: It was taken before.
        """
        if self._token_taken:
            raise AdminTokenError("taking the token again")
        self._token_taken = True
        return self._token

    def require_admin(self, action: str, token: AdminToken | None, policy: UnscopedPolicy) -> None:
        """Check that trusted administration is allowed here.

        Raises:
            ScopeActiveError: A scope is in force.
            AdminTokenError: `policy` denies unscoped use and the token is not the host's.
        """
        if self._current.get() is not None:
            raise ScopeActiveError(action)
        if policy is UnscopedPolicy.DENY and token is not self._token:
            raise AdminTokenError(action)

    # -- observing ------------------------------------------------------------

    def report(self, event: AccessEvent) -> None:
        """Tell this authority's observer."""
        notify(self._observer, event)

    def listen(self, listener: Listener) -> None:
        """Also tell `listener` of revocations and leaks, which belong to no library; it is held weakly."""
        self._listeners.add(listener)

    def unlisten(self, listener: Listener) -> None:
        """Tell `listener` no more."""
        self._listeners.discard(listener)

    def _announce(self, event: AccessEvent) -> None:
        self.report(event)
        for listener in tuple(self._listeners):
            notify(listener.on_access, event)

    # -- for the blocks ---------------------------------------------------------

    def require_delegable(self) -> Grant:
        """Return the ambient grant if it may issue child scopes.

        Raises:
            ContextAccessDenied: There is none, it has ended, or it is not delegable.
        """
        ambient = self._current.get()
        if ambient is not None:
            grant = grant_of(ambient)
            if grant.is_live() and grant.delegable():
                return grant
        raise ContextAccessDenied(Operation.DELEGATE, ResourceKind.BANKED_CONTEXT, EXECUTION)

    def install(self, scope: Scope) -> Token[Scope | None]:
        """Put a scope in force and return what takes it back."""
        return self._current.set(scope)

    def restore(self, installed: Scope | None, token: Token[Scope | None]) -> None:
        """Take back an installation, or touch nothing where it is not ours to take back.

        In a foreign context, or out of order, restoring the previous scope could widen
        what somebody else runs under.
        """
        if self._current.get() is installed:
            try:
                self._current.reset(token)
            except ValueError:
                pass
            else:
                return
        self._announce(AccessEvent("access.leak"))
        if self._debug:
            raise ScopeLeakError


access = ContextAccess()
"""The authority a library uses unless it is given its own."""
