"""Who may touch a vector collection: asked before anything of it is read or written."""

from typing import Protocol

from libctx_core.access import EnforcementMode, ResourceMetadata, metadata_for
from libctx_core.access.authority import Authority
from libctx_core.errors.access import Operation
from libctx_core.store.access import metadata_state
from libctx_core.store.owners import VECTOR_COLLECTION, OwnerRow


class Guard(Protocol):
    """Decides, before anything is touched, whether the caller may do something here."""

    def require(self, operation: Operation, owner: OwnerRow | None, /) -> ResourceMetadata | None:
        """Let an operation pass, or raise.

        Args:
            operation: What is about to happen.
            owner: The collection's row with its enrolment; None where it does not exist.

        Returns:
            For CREATE: what the new collection is enrolled with, None for nothing.

        Raises:
            ContextAccessDenied: It is not allowed.
        """
        ...


class OpenGuard:
    """The guard of a library opened without a scope: its owner may do everything."""

    def require(self, operation: Operation, owner: OwnerRow | None, /) -> ResourceMetadata | None:
        """Let everything pass and enrol nothing."""
        return None


class CollectionGuard:
    """Asks the library's authority, under the ambient scope or under a handle.

    A collection created under a scope is enrolled at once. One that does not exist is
    judged as it would be enrolled, so that it answers like one that may not be read.

    Args:
        authority: The authority, bound to a scope or not.
        collection: Namespace of the collection.
        name: Its name.
        resource: What it is enrolled with; by default
            ``vector_collection:{collection}/{name}`` within the boundary named like its
            namespace.
    """

    def __init__(
        self, authority: Authority, collection: str, name: str, resource: ResourceMetadata | None = None
    ) -> None:
        self._authority = authority
        self._key = f"{collection}/{name}"
        self._explicit = resource is not None
        self._proposed = resource or metadata_for(VECTOR_COLLECTION, collection, name)

    def require(self, operation: Operation, owner: OwnerRow | None, /) -> ResourceMetadata | None:
        """Let an operation pass, or raise; see `Guard`."""
        scope = self._authority.scope
        if operation is Operation.CREATE:
            if scope is None and not self._explicit:
                self._authority.require_write(VECTOR_COLLECTION, self._key, None)
                return None
            self._authority.require_create(VECTOR_COLLECTION, self._key, self._proposed)
            return self._proposed
        metadata = metadata_state(owner)
        if owner is None and scope is not None and scope.enforcement_mode is EnforcementMode.REQUIRE_ENROLLMENT:
            metadata = self._proposed
        self._authority.require(operation, VECTOR_COLLECTION, self._key, metadata)
        return None
