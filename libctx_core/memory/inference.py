"""The port to a model that answers in a schema."""

from typing import Generic, Protocol, TypeVar

from pydantic import Field

from libctx_core.sources.base import Value

InputT_contra = TypeVar("InputT_contra", contravariant=True)
OutputT = TypeVar("OutputT")


class InferenceUsage(Value):
    """What a call of a model cost.

    Attributes:
        requests: Requests sent.
        input_tokens: Tokens read.
        output_tokens: Tokens written.
    """

    requests: int = Field(default=0, ge=0)
    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)


class GenerationResult(Value, Generic[OutputT]):
    """A model's answer, in its schema, and what it cost."""

    output: OutputT
    usage: InferenceUsage = InferenceUsage()


class StructuredGenerator(Protocol[InputT_contra, OutputT]):
    """Asks a model for output of one schema.

    An implementation raises `InferenceUnavailableError`, `InferenceTimeoutError`,
    `InferenceConfigurationError` or `InvalidInferenceOutputError`, and nothing else.
    """

    async def generate(self, value: InputT_contra, /) -> GenerationResult[OutputT]:
        """Return the model's output for one input."""
        ...
