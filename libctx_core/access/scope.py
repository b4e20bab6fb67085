"""A scope: principal, rights and mode of one execution; narrowed freely, never widened or copied."""

from typing import TYPE_CHECKING, NamedTuple, NoReturn, final

from libctx_core.access.life import Life
from libctx_core.access.metadata import MetadataState, ResourceMetadata
from libctx_core.access.policy import EnforcementMode, stricter
from libctx_core.access.rights import SELECTABLE, Rights, rights_from_sets
from libctx_core.access.selectors import Contained, Principal, Resource, Selector
from libctx_core.errors import ScopeForgeryError
from libctx_core.errors.access import Operation

if TYPE_CHECKING:
    from libctx_core.access.containment import Containment


class Grant(NamedTuple):
    """What a scope holds, for the authority's own eyes.

    Attributes:
        principal: Who acts.
        mode: How resources without metadata are treated.
        layers: Sets of rights that must all cover an operation; one, unless layered.
        lives: Lives of the scope and of all it derives from; it ends with the first.
        chain: Principals from the root to here.
        shadowed: Principal of a nested scope that the ambient one replaced, if any.
    """

    principal: Principal
    mode: EnforcementMode
    layers: tuple[Rights, ...]
    lives: tuple[Life, ...]
    chain: tuple[str, ...]
    shadowed: str | None = None

    def is_live(self) -> bool:
        """Return whether no life of it has ended."""
        for life in self.lives:  # noqa: SIM110 - a generator costs more than the loop
            if life.ended():
                return False
        return True

    def allows(self, operation: Operation, resource_id: str, boundary_id: str | None) -> bool:
        """Return whether every layer covers a resource; storage keys never match."""
        for layer in self.layers:  # noqa: SIM110 - a generator costs more than the loop
            if not layer.matcher(operation).matches(resource_id, boundary_id):
                return False
        return True

    def covers_both(self, operation: Operation, resource_id: str, boundary_id: str | None) -> bool:
        """Return whether every layer covers the resource id and the boundary id."""
        return all(layer.matcher(operation).covers_both(resource_id, boundary_id) for layer in self.layers)

    def grants_any(self, operation: Operation) -> bool:
        """Return whether every layer holds at least one selector for the operation."""
        return all(layer.selectors(operation) for layer in self.layers)

    def delegable(self) -> bool:
        """Return whether child scopes may be issued."""
        return all(layer.delegable for layer in self.layers)

    def rights(self) -> Rights:
        """Return the layers intersected by value."""
        first, *others = self.layers
        for layer in others:
            first = first.intersect(layer)
        return first


@final
class Scope:
    """What one execution may do. Only a `ContextAccess` makes scopes.

    A scope is a capability: whoever holds it may install it or narrow it. That protects
    against mistakes and against arguments a model chose, not against hostile code in
    the same process.
    """

    __slots__ = ("__weakref__", "_grant")
    _grant: Grant

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise ScopeForgeryError("Scope()")

    @property
    def principal(self) -> Principal:
        """Whose authority this is."""
        return self._grant.principal

    @property
    def enforcement_mode(self) -> EnforcementMode:
        """How resources without metadata are treated."""
        return self._grant.mode

    def attenuate(self, requested: Rights, *, layered: bool = False) -> "Scope":
        """Return a scope with the rights both grant, selectors compared by value.

        Principal and mode stay. The ambient scope is not consulted and `delegable` is
        not needed: narrowing is free.

        Args:
            requested: The most that the result may grant.
            layered: Require both sets of rights to match instead of intersecting them, so
                that `Resource("r")` narrows a granted `Boundary` without a resolver.
        """
        layers = narrow_layers(self._grant, requested, layered=layered)
        return scope_of(derive(self._grant, layers))

    async def attenuate_for_resources(
        self, requested: Rights, resolver: "Containment", *, recheck: bool = False
    ) -> "Scope":
        """Narrow, also keeping requested resources that lie in a granted boundary.

        Args:
            requested: The most that the result may grant.
            resolver: Trusted; asked which resource lies in which boundary.
            recheck: Keep the grant only while the resource stays in that boundary.
        """
        from libctx_core.access.containment import aresolve_rights

        rights = await aresolve_rights(self._grant.rights(), requested, resolver, recheck=recheck)
        return scope_of(derive(self._grant, (rights,)))

    def __setattr__(self, name: str, value: object) -> None:
        raise ScopeForgeryError(f"assignment to {name}")

    def __delattr__(self, name: str) -> None:
        raise ScopeForgeryError(f"deletion of {name}")

    def __init_subclass__(cls) -> None:
        raise ScopeForgeryError("a subclass")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise ScopeForgeryError("pickling")

    def __copy__(self) -> NoReturn:
        raise ScopeForgeryError("copying")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise ScopeForgeryError("copying")

    def __replace__(self, /, **changes: object) -> NoReturn:
        raise ScopeForgeryError("replacing fields")

    def __repr__(self) -> str:
        return f"<Scope {self._grant.principal.id!r} {self._grant.mode}>"

    def _repr_html_(self) -> str:
        from libctx_core.access.grid import scope_html

        return scope_html(self)


