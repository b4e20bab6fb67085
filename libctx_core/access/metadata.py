"""Enrolment metadata: which resource and boundary a storage key stands for, and its strict codec."""

import json
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeAlias

from libctx_core.access.identifiers import check_id
from libctx_core.access.kinds import ResourceKind, check_kind
from libctx_core.errors import InvalidMetadataError
from libctx_core.errors.access import DenialReason

SCHEMA_VERSION: Final = 1
MAX_DOCUMENT_BYTES: Final = 64 * 1024
"""Largest metadata document that is read; a real one has under 5 KiB."""

_FIELDS: Final = frozenset({"resourceKind", "resourceId", "boundaryId", "schemaVersion"})
_REQUIRED: Final = frozenset({"resourceKind", "resourceId", "schemaVersion"})
STANDARD_KINDS: Final = frozenset(str(kind) for kind in ResourceKind)


@dataclass(frozen=True, slots=True)
class ResourceMetadata:
    """The authorization identity of a resource; its storage key is only an address.

    Attributes:
        resource_kind: Kind of the resource.
        resource_id: What `Resource` selectors match.
        boundary_id: What `Boundary` selectors match, or None.
        schema_version: Version of this document; only 1 is usable.

    Raises:
        InvalidIdentifierError: An id is blank or not exactly a string.
        InvalidMetadataError: The version is not a positive integer.
    """

    resource_kind: str
    resource_id: str
    boundary_id: str | None = None
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        object.__setattr__(self, "resource_kind", check_kind(self.resource_kind))
        check_id(self.resource_id, "resource_id")
        if self.boundary_id is not None:
            check_id(self.boundary_id, "boundary_id")
        if type(self.schema_version) is not int or self.schema_version <= 0:
            raise InvalidMetadataError("schema_version", "must be a positive integer")

    @property
    def usable(self) -> bool:
        """Whether this release understands the document's version."""
        return self.schema_version == SCHEMA_VERSION


def metadata_for(kind: str, collection: str, key: str) -> ResourceMetadata:
    """Return what a resource of a library is enrolled with by default, e.g. ``thread:{collection}/{key}``.

    A slash in the collection is escaped, so that no two places share an id; the boundary
    is the collection.
    """
    space = collection.replace("%", "%25").replace("/", "%2F")
    return ResourceMetadata(kind, f"{str(kind).lower()}:{space}/{key}", collection)


MetadataState: TypeAlias = ResourceMetadata | DenialReason | None
"""What a metadata plane knows of a key: a document, nothing (None), or why it cannot say."""


def encode_metadata(metadata: ResourceMetadata) -> bytes:
    """Return the sidecar document, UTF-8 JSON with the wire names of the schema."""
    return json.dumps(
        {
            "resourceKind": metadata.resource_kind,
            "resourceId": metadata.resource_id,
            "boundaryId": metadata.boundary_id,
            "schemaVersion": metadata.schema_version,
        },
        ensure_ascii=False,
    ).encode()


def decode_metadata(document: bytes, kinds: Container[str] = STANDARD_KINDS) -> ResourceMetadata:
    """Read a sidecar document; anything that is not exactly schema version 1 is refused.

    Refused are byte order marks, invalid UTF-8, duplicate and unknown fields (an unknown
    field could be a restriction), numbers that are no plain integers, and kinds outside
    `kinds`.

    Raises:
        InvalidMetadataError: With the first field that is wrong.
    """
    return _decode_standard(document) if kinds is STANDARD_KINDS else _decode(document, kinds)


@lru_cache(maxsize=4096)
def _decode_standard(document: bytes) -> ResourceMetadata:
    return _decode(document, STANDARD_KINDS)


def _decode(document: bytes, kinds: Container[str]) -> ResourceMetadata:
    fields = _parse(document)
    if unknown := fields.keys() - _FIELDS:
        raise InvalidMetadataError("document", f"holds {len(unknown)} unknown fields")
    if missing := _REQUIRED - fields.keys():
        raise InvalidMetadataError(min(missing), "is missing")
    version = fields["schemaVersion"]
    if type(version) is not int or version != SCHEMA_VERSION:
        raise InvalidMetadataError("schemaVersion", f"must be {SCHEMA_VERSION}")
    kind = fields["resourceKind"]
    if type(kind) is not str or kind not in kinds:
        raise InvalidMetadataError("resourceKind", "is not a known kind")
    try:
        return ResourceMetadata(kind, fields["resourceId"], fields.get("boundaryId"), version)
    except ValueError as error:
        raise InvalidMetadataError("document", str(error)) from error


def _parse(document: bytes) -> dict[str, Any]:
    if len(document) > MAX_DOCUMENT_BYTES:
        raise InvalidMetadataError("document", f"exceeds {MAX_DOCUMENT_BYTES} bytes")
    try:
        fields = json.loads(document.decode("utf-8"), object_pairs_hook=_unique_fields, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidMetadataError("document", "is not strict JSON") from error
    if type(fields) is not dict:
        raise InvalidMetadataError("document", "is not an object")
    return fields


def _unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("duplicate field")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
