"""Models that answer from a script: no network, no chance."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from libctx_core.memory.inference import GenerationResult, InferenceUsage

InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")

ONE_REQUEST = InferenceUsage(requests=1)


class ScriptedGenerator(Generic[InputT, OutputT]):
    """A `StructuredGenerator` that gives one scripted answer per call.

    Args:
        answers: Answers in order: an output, a function from the input to an output, or
            an exception to raise. The last one is repeated.
        usage: What each call is said to cost.

    Attributes:
        inputs: The inputs of all calls so far.
    """

    def __init__(self, answers: Iterable[Any], *, usage: InferenceUsage = ONE_REQUEST) -> None:
        self._answers = list(answers)
        self._usage = usage
        self.inputs: list[InputT] = []

    async def generate(self, value: InputT, /) -> GenerationResult[OutputT]:
        """Return the next scripted answer."""
        self.inputs.append(value)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, BaseException):
            raise answer
        output: OutputT = answer(value) if isinstance(answer, Callable) else answer  # type: ignore[arg-type]
        return GenerationResult[Any](output=output, usage=self._usage)
