"""The plane of pages in a remote memory: failures become denials or typed errors, never a guess."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from libctx_core.access import DenialReason, MetadataState, Presence, ResourceMetadata
from libctx_core.bank.bridge import Bridge, Maybe
from libctx_core.bank.codec import Codec
from libctx_core.bank.modes import StorageMode
from libctx_core.bank.planes import Head, Loaded
from libctx_core.bank.remote import (
    LOCKS,
    RESOURCE_METADATA,
    ContextResourceMetadataBackend,
    MemoryOperationResult,
    RemoteMemory,
    require_value,
)
from libctx_core.errors import LibctxError, MetadataCapabilityError
from libctx_core.errors.bank import MemoryErrorType, MemoryRemoteError, RemoteFailure, VersionConflictError
from libctx_core.store.payloads import ABSENT, Recheck, StoredEntry

T = TypeVar("T")


class RemotePlane:
    """Pages and enrolments of one remote memory."""

    def __init__(self, remote: RemoteMemory, bridge: Bridge) -> None:
        self._remote = remote
        self._bridge = bridge
        self.holds_metadata = RESOURCE_METADATA in remote.capabilities

    def _call(
        self, function: Callable[..., Maybe[MemoryOperationResult[T]]], *arguments: object
    ) -> MemoryOperationResult[T]:
        """Call the backend; whatever it raises, other than cancellation, is a transport failure."""
        try:
            return cast("MemoryOperationResult[T]", self._bridge.settle(function(*arguments)))
        except MemoryRemoteError as error:
            return error.failure
        except LibctxError:
            raise
        except Exception as error:  # noqa: BLE001 - a backend may raise anything; it is reported as a failure
            return RemoteFailure(None, MemoryErrorType.TRANSPORT, type(error).__name__)

    def _metadata_backend(self, action: str) -> ContextResourceMetadataBackend:
        if not self.holds_metadata:
            raise MetadataCapabilityError(action)
        return cast("ContextResourceMetadataBackend", self._remote)

    def is_locked(self, key: str) -> bool:
        """Return whether the remote memory locks a page; a failure to say so counts as locked."""
        if LOCKS not in self._remote.capabilities:
            return False
        result = self._call(self._remote.page_is_locked, key)
        return True if isinstance(result, RemoteFailure) else result.value is not False

    def head(self, kind: str, key: str) -> Head:
        """Return the enrolment of a key; presence is another call."""
        return Head(self.metadata(kind, key), Presence.UNPROBED)

    def metadata(self, kind: str, key: str) -> MetadataState:
        """Return the enrolment of a key: missing, malformed and unreachable are told apart."""
        if not self.holds_metadata:
            return DenialReason.METADATA_UNAVAILABLE
        result = self._call(self._metadata_backend("metadata").get_resource_metadata, kind, key)
        if not isinstance(result, RemoteFailure):
            return result.value
        if result.error_type is MemoryErrorType.NOT_FOUND:
            return None
        if result.error_type is MemoryErrorType.SERIALIZATION:
            return DenialReason.INVALID_METADATA
        return DenialReason.METADATA_UNAVAILABLE

    def presence(self, kind: str, key: str) -> Presence:
        """Return whether a payload exists, as far as the metadata plane can tell."""
        if not self.holds_metadata:
            return Presence.UNKNOWN
        result = self._call(self._metadata_backend("presence").resource_exists, kind, key)
        if isinstance(result, RemoteFailure) or type(result.value) is not bool:
            return Presence.UNKNOWN
        return Presence.PRESENT if result.value else Presence.ABSENT

    def load(self, codec: Codec[Any], key: str, mode: StorageMode, head: Head | None = None) -> Loaded | None:
        """Return a page, or None; the enrolment is looked at again after the payload came."""
        result = self._call(self._remote.get_page, codec.kind, key)
        if isinstance(result, RemoteFailure) and result.error_type is MemoryErrorType.NOT_FOUND:
            return None
        document = require_value("get_page", result)
        payload = codec.decode(document)
        if not self.holds_metadata:
            return Loaded(payload, payload.version)
        return Loaded(payload, payload.version, self.metadata(codec.kind, key), looked=True)

    def store(
        self,
        codec: Codec[Any],
        key: str,
        payload: Any,
        mode: StorageMode,
        *,
        expected_version: int | None,
        recheck: Recheck | None,
    ) -> int:
        """Store a page; return the version the remote memory gave it."""
        result = self._call(self._remote.put_page, codec.kind, key, codec.encode(payload), expected_version)
        if isinstance(result, RemoteFailure) and result.error_type is MemoryErrorType.CONFLICT:
            raise VersionConflictError(expected_version, None)
        payload.version = require_value("put_page", result)
        return int(payload.version)

    def create(
        self, codec: Codec[Any], key: str, payload: Any, metadata: ResourceMetadata | None, mode: StorageMode
    ) -> None:
        """Enrol first, store second; undo both if the payload cannot be stored.

        Where the payload's absence cannot be confirmed the enrolment stays, so that a
        payload that did arrive is protected.
        """
        if metadata is not None:
            self.put_metadata(key, metadata, unique=False)
        payload.version = 0
        try:
            result = self._call(self._remote.put_page, codec.kind, key, codec.encode(payload), ABSENT)
            require_value("put_page", result)
        except BaseException as error:
            if metadata is not None and not self._undo(codec.kind, key):
                error.add_note("the enrolment was kept: whether the payload was stored could not be confirmed")
            raise

    def _undo(self, kind: str, key: str) -> bool:
        gone = self._call(self._remote.delete_page, kind, key)
        missing = isinstance(gone, RemoteFailure) and gone.error_type is MemoryErrorType.NOT_FOUND
        if isinstance(gone, RemoteFailure) and not missing:
            return False
        if self.presence(kind, key) is not Presence.ABSENT:
            return False
        removed = self._call(self._metadata_backend("undo").delete_resource_metadata, kind, key)
        return not isinstance(removed, RemoteFailure)

    def delete(self, kind: str, key: str, *, recheck: Recheck | None, reserve: bool) -> bool:
        """Remove a page and, unless it stays reserved, its enrolment."""
        result = self._call(self._remote.delete_page, kind, key)
        missing = isinstance(result, RemoteFailure) and result.error_type is MemoryErrorType.NOT_FOUND
        found = False if missing else require_value("delete_page", result)
        if self.holds_metadata and not reserve:
            self.delete_metadata(kind, key)
        return found

    def put_metadata(self, key: str, metadata: ResourceMetadata, *, unique: bool) -> None:
        """Enrol a key; uniqueness is the remote memory's own business."""
        backend = self._metadata_backend("enrolment")
        require_value(
            "put_resource_metadata",
            self._call(backend.put_resource_metadata, metadata.resource_kind, key, metadata),
        )

    def delete_metadata(self, kind: str, key: str) -> bool:
        """Remove an enrolment."""
        result = self._call(self._metadata_backend("unenrolment").delete_resource_metadata, kind, key)
        if isinstance(result, RemoteFailure) and result.error_type is MemoryErrorType.NOT_FOUND:
            return False
        return bool(require_value("delete_resource_metadata", result))

    def entries(self, kind: str) -> Iterable[StoredEntry]:
        """Return the keys of a kind; their enrolments are looked up one by one when asked for."""
        keys = require_value("list_keys", self._call(self._remote.list_keys, kind))
        return [StoredEntry(key, None, present=True) for key in keys]
