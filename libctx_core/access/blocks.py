"""The ``with`` blocks that hold a scope in force, for synchronous and asynchronous code alike."""

from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING

from libctx_core.access.containment import RESOLVER_TIMEOUT, Containment, aresolve_rights, resolve_rights
from libctx_core.access.rights import Rights
from libctx_core.access.scope import Grant, Scope, delegate, grant_of, narrow_layers, nest, scope_of
from libctx_core.access.selectors import Principal

if TYPE_CHECKING:
    from libctx_core.access.context import ContextAccess


class Block:
    """What both blocks share: one installation, taken back when the block ends."""

    __slots__ = ("_access", "_installed", "_token")

    def __init__(self, access: "ContextAccess") -> None:
        self._access = access
        self._installed: Scope | None = None
        self._token: Token[Scope | None] | None = None

    def _put(self, scope: Scope) -> Scope:
        if self._token is not None:
            raise RuntimeError("this scope block is already entered; make a new one")
        self._token = self._access.install(scope)
        self._installed = scope
        return scope

    def _take_back(self) -> None:
        token, self._token = self._token, None
        if token is not None:
            self._access.restore(self._installed, token)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._take_back()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._take_back()


class ScopeBlock(Block):
    """A scope in force for the length of a block; made by `ContextAccess.scope`."""

    __slots__ = ("_layered", "_scope")

    def __init__(self, access: "ContextAccess", scope: Scope, *, layered: bool) -> None:
        super().__init__(access)
        self._scope = scope
        self._layered = layered

    def __enter__(self) -> Scope:
        inner = grant_of(self._scope)
        ambient = self._access.current_scope()
        if ambient is None or ambient is self._scope:
            return self._put(self._scope)
        return self._put(scope_of(nest(grant_of(ambient), inner, layered=self._layered)))

    async def __aenter__(self) -> Scope:
        return self.__enter__()


class ChildBlock(Block):
    """A delegated execution for the length of a block; made by `ContextAccess.child_scope`.

    The ambient scope that counts is the one at entry, whatever a resolver does meanwhile.
    """

    __slots__ = ("_layered", "_principal", "_recheck", "_requested", "_resolver", "_timeout")

    def __init__(
        self,
        access: "ContextAccess",
        principal: Principal,
        requested: Rights,
        *,
        layered: bool = False,
        resolver: Containment | None = None,
        recheck: bool = False,
        timeout: float = RESOLVER_TIMEOUT,
    ) -> None:
        super().__init__(access)
        self._principal = principal
        self._requested = requested
        self._layered = layered
        self._resolver = resolver
        self._recheck = recheck
        self._timeout = timeout

    def __enter__(self) -> Scope:
        ambient = self._access.require_delegable()
        if self._resolver is None:
            layers = narrow_layers(ambient, self._requested, layered=self._layered)
        else:
            layers = (resolve_rights(ambient.rights(), self._requested, self._resolver, recheck=self._recheck),)
        return self._delegate(ambient, layers)

    async def __aenter__(self) -> Scope:
        if self._resolver is None:
            return self.__enter__()
        ambient = self._access.require_delegable()
        rights = await aresolve_rights(
            ambient.rights(), self._requested, self._resolver, recheck=self._recheck, timeout=self._timeout
        )
        return self._delegate(ambient, (rights,))

    def _delegate(self, ambient: Grant, layers: tuple[Rights, ...]) -> Scope:
        return self._put(scope_of(delegate(ambient, self._principal, layers)))
