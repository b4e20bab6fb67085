"""What can go wrong with sources, artifacts and the cursors of triggers."""

from libctx_core.errors.base import LibctxError


class SourceError(LibctxError):
    """Base of what goes wrong with sources."""

    code = "source"


class SourceNotFoundError(SourceError, LookupError):
    """The catalog holds no source equal to the one asked for.

    Attributes:
        source: The source, or its reference.
    """

    code = "source_not_found"

    def __init__(self, source: object) -> None:
        super().__init__(f"no stored {type(source).__name__} equals the one asked for")
        self.source = source


class SourceAdapterNotFoundError(SourceError, LookupError):
    """No adapter is registered for exactly this type; subclasses do not count.

    Attributes:
        route: ``"input"`` or ``"source"``.
        requested_type: The type that was to be routed.
    """

    code = "source_adapter_not_found"

    def __init__(self, route: str, requested_type: type[object]) -> None:
        super().__init__(
            f"no source adapter takes {route} values of exactly the type {requested_type.__name__}; register one"
        )
        self.route = route
        self.requested_type = requested_type


class InvalidSourceAdapterError(SourceError, TypeError):
    """An adapter lacks something that the catalog needs.

    Attributes:
        adapter_type: Class of the adapter.
        field: The attribute at fault.
        detail: What it must be.
    """

    code = "invalid_source_adapter"

    def __init__(self, adapter_type: type[object], field: str, detail: str) -> None:
        super().__init__(f"source adapter {adapter_type.__name__}: {field} {detail}")
        self.adapter_type = adapter_type
        self.field = field
        self.detail = detail


class SourceConflictError(SourceError, ValueError):
    """Two adapters claim one route, or two different sources one identity.

    Attributes:
        field: ``"input_class"``, ``"source_class"``, ``"name"`` or ``"identity"``.
        value: What both claim.
    """

    code = "source_conflict"

    def __init__(self, field: str, value: object) -> None:
        label = value.__name__ if isinstance(value, type) else type(value).__name__
        detail = "already names a source with other content" if field == "identity" else "is claimed by two adapters"
        super().__init__(f"{field} ({label}) {detail}")
        self.field = field
        self.value = value


class InvalidSourceReferenceError(SourceError, ValueError):
    """A part of a source reference is blank, padded or too long.

    Attributes:
        field: The part.
        detail: What is wrong with it.
    """

    code = "invalid_source_reference"

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field} {detail}")
        self.field = field
        self.detail = detail


class InvalidSourceEntryError(SourceError, TypeError):
    """A catalog was handed something that is not a source.

    Attributes:
        actual_type: Its type.
    """

    code = "invalid_source_entry"

    def __init__(self, actual_type: type[object]) -> None:
        super().__init__(f"expected a Source, got {actual_type.__name__}")
        self.actual_type = actual_type


class InvalidSourceResultError(SourceError, TypeError):
    """An adapter returned another type than it declared.

    Attributes:
        adapter_name: Name of the adapter.
        operation: What it was asked to do.
        expected_type: Type it declared.
        actual_type: Type it returned.
    """

    code = "invalid_source_result"

    def __init__(
        self, adapter_name: str, operation: str, expected_type: type[object], actual_type: type[object]
    ) -> None:
        super().__init__(
            f"{operation} of adapter {adapter_name!r} returned {actual_type.__name__}, not {expected_type.__name__}"
        )
        self.adapter_name = adapter_name
        self.operation = operation
        self.expected_type = expected_type
        self.actual_type = actual_type


class SourceUnreadableError(SourceError, ValueError):
    """The material of a source cannot be understood: malformed, empty, binary, or wrongly encoded.

    Attributes:
        origin: Where the material was found.
        detail: What is wrong with it.
    """

    code = "source_unreadable"

    def __init__(self, origin: str, detail: str) -> None:
        super().__init__(f"{origin}: {detail}")
        self.origin = origin
        self.detail = detail


class SourceTooLargeError(SourceUnreadableError):
    """The material of a source is larger than an adapter may take in.

    Attributes:
        size: Bytes found.
        limit: Bytes allowed.
    """

    code = "source_too_large"

    def __init__(self, origin: str, size: int, limit: int) -> None:
        super().__init__(origin, f"holds {size} bytes, more than the {limit} that can be taken in; split it")
        self.size = size
        self.limit = limit


class SourceChangedError(SourceError, RuntimeError):
    """A referenced source no longer holds what was referenced.

    Attributes:
        origin: Where the material was found.
        detail: What differs.
    """

    code = "source_changed"

    def __init__(self, origin: str, detail: str) -> None:
        super().__init__(f"{origin}: changed since it was referenced ({detail}); resolve it again")
        self.origin = origin
        self.detail = detail


class SourceVanishedError(SourceError, LookupError):
    """A referenced source is no longer where it was.

    Attributes:
        origin: Where the material was found.
    """

    code = "source_vanished"

    def __init__(self, origin: str) -> None:
        super().__init__(f"{origin}: no longer there, and its content was referenced, not captured")
        self.origin = origin


class GenerationConflictError(LibctxError, RuntimeError):
    """A trigger's cursor was moved by somebody else in the meantime; nothing was written.

    Attributes:
        binding: Name under which the trigger keeps its cursor.
        expected: Generation the caller went by.
        current: Generation that is stored.
    """

    code = "generation_conflict"

    def __init__(self, binding: str, expected: int, current: int) -> None:
        super().__init__(f"the cursor of {binding!r} is at generation {current}, not {expected}; read it again")
        self.binding = binding
        self.expected = expected
        self.current = current


class ArtifactError(LibctxError):
    """Base of what goes wrong with artifacts."""

    code = "artifact"


class ArtifactNotFoundError(ArtifactError, LookupError):
    """No revision equal to the one asked for is visible.

    Attributes:
        artifact: The artifact, or its reference.
    """

    code = "artifact_not_found"

    def __init__(self, artifact: object) -> None:
        super().__init__(f"no stored revision equals the {type(artifact).__name__} asked for")
        self.artifact = artifact


class InvalidArtifactReferenceError(ArtifactError, ValueError):
    """A part of an artifact reference is blank, padded or too long.

    Attributes:
        field: The part.
        detail: What is wrong with it.
    """

    code = "invalid_artifact_reference"

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field} {detail}")
        self.field = field
        self.detail = detail


class ArtifactFamilyMismatchError(ArtifactError, ValueError):
    """A draft of one family was to revise an artifact of another.

    Attributes:
        artifact: The artifact.
        draft: The draft.
    """

    code = "artifact_family_mismatch"

    def __init__(self, artifact: object, draft: object) -> None:
        families = [getattr(type(value), "family", type(value).__name__) for value in (artifact, draft)]
        super().__init__(f"a {families[1]!r} draft cannot revise a {families[0]!r} artifact")
        self.artifact = artifact
        self.draft = draft


class RevisionConflictError(ArtifactError, RuntimeError):
    """The revision a write was based on is no longer the latest; nothing was written.

    Attributes:
        artifact: What the caller went by: a revision, or the draft of a first one.
        current: The latest revision.
    """

    code = "revision_conflict"

    def __init__(self, artifact: object, current: object) -> None:
        base, latest = (getattr(value, "revision", None) for value in (artifact, current))
        went_by = "no revision" if base is None else f"revision {base}"
        super().__init__(f"the write was based on {went_by}, the latest is revision {latest}; read it and try again")
        self.artifact = artifact
        self.current = current
