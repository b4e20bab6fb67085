"""What the sources and memory rooms ask of the authority layer."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from libctx_core.access import metadata_for
from libctx_core.access.authority import Authority
from libctx_core.errors.access import Operation
from libctx_core.store.access import metadata_state
from libctx_core.store.owners import OwnerRow


class Enrolment(NamedTuple):
    """Under which ids a new resource is protected from its first row on."""

    resource_id: str
    boundary_id: str | None = None


class OwnerGuard(Protocol):
    """Decides on owner objects; it is asked before anything of their content is read or written."""

    def require(
        self, operation: Operation, kind: str, collection: str, key: str, owner: OwnerRow | None, /
    ) -> Enrolment | None:
        """Let an operation pass, or raise.

        Args:
            operation: What is about to happen.
            kind: Kind of the resource, ``"SOURCE"`` or ``"MEMORY"``.
            collection: Collection it lives in.
            key: Its key within the collection and kind.
            owner: Its row with its enrolment; None where it does not exist.

        Returns:
            For CREATE: the enrolment to be stored with the new row, or None for none.

        Raises:
            ContextAccessDenied: The active scope does not allow it.
        """
        ...

    def permitted(self, operation: Operation, owners: Sequence[OwnerRow], /) -> list[OwnerRow]:
        """Return those of `owners` on which the operation is allowed, in order."""
        ...


class OpenGuard:
    """Allows everything and enrols nothing: a library used by its owner, without scopes."""

    def require(
        self, operation: Operation, kind: str, collection: str, key: str, owner: OwnerRow | None, /
    ) -> Enrolment | None:
        """Let everything pass."""
        return None

    def permitted(self, operation: Operation, owners: Sequence[OwnerRow], /) -> list[OwnerRow]:
        """Return all of them."""
        return list(owners)


class AuthorityGuard:
    """Asks the library's authority, under the ambient scope or under a handle.

    What is created under a scope is enrolled at once: as ``memory:{collection}/{key}`` or
    ``source:{collection}/{key}``, within the boundary named like its collection.

    Args:
        authority: The authority, bound to a scope or not.
    """

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def require(
        self, operation: Operation, kind: str, collection: str, key: str, owner: OwnerRow | None, /
    ) -> Enrolment | None:
        """Let an operation pass, or raise `ContextAccessDenied`."""
        if operation is not Operation.CREATE:
            self._authority.require(operation, kind, key, metadata_state(owner))
            return None
        proposed = metadata_for(kind, collection, key)
        self._authority.require_create(kind, key, proposed)
        return None if self._authority.scope is None else Enrolment(proposed.resource_id, collection)

    def permitted(self, operation: Operation, owners: Sequence[OwnerRow], /) -> list[OwnerRow]:
        """Return those of `owners` on which the operation is allowed, in order."""
        return [
            owner
            for owner in owners
            if self._authority.allowed(operation, owner.kind, owner.key, metadata_state(owner))
        ]
