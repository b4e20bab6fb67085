"""Rights: five selector sets and the permission to delegate, with an algebra that only narrows."""

from collections.abc import Iterable, Mapping
from typing import Final, final

from libctx_core.access.selectors import (
    SELECTOR_TYPES,
    Boundary,
    Contained,
    Matcher,
    Resource,
    Selector,
    matcher,
)
from libctx_core.errors import InvalidInputError
from libctx_core.errors.access import Operation

SELECTABLE: Final = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ENUMERATE,
)
"""The operations that selectors grant, in the order `Rights` keeps them; DELEGATE is a flag."""

_INDEX: Final = {operation: index for index, operation in enumerate(SELECTABLE)}
_FIELDS: Final = (
    "readable_resources",
    "writable_resources",
    "creatable_resources",
    "deletable_resources",
    "enumerable_resources",
)

Sets = tuple[
    frozenset[Selector],
    frozenset[Selector],
    frozenset[Selector],
    frozenset[Selector],
    frozenset[Selector],
]


@final
class Rights:
    """What a scope grants; everything empty, the default, is no authority.

    Args:
        readable_resources: Selectors of what may be read.
        writable_resources: Selectors of what may be updated.
        creatable_resources: Selectors under which new resources may be enrolled.
        deletable_resources: Selectors of what may be deleted or evicted.
        enumerable_resources: Selectors of what is listed.
        delegable: Whether child scopes may be issued.

    Raises:
        InvalidInputError: A set holds anything but selectors, or `delegable` is no bool.
    """

    __slots__ = ("_last_met", "_matchers", "_sets", "delegable")
    _sets: Sets
    _last_met: "tuple[Rights, Rights] | None"
    _matchers: dict[Operation, Matcher]
    delegable: bool

    def __init__(
        self,
        readable_resources: Iterable[Selector] = (),
        writable_resources: Iterable[Selector] = (),
        creatable_resources: Iterable[Selector] = (),
        deletable_resources: Iterable[Selector] = (),
        enumerable_resources: Iterable[Selector] = (),
        delegable: bool = False,
    ) -> None:
        if type(delegable) is not bool:
            raise InvalidInputError("delegable", "must be exactly a bool")
        sets = (
            _selector_set(readable_resources, _FIELDS[0]),
            _selector_set(writable_resources, _FIELDS[1]),
            _selector_set(creatable_resources, _FIELDS[2]),
            _selector_set(deletable_resources, _FIELDS[3]),
            _selector_set(enumerable_resources, _FIELDS[4]),
        )
        _fill(self, sets, delegable)

    @classmethod
    def all_on(cls, *selectors: Selector, delegable: bool = False) -> "Rights":
        """Grant every operation on the selectors."""
        return cls(selectors, selectors, selectors, selectors, selectors, delegable=delegable)

    @classmethod
    def read_only(cls, *selectors: Selector, delegable: bool = False) -> "Rights":
        """Grant reading and listing on the selectors."""
        return cls(readable_resources=selectors, enumerable_resources=selectors, delegable=delegable)

    @property
    def readable_resources(self) -> frozenset[Selector]:
        """Selectors that grant READ."""
        return self._sets[0]

    @property
    def writable_resources(self) -> frozenset[Selector]:
        """Selectors that grant WRITE."""
        return self._sets[1]

    @property
    def creatable_resources(self) -> frozenset[Selector]:
        """Selectors that grant CREATE."""
        return self._sets[2]

    @property
    def deletable_resources(self) -> frozenset[Selector]:
        """Selectors that grant DELETE."""
        return self._sets[3]

    @property
    def enumerable_resources(self) -> frozenset[Selector]:
        """Selectors that grant ENUMERATE."""
        return self._sets[4]

    def selectors(self, operation: Operation) -> frozenset[Selector]:
        """Return the selectors of an operation; DELEGATE has none."""
        index = _INDEX.get(operation)
        return frozenset() if index is None else self._sets[index]

    def matcher(self, operation: Operation) -> Matcher:
        """Return the operation's selectors in matchable form, built once."""
        found = self._matchers.get(operation)
        if found is None:
            found = self._matchers[operation] = matcher(self.selectors(operation))
        return found

    def intersect(self, requested: "Rights") -> "Rights":
        """Return what both grant, selectors compared by value; never more than either.

        A `Contained` selector is also kept where the other side grants its resource or
        its boundary, because it is narrower than both.
        """
        if requested is self:
            return self
        known = self._last_met
        if known is not None and known[0] is requested:
            return known[1]
        mine, theirs = self._sets, requested._sets  # noqa: SLF001 - of its own class
        met = _rights(
            (
                _meet(mine[0], theirs[0]),
                _meet(mine[1], theirs[1]),
                _meet(mine[2], theirs[2]),
                _meet(mine[3], theirs[3]),
                _meet(mine[4], theirs[4]),
            ),
            self.delegable and requested.delegable,
        )
        object.__setattr__(self, "_last_met", (requested, met))
        return met

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Rights are immutable: {name}")

    def __reduce__(self) -> tuple[type["Rights"], tuple[object, ...]]:
        return Rights, (*self._sets, self.delegable)

    def __eq__(self, other: object) -> bool:
        if type(other) is not Rights:
            return NotImplemented
        return self._sets == other._sets and self.delegable == other.delegable

    def __hash__(self) -> int:
        return hash((self._sets, self.delegable))

    def __repr__(self) -> str:
        granted = ", ".join(
            f"{operation.lower()} {len(selectors)}"
            for operation, selectors in zip(SELECTABLE, self._sets, strict=True)
            if selectors
        )
        return f"Rights({granted or 'none'}{', delegable' if self.delegable else ''})"


def rights_from_sets(sets: Iterable[frozenset[Selector]], *, delegable: bool) -> Rights:
    """Build rights from five selector sets in the order of `SELECTABLE`."""
    read, write, create, delete, enumerate_ = sets
    return _rights((read, write, create, delete, enumerate_), delegable)


def _rights(sets: Sets, delegable: bool) -> Rights:
    """Build rights from sets that are known to hold selectors only."""
    rights = object.__new__(Rights)
    _fill(rights, sets, delegable)
    return rights


def _fill(rights: Rights, sets: Sets, delegable: bool) -> None:
    assign = object.__setattr__
    assign(rights, "_sets", sets)
    assign(rights, "_matchers", {})
    assign(rights, "_last_met", None)
    assign(rights, "delegable", delegable)


def _selector_set(values: object, field: str) -> frozenset[Selector]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInputError(field, "must be a collection of Resource and Boundary selectors")
    selectors = frozenset(values)
    if any(type(selector) not in SELECTOR_TYPES for selector in selectors):
        raise InvalidInputError(field, "must hold Resource and Boundary selectors only")
    return selectors


def _meet(mine: frozenset[Selector], theirs: frozenset[Selector]) -> frozenset[Selector]:
    if mine is theirs:
        return mine
    equal = mine & theirs
    if len(equal) == len(theirs) or len(equal) == len(mine):
        return equal
    kept = _contained_in(mine, theirs) | _contained_in(theirs, mine)
    return equal | kept if kept else equal


def _contained_in(narrow: frozenset[Selector], wide: frozenset[Selector]) -> set[Selector]:
    return {
        selector
        for selector in narrow
        if type(selector) is Contained
        and (Resource(selector.resource_id) in wide or Boundary(selector.boundary_id) in wide)
    }
