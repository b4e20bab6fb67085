"""A LangChain chat model as the model behind memory extraction and reranking."""

import asyncio
from typing import Any, Generic, TypeVar

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, ValidationError

from libctx_core.errors import (
    InferenceConfigurationError,
    InferenceError,
    InferenceTimeoutError,
    InferenceUnavailableError,
    InvalidInferenceOutputError,
    InvalidInputError,
)
from libctx_core.memory import GenerationResult, InferenceUsage

InputT = TypeVar("InputT", bound=BaseModel)
OutputT = TypeVar("OutputT", bound=BaseModel)

DEFAULT_TIMEOUT = 60.0
"""Seconds a model is given for one answer."""


class ChatModelGenerator(Generic[InputT, OutputT]):
    """Asks a chat model for output of one schema.

    ```python
    generator = ChatModelGenerator(
        model, MemoryExtractionOutput, extraction_instructions(MemoryExtractionProfile.CONVERSATION)
    )
    pipeline = LLMMemoryCandidatePipeline(generator)
    ```

    Args:
        model: A chat model that supports structured output.
        output: The schema.
        instructions: System prompt.
        operation: Name of what is asked, for errors.
        timeout: Seconds the model is given.
        method: Method of `with_structured_output`, where the model's default will not do.
    """

    def __init__(
        self,
        model: BaseChatModel,
        output: type[OutputT],
        instructions: str,
        *,
        operation: str = "generation",
        timeout: float = DEFAULT_TIMEOUT,
        method: str | None = None,
    ) -> None:
        self._output = output
        self._instructions = instructions
        self._operation = operation
        self._timeout = timeout
        options: dict[str, Any] = {"include_raw": True} if method is None else {"include_raw": True, "method": method}
        try:
            self._runnable = model.with_structured_output(output, **options)
        except NotImplementedError as error:
            raise InferenceConfigurationError(f"{type(model).__name__} has no structured output") from error

    async def generate(self, value: InputT, /) -> GenerationResult[OutputT]:
        """Return the model's output for one input, and what it cost.

        Raises:
            InferenceTimeoutError: The model did not answer in time.
            InferenceUnavailableError: The model could not be reached, or refused.
            InvalidInferenceOutputError: The answer is not in the schema.
        """
        messages = [SystemMessage(self._instructions), HumanMessage(value.model_dump_json())]
        try:
            answer: Any = await asyncio.wait_for(self._runnable.ainvoke(messages), self._timeout)
        except TimeoutError as error:
            raise InferenceTimeoutError(self._operation, self._timeout) from error
        except InferenceError:
            raise
        except Exception as error:
            # providers raise classes of their own; whatever it is, the port has one word for it
            raise InferenceUnavailableError(self._operation) from error
        return GenerationResult(output=self._checked(answer), usage=usage_of(answer.get("raw")))

    def _checked(self, answer: Any) -> OutputT:
        parsed, failed = answer.get("parsed"), answer.get("parsing_error")
        if failed is not None or parsed is None:
            raise InvalidInferenceOutputError(self._operation, "the answer is not in its schema")
        if isinstance(parsed, self._output):
            return parsed
        try:
            return self._output.model_validate(parsed)
        except (ValidationError, InvalidInputError) as error:
            raise InvalidInferenceOutputError(self._operation, "the answer is not in its schema") from error


def usage_of(message: Any) -> InferenceUsage:
    """Return what a reply cost, as far as the provider tells."""
    used = message.usage_metadata if isinstance(message, AIMessage) else None
    if used is None:
        return InferenceUsage(requests=1)
    return InferenceUsage(requests=1, input_tokens=used["input_tokens"], output_tokens=used["output_tokens"])
