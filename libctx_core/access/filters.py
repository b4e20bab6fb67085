"""What a scope permits, as a value that a store can turn into SQL before anything is ranked."""

from dataclasses import dataclass
from typing import TypeAlias

from libctx_core.access.metadata import MetadataState, ResourceMetadata
from libctx_core.access.policy import EnforcementMode
from libctx_core.access.scope import Grant
from libctx_core.access.selectors import Matcher
from libctx_core.errors.access import Operation

Layers: TypeAlias = tuple[Matcher, ...]


@dataclass(frozen=True, slots=True)
class OwnerFilter:
    """Which owner objects an operation may touch; equal filters permit the same ones.

    Attributes:
        operation: The operation.
        principal: Who asks, None without a scope.
        unrestricted: Everything is permitted: there is no scope and none is needed.
        unenrolled: Objects without metadata are permitted.
        layers: Each must match an enrolled object.
    """

    operation: Operation
    principal: str | None = None
    unrestricted: bool = False
    unenrolled: bool = False
    layers: Layers = ()

    def admits(self, metadata: MetadataState, kind: str) -> bool:
        """Return whether an object of `kind` with this metadata is permitted; SQL must agree."""
        if self.unrestricted:
            return True
        if metadata is None:
            return self.unenrolled
        if not isinstance(metadata, ResourceMetadata) or not metadata.usable or metadata.resource_kind != kind:
            return False
        return all(layer.matches(metadata.resource_id, metadata.boundary_id) for layer in self.layers)


def filter_of(grant: Grant | None, operation: Operation) -> OwnerFilter:
    """Return the filter of a live grant, or the open one where there is no scope."""
    if grant is None:
        return OwnerFilter(operation, unrestricted=True)
    return OwnerFilter(
        operation,
        principal=grant.principal.id,
        unenrolled=grant.mode is EnforcementMode.LEGACY_COMPATIBLE,
        layers=tuple([layer.matcher(operation) for layer in grant.layers]),
    )
