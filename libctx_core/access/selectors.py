"""Who acts, and which resources a right is about."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from libctx_core.access.identifiers import check_id


@dataclass(frozen=True, slots=True)
class Principal:
    """An execution identity; its id means nothing to this library.

    Raises:
        InvalidIdentifierError: The id is blank or not exactly a string.
    """

    id: str

    def __post_init__(self) -> None:
        check_id(self.id, "principal.id")


@dataclass(frozen=True, slots=True)
class Resource:
    """Selects the one resource enrolled under this id."""

    id: str

    def __post_init__(self) -> None:
        check_id(self.id, "resource.id")


@dataclass(frozen=True, slots=True)
class Boundary:
    """Selects every resource enrolled in this boundary."""

    id: str

    def __post_init__(self) -> None:
        check_id(self.id, "boundary.id")


@dataclass(frozen=True, slots=True)
class Contained:
    """Selects a resource as long as it stays enrolled in the boundary it was granted through."""

    resource_id: str
    boundary_id: str

    def __post_init__(self) -> None:
        check_id(self.resource_id, "contained.resource_id")
        check_id(self.boundary_id, "contained.boundary_id")


Selector: TypeAlias = Resource | Boundary | Contained
SELECTOR_TYPES = (Resource, Boundary, Contained)


class Matcher(NamedTuple):
    """A selector set sorted by type, so that matching costs set lookups and SQL can use it.

    Attributes:
        resources: Resource ids that match.
        boundaries: Boundary ids that match.
        contained: Pairs of resource and boundary id that match together.
    """

    resources: frozenset[str]
    boundaries: frozenset[str]
    contained: frozenset[tuple[str, str]]

    def matches(self, resource_id: str, boundary_id: str | None) -> bool:
        """Return whether any selector covers a resource with these ids."""
        return (
            resource_id in self.resources
            or (boundary_id is not None and boundary_id in self.boundaries)
            or (bool(self.contained) and (resource_id, boundary_id) in self.contained)
        )

    def covers_both(self, resource_id: str, boundary_id: str | None) -> bool:
        """Return whether the resource id and, if there is one, the boundary id are both covered."""
        if boundary_id is not None and (resource_id, boundary_id) in self.contained:
            return True
        return resource_id in self.resources and (boundary_id is None or boundary_id in self.boundaries)


def matcher(selectors: frozenset[Selector]) -> Matcher:
    """Sort a selector set by type."""
    return Matcher(
        frozenset(selector.id for selector in selectors if type(selector) is Resource),
        frozenset(selector.id for selector in selectors if type(selector) is Boundary),
        frozenset(
            (selector.resource_id, selector.boundary_id) for selector in selectors if type(selector) is Contained
        ),
    )
