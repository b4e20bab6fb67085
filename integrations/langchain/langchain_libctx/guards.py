"""Who may touch the tables that LangGraph keeps in a library: asked before anything is read or written."""

from collections.abc import Iterable

import apsw

from langchain_libctx.opening import OpenFile
from libctx_core.access import EnforcementMode, MetadataState, metadata_for
from libctx_core.errors.access import Operation
from libctx_core.store.access import metadata_state
from libctx_core.store.owners import THREAD, VECTOR_COLLECTION, find_owner


class ThreadGuard:
    """Decides about the checkpoints of a thread as about the thread of the same name.

    A scope that may read the conversation may read its checkpoints, and one that may not
    may not; a thread that was never enrolled is judged as it would be.
    """

    def __init__(self, file: OpenFile) -> None:
        self._authority = file.authority
        self._namespace = file.namespace

    def require(self, operation: Operation, connection: apsw.Connection, thread_ids: Iterable[str]) -> None:
        """Return if the operation is allowed on every thread.

        Raises:
            ContextAccessDenied: It is not.
        """
        if self._authority.scope is None:
            self._authority.require(operation, THREAD, self._namespace, None)
            return
        for thread_id in thread_ids:
            name = f"{self._namespace}/{thread_id}"
            self._authority.require(operation, THREAD, name, self._metadata(connection, thread_id))

    def allows(self, operation: Operation, connection: apsw.Connection, thread_id: str) -> bool:
        """Tell whether the operation is allowed on a thread, without a denial being raised."""
        name = f"{self._namespace}/{thread_id}"
        metadata = None if self._authority.scope is None else self._metadata(connection, thread_id)
        return self._authority.allowed(operation, THREAD, name, metadata)

    def _metadata(self, connection: apsw.Connection, thread_id: str) -> MetadataState:
        owner = find_owner(connection, THREAD, self._namespace, thread_id)
        scope = self._authority.scope
        if owner is None and scope is not None and scope.enforcement_mode is EnforcementMode.REQUIRE_ENROLLMENT:
            return metadata_for(THREAD, self._namespace, thread_id)
        return metadata_state(owner)


class StoreGuard:
    """Decides about a LangGraph store as about one collection, named ``vector_collection:{namespace}/store:{name}``."""

    def __init__(self, file: OpenFile, name: str) -> None:
        self._authority = file.authority
        self._key = f"{file.namespace}/store:{name}"
        self._proposed = metadata_for(VECTOR_COLLECTION, file.namespace, f"store:{name}")

    def require(self, operation: Operation) -> None:
        """Return if the operation is allowed.

        Raises:
            ContextAccessDenied: It is not.
        """
        scope = self._authority.scope
        enrolled = scope is not None and scope.enforcement_mode is EnforcementMode.REQUIRE_ENROLLMENT
        self._authority.require(operation, VECTOR_COLLECTION, self._key, self._proposed if enrolled else None)