def scope_of(grant: Grant) -> Scope:
    """Build a scope: the authority's own door, which the package does not export."""
    scope: Scope = object.__new__(Scope)
    object.__setattr__(scope, "_grant", grant)
    return scope


def grant_of(scope: object) -> Grant:
    """Return what a scope holds.

    Raises:
        ScopeForgeryError: It is not a scope that an authority made.
    """
    if type(scope) is Scope:
        grant = getattr(scope, "_grant", None)
        if type(grant) is Grant:
            return grant
    raise ScopeForgeryError("something that is not an issued scope")


def derive(grant: Grant, layers: tuple[Rights, ...]) -> Grant:
    """Return the same principal's grant with narrower rights, which can be revoked alone."""
    return grant._replace(layers=layers, lives=(*grant.lives, Life()))


def narrow_layers(grant: Grant, requested: Rights, *, layered: bool) -> tuple[Rights, ...]:
    """Intersect every layer with the request, or let the request be one more layer."""
    if layered:
        return (*grant.layers, requested)
    return tuple([layer.intersect(requested) for layer in grant.layers])


def nest(ambient: Grant, inner: Grant, *, layered: bool) -> Grant:
    """Return what is in force when `inner` is installed inside `ambient`.

    The ambient principal acts, the rights are those both grant, the stricter mode holds.
    """
    if layered:
        layers = ambient.layers + inner.layers
    else:
        layers = tuple([outer.intersect(own) for outer in ambient.layers for own in inner.layers])
    known = ambient.lives
    return Grant(
        ambient.principal,
        stricter(ambient.mode, inner.mode),
        layers,
        (*known, *[life for life in inner.lives if life not in known], Life()),
        ambient.chain,
        ambient.shadowed if inner.principal == ambient.principal else inner.principal.id,
    )


def delegate(ambient: Grant, principal: Principal, layers: tuple[Rights, ...]) -> Grant:
    """Return the grant of a child execution: its own principal, the ambient mode."""
    return Grant(principal, ambient.mode, layers, (*ambient.lives, Life()), (*ambient.chain, principal.id))


def confine(grant: Grant, metadata: MetadataState) -> Grant:
    """Return the grant limited to one enrolled resource; to nothing where it is not enrolled."""
    sets: list[frozenset[Selector]] = []
    for operation in SELECTABLE:
        if isinstance(metadata, ResourceMetadata) and grant.allows(
            operation, metadata.resource_id, metadata.boundary_id
        ):
            sets.append(frozenset({_selector_of(metadata)}))
        else:
            sets.append(frozenset())
    mode = EnforcementMode.REQUIRE_ENROLLMENT
    return derive(grant._replace(mode=mode), (rights_from_sets(sets, delegable=False),))


def _selector_of(metadata: ResourceMetadata) -> Selector:
    if metadata.boundary_id is None:
        return Resource(metadata.resource_id)
    return Contained(metadata.resource_id, metadata.boundary_id)
