"""What a scope refuses, and misuse of scopes, resource metadata and their administration.

`Operation` and `DenialReason` live here because a denial is made of them, and errors
stand below every other room; `libctx_core.access` exports them.
"""

from enum import StrEnum

from libctx_core.errors.base import InvalidInputError, LibctxError


class Operation(StrEnum):
    """What a caller wants to do with a resource."""

    READ = "READ"
    WRITE = "WRITE"
    CREATE = "CREATE"
    DELETE = "DELETE"
    ENUMERATE = "ENUMERATE"
    DELEGATE = "DELEGATE"


class DenialReason(StrEnum):
    """Why an operation was refused."""

    MISSING_PERMISSION = "MISSING_PERMISSION"
    METADATA_UNAVAILABLE = "METADATA_UNAVAILABLE"
    INVALID_METADATA = "INVALID_METADATA"
    UNSAFE_REFERENCE = "UNSAFE_REFERENCE"
    UNSCOPED_EXECUTION = "UNSCOPED_EXECUTION"


_HINTS = {
    DenialReason.MISSING_PERMISSION: "the active scope holds no selector for it; nested scopes intersect by "
    "equal selectors, so a resource inside a granted boundary needs attenuate_for_resources or layered=True",
    DenialReason.METADATA_UNAVAILABLE: "enrolment metadata is required and none could be read; enrol the resource",
    DenialReason.INVALID_METADATA: "its enrolment metadata is malformed, unsupported, of another kind or orphaned",
    DenialReason.UNSAFE_REFERENCE: "a retained mutable reference is not handed out under a scope; ask for a copy",
    DenialReason.UNSCOPED_EXECUTION: "no scope is active and unscoped use is refused here; install a scope, "
    "and carry it into threads with propagate() or ScopedExecutor",
}


class ContextAccessDenied(LibctxError, PermissionError):
    """An operation was refused before any protected value, callback or backend was touched.

    The message names the operation and the kind, never the key: it may reach a model.

    Attributes:
        operation: What was attempted.
        resource_kind: Kind of the resource, e.g. ``"CONTEXT_WINDOW"``.
        resource_key: Its storage key, or one of ``<execution>``, ``<enumeration>``,
            ``<remote>``, ``<eviction>``, ``<banked-context>``; for diagnostics only.
        reason: Why it was refused.
    """

    code = "access_denied"

    def __init__(
        self,
        operation: Operation,
        resource_kind: str,
        resource_key: str,
        reason: DenialReason = DenialReason.MISSING_PERMISSION,
    ) -> None:
        super().__init__(
            f"Context access denied for {operation.lower()} {str(resource_kind).lower()}: {_HINTS[reason]}."
        )
        self.operation = operation
        self.resource_kind = str(resource_kind)
        self.resource_key = resource_key
        self.reason = reason


class InvalidMetadataError(InvalidInputError):
    """A metadata document is not exactly what schema version 1 allows."""

    code = "invalid_metadata"


class ResourceExistsError(LibctxError, RuntimeError):
    """A resource cannot be created: its payload or its metadata exists already.

    Attributes:
        resource_kind: Kind of the resource.
        resource_key: Its storage key.
    """

    code = "resource_exists"

    def __init__(self, resource_kind: str, resource_key: str) -> None:
        super().__init__(f"the {str(resource_kind).lower()} exists already; use another key")
        self.resource_kind = str(resource_kind)
        self.resource_key = resource_key


class ScopeActiveError(LibctxError, RuntimeError):
    """Trusted administration was attempted inside a scope.

    Attributes:
        action: The administrative action.
    """

    code = "scope_active"

    def __init__(self, action: str) -> None:
        super().__init__(f"{action} is trusted administration; call it outside every scope")
        self.action = action


class AdminTokenError(LibctxError, PermissionError):
    """Administration needs the token that was handed out when the authority was built.

    Attributes:
        action: The administrative action.
    """

    code = "admin_token"

    def __init__(self, action: str) -> None:
        super().__init__(f"{action} needs the administration token, because unscoped use is refused here")
        self.action = action


class ScopeForgeryError(LibctxError, TypeError):
    """A scope was built, copied, changed or pickled by other means than its `ContextAccess`."""

    code = "scope_forgery"

    def __init__(self, attempt: str) -> None:
        super().__init__(f"{attempt}: scopes come only from issue_root_scope() and are narrowed, never copied")
        self.attempt = attempt


class ScopeLeakError(LibctxError, RuntimeError):
    """A scope was left in another context, or in another order, than it was entered."""

    code = "scope_leak"

    def __init__(self) -> None:
        super().__init__(
            "a scope was exited out of order or in a foreign context; do not hold a scope across a yield, "
            "wrap generators with wrap_iter() or wrap_aiter()"
        )


class MetadataCapabilityError(LibctxError, RuntimeError):
    """The backend that holds a resource cannot hold metadata."""

    code = "metadata_capability"

    def __init__(self, action: str) -> None:
        super().__init__(f"{action} needs a backend that declares the resource_metadata capability")
        self.action = action
