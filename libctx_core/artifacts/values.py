"""Artifacts: immutable revisions of something derived, with the evidence they were made from."""

from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field, PlainValidator, StrictInt, ValidationInfo, field_validator, model_validator

from libctx_core.errors import InvalidArtifactReferenceError, InvalidInputError
from libctx_core.sources.base import Value
from libctx_core.sources.values import SourceRef, reference_fault

MAX_ARTIFACT_FAMILY_LENGTH = 128
MAX_ARTIFACT_ID_LENGTH = 128

ContentT = TypeVar("ContentT")


def check_part(field: str, value: object, maximum: int) -> None:
    """Refuse a part of an artifact's identity that is blank, padded or too long.

    Raises:
        InvalidArtifactReferenceError: It is.
    """
    fault = reference_fault(value, maximum)
    if fault is not None:
        raise InvalidArtifactReferenceError(field, fault)


class ArtifactRef(Value):
    """A stable reference to one exact revision.

    Attributes:
        family: Family of the artifact, e.g. ``"memory"``.
        artifact_id: Its id within the family.
        revision: The revision, from 1.
    """

    family: str
    artifact_id: str
    revision: StrictInt = Field(ge=1)

    @field_validator("family", "artifact_id")
    @classmethod
    def validate_identity(cls, value: str, info: ValidationInfo) -> str:
        """Refuse a blank, padded or overlong part."""
        maximum = MAX_ARTIFACT_FAMILY_LENGTH if info.field_name == "family" else MAX_ARTIFACT_ID_LENGTH
        check_part(str(info.field_name), value, maximum)
        return value


class ArtifactLineage(Value):
    """The direct evidence of one revision, in the order the writer gave it.

    Attributes:
        sources: Sources it was made from.
        artifacts: Revisions it was made from.
    """

    sources: tuple[SourceRef, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()


class ArtifactDraft(Value, Generic[ContentT]):
    """Content and complete evidence of a revision to be written.

    Attributes:
        content: The content.
        sources: Sources it was made from.
        artifacts: Revisions it was made from.
    """

    family: ClassVar[str] = "artifact"

    content: ContentT
    sources: tuple[SourceRef, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()

    @model_validator(mode="after")
    def validate_family(self) -> Self:
        """Refuse a class whose family cannot be part of a reference."""
        check_part("family", self.family, MAX_ARTIFACT_FAMILY_LENGTH)
        return self


class Artifact(Value, Generic[ContentT]):
    """An immutable snapshot in the life of one artifact.

    Attributes:
        artifact_id: Id within the family.
        revision: Which snapshot, from 1.
        content: The content.
        lineage: The evidence it was made from.
    """

    family: ClassVar[str] = "artifact"

    artifact_id: str
    revision: StrictInt = Field(ge=1)
    content: ContentT
    lineage: ArtifactLineage = Field(default_factory=ArtifactLineage)

    @field_validator("artifact_id")
    @classmethod
    def validate_artifact_id(cls, value: str) -> str:
        """Refuse a blank, padded or overlong id."""
        check_part("artifact_id", value, MAX_ARTIFACT_ID_LENGTH)
        return value

    def as_ref(self) -> ArtifactRef:
        """Return an exact reference to this revision."""
        return ArtifactRef(family=self.family, artifact_id=self.artifact_id, revision=self.revision)


def _kept(value: object) -> object:
    if not isinstance(value, Artifact):
        raise InvalidInputError("artifact", f"must be an Artifact, not {type(value).__name__}")
    return value


AnyArtifact = Annotated[Artifact[Any], PlainValidator(_kept)]
"""An artifact of any family, kept as it is: its class says which family it is."""
