"""What can go wrong when a model is asked for structured output or vectors."""

from libctx_core.errors.base import LibctxError


class InferenceError(LibctxError):
    """Base of what goes wrong with a model behind a port."""

    code = "inference"


class InferenceConfigurationError(InferenceError, RuntimeError):
    """The model refuses the request as it is set up; trying again does not help.

    Attributes:
        detail: What is set up wrongly.
    """

    code = "inference_configuration"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class InferenceUnavailableError(InferenceError, RuntimeError):
    """The model cannot be reached now; trying later may help.

    Attributes:
        operation: What it was asked to do.
    """

    code = "inference_unavailable"

    def __init__(self, operation: str) -> None:
        super().__init__(f"the model is not available for {operation}; try again later")
        self.operation = operation


class InferenceTimeoutError(InferenceError, TimeoutError):
    """The model did not answer in time.

    Attributes:
        operation: What it was asked to do.
        timeout_seconds: How long it was given.
    """

    code = "inference_timeout"

    def __init__(self, operation: str, timeout_seconds: float) -> None:
        super().__init__(f"the model did not answer {operation} within {timeout_seconds:g} s")
        self.operation = operation
        self.timeout_seconds = timeout_seconds


class InvalidInferenceOutputError(InferenceError, ValueError):
    """The model's output breaks a rule; nothing of it was used.

    Attributes:
        operation: What it was asked to do.
        detail: The rule.
    """

    code = "invalid_inference_output"

    def __init__(self, operation: str, detail: str) -> None:
        super().__init__(f"{operation}: {detail}")
        self.operation = operation
        self.detail = detail
