"""What can go wrong with banked pages, their remote plane and the tools over them."""

from enum import StrEnum
from typing import NamedTuple

from libctx_core.errors.base import InvalidInputError, LibctxError


class PayloadError(InvalidInputError):
    """A stored or received page is not what its kind says; nothing was changed."""

    code = "payload"


class PatternError(InvalidInputError):
    """A regular expression is malformed, too long, or could take exponential time."""

    code = "pattern"


class VersionConflictError(LibctxError, RuntimeError):
    """A page changed since it was read; read it again and repeat the change.

    Attributes:
        expected: Version the caller had.
        found: Version that is stored, None if the page is gone.
    """

    code = "version_conflict"

    def __init__(self, expected: int | None, found: int | None) -> None:
        super().__init__(f"the page has version {found}, not {expected}; read it again and repeat the change")
        self.expected = expected
        self.found = found


class RetrievalEmptyError(LibctxError, RuntimeError):
    """A registered retrieval function returned nothing for its page."""

    code = "retrieval_empty"

    def __init__(self) -> None:
        super().__init__("the retrieval function returned None; return a page, or remove the function")


class WriteBackError(LibctxError, RuntimeError):
    """A registered write-back function returned False: the page was not stored."""

    code = "write_back"

    def __init__(self) -> None:
        super().__init__("the write-back function returned False, so nothing was stored")


class PageLockedError(LibctxError, PermissionError):
    """A lock hides the page, so it cannot be changed."""

    code = "page_locked"

    def __init__(self) -> None:
        super().__init__("the page is locked")


class ToolConflictError(LibctxError, ValueError):
    """A tool name is taken by another function.

    Attributes:
        name: The name.
    """

    code = "tool_conflict"

    def __init__(self, name: str) -> None:
        super().__init__(f"the tool name {name!r} is registered for another function")
        self.name = name


class MemoryErrorType(StrEnum):
    """Class of a remote failure, as the wire names it."""

    AUTH = "auth"
    BAD_REQUEST = "badRequest"
    NOT_FOUND = "notFound"
    CONFLICT = "conflict"
    TRANSPORT = "transport"
    SERIALIZATION = "serialization"
    SERVER = "server"
    UNKNOWN = "unknown"


class RemoteFailure(NamedTuple):
    """What a remote memory answered instead of a result.

    Attributes:
        status_code: HTTP status, None where there was no answer.
        error_type: Class of the failure.
        message: For people; it may quote the server, never a protected value.
    """

    status_code: int | None
    error_type: MemoryErrorType
    message: str = ""


class MemoryRemoteError(LibctxError, RuntimeError):
    """A remote memory operation failed.

    Attributes:
        operation: The operation.
        failure: Status, class and message of the failure.
    """

    code = "memory_remote"

    def __init__(self, operation: str, failure: RemoteFailure) -> None:
        super().__init__(f"{operation} failed remotely: {failure.error_type} (status {failure.status_code})")
        self.operation = operation
        self.failure = failure
