"""What a source is, and how it is referred to."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from libctx_core.errors import InvalidSourceReferenceError
from libctx_core.sources.base import Checked, Value

MAX_SCOPE_ID_LENGTH = 256
"""Characters of a collection that holds sources, artifacts or memories."""

MAX_SOURCE_TYPE_LENGTH = 128
MAX_SOURCE_ID_LENGTH = 256


def reference_fault(value: object, maximum: int) -> str | None:
    """Return what is wrong with one part of a reference, or None.

    Args:
        value: The part: an adapter's name, a source's name, a family, an artifact id.
        maximum: Characters it may have.
    """
    if not isinstance(value, str) or not value.strip():
        return "must be a non-empty string"
    if value != value.strip():
        return "must not contain leading or trailing whitespace"
    if len(value) > maximum:
        return f"must not exceed {maximum} characters"
    return None


def check_scope_id(value: object) -> str:
    """Return `value` if it can name the collection of sources, artifacts and memories.

    Raises:
        InvalidSourceReferenceError: It is no text, blank, padded, or over 256 characters.
    """
    fault = reference_fault(value, MAX_SCOPE_ID_LENGTH)
    if fault is not None:
        raise InvalidSourceReferenceError("scope_id", fault)
    return str(value)


class SourceMaterialization(StrEnum):
    """Where the value read for a source comes from."""

    CAPTURED = "captured"
    """Its bytes are in the library."""

    REFERENCED = "referenced"
    """It is read from its own place; the library holds a fingerprint."""


class Source(Checked):
    """Description of one source; each adapter has its own subclass.

    Attributes:
        name: Stable identity within the adapter, at most 256 characters.
        materialization: Whether the library holds the bytes or only points at them.
        description: What it is, for people and for models.
    """

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    name: str
    materialization: SourceMaterialization
    description: str | None = None


class SourceRef(Value):
    """A stable reference to one source of a catalog.

    Attributes:
        source_type: Name of the adapter.
        source_id: Name of the source.
    """

    source_type: str
    source_id: str

    @field_validator("source_type", "source_id")
    @classmethod
    def validate_reference_part(cls, value: str, info: ValidationInfo) -> str:
        """Refuse a blank, padded or overlong part."""
        maximum = MAX_SOURCE_TYPE_LENGTH if info.field_name == "source_type" else MAX_SOURCE_ID_LENGTH
        fault = reference_fault(value, maximum)
        if fault is not None:
            raise InvalidSourceReferenceError(str(info.field_name), fault)
        return value


class SourceCursor(Value):
    """How far a journal of sources was read: 0 for not at all."""

    sequence: int = 0


class ComponentGroup(BaseModel):
    """A set of live components, bound by name and not validated further."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
