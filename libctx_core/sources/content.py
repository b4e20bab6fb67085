"""The built-in adapter: text that a program hands over."""

from pydantic import Field, JsonValue, field_validator

from libctx_core.errors import InvalidInputError, InvalidTextError
from libctx_core.models import is_storable
from libctx_core.sources.adapters import BaseSourceAdapter
from libctx_core.sources.base import Value
from libctx_core.sources.values import Source, SourceMaterialization


class ContentCapture(Value):
    """Text to be captured as a source.

    Attributes:
        source_id: Name it is stored under.
        content: The text.
        metadata: A JSON object that describes it.
    """

    source_id: str
    content: str
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("source_id", "content")
    @classmethod
    def validate_text(cls, value: str) -> str:
        """Refuse blank text and characters that cannot be stored."""
        if not value.strip():
            raise InvalidInputError("content", "must not be blank")
        if not is_storable(value):
            raise InvalidTextError("content", "holds a NUL character or a lone surrogate")
        return value


class ContentSource(Source):
    """Captured text.

    Attributes:
        content: The text, as it was handed over.
        metadata: A JSON object that describes it.
    """

    content: str
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


class ContentAdapter(BaseSourceAdapter[ContentCapture, ContentSource, str]):
    """Captures text; reading it gives the same text back."""

    input_class = ContentCapture
    name = "content"
    source_class = ContentSource

    def describe(self, value: ContentCapture, /) -> ContentSource:
        """Return a captured source that holds the text."""
        return ContentSource(
            name=value.source_id,
            materialization=SourceMaterialization.CAPTURED,
            content=value.content,
            metadata=value.metadata,
        )

    def load(self, source: ContentSource, /) -> str:
        """Return the text."""
        return source.content
