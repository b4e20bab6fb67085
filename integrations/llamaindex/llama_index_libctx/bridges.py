"""Models across the border: embedders both ways, and LlamaIndex's models behind the library's port."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import BaseModel, PrivateAttr, ValidationError
from llama_index.core.llms import LLM
from llama_index.core.prompts import ChatPromptTemplate

from libctx_core.concurrency import run_sync
from libctx_core.embedding import StaticEmbedder
from libctx_core.errors import (
    InferenceConfigurationError,
    InferenceTimeoutError,
    InferenceUnavailableError,
    InvalidInferenceOutputError,
    InvalidInputError,
)
from libctx_core.memory import GenerationResult, InferenceUsage
from libctx_core.ports import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OutputT = TypeVar("OutputT", bound=BaseModel)

_PROBE = "dimension"


class LibraryEmbedding(BaseEmbedding):
    """An embedder of the library as LlamaIndex embedding model: by default the packaged table.

    It needs no network, no key and no download, and gives the same vectors everywhere.

    Args:
        embedder: The embedder; the packaged static table by default.
        options: Fields of `BaseEmbedding`.
    """

    _embedder: Embedder = PrivateAttr()

    def __init__(self, embedder: Embedder | None = None, **options: Any) -> None:
        chosen = StaticEmbedder() if embedder is None else embedder
        options.setdefault("model_name", chosen.profile_id)
        super().__init__(**options)
        self._embedder = chosen

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the model is serialised."""
        return "LibraryEmbedding"

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = self._embedder.embed_documents(texts).tolist()
        return rows

    def _get_query_embedding(self, query: str) -> list[float]:
        row: list[float] = self._embedder.embed_query(query).tolist()
        return row

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await run_sync(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await run_sync(self._get_text_embeddings, texts)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await run_sync(self._get_query_embedding, query)


class LlamaIndexEmbedder:
    """A LlamaIndex embedding model as embedder of the library.

    Args:
        model: The model.
        profile_id: Identity of the model; by default its class and its name.
        dimension: Length of its vectors; None asks the model once.

    Raises:
        InvalidInputError: The model has no name, and no `profile_id` is given.
    """

    def __init__(self, model: BaseEmbedding, *, profile_id: str | None = None, dimension: int | None = None) -> None:
        if profile_id is None and model.model_name == "unknown":
            raise InvalidInputError("profile_id", "is needed for a model without a name: it tells its vectors apart")
        self._model = model
        self.profile_id = profile_id or f"llama-index/{type(model).__name__}/{model.model_name}"
        self.dimension = dimension or len(model.get_text_embedding(_PROBE))

    def embed_documents(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape ``(len(texts), dimension)``, each of unit length or zero."""
        return self._units(self._model.get_text_embedding_batch(list(texts)))

    def embed_query(self, text: str, /) -> "NDArray[np.float32]":
        """Return the vector of a question, shape ``(dimension,)``, of unit length or zero."""
        row: NDArray[np.float32] = self._units([self._model.get_query_embedding(text)])[0]
        return row

    def _units(self, rows: Sequence[Sequence[float]]) -> "NDArray[np.float32]":
        import numpy as np

        matrix = np.asarray(rows, np.float32).reshape(len(rows), self.dimension)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        return np.asarray(np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0), np.float32)


class LlamaIndexGenerator(Generic[OutputT]):
    """A LlamaIndex model as the library's `StructuredGenerator`.

    Args:
        llm: The model.
        output_cls: Schema of the answer.
        instructions: What the model is told; the input follows as JSON in a message of its own.
        operation: Name of the task in errors.
    """

    def __init__(self, llm: LLM, output_cls: type[OutputT], *, instructions: str, operation: str = "generate") -> None:
        self._llm = llm
        self._output_cls = output_cls
        self._instructions = instructions
        self._operation = operation
        self._prompt = ChatPromptTemplate(
            message_templates=[
                ChatMessage(role="system", content="{instructions}"),
                ChatMessage(role="user", content="{value}"),
            ]
        )

    async def generate(self, value: BaseModel, /) -> GenerationResult[OutputT]:
        """Return the model's answer in its schema.

        Raises:
            InvalidInferenceOutputError: The answer does not fit the schema.
            InferenceTimeoutError: The model did not answer in time.
            InferenceConfigurationError: The model cannot answer in a schema.
            InferenceUnavailableError: The model cannot be reached.
        """
        started = time.monotonic()
        try:
            output = await self._llm.astructured_predict(
                self._output_cls,
                self._prompt,
                instructions=self._instructions,
                value=value.model_dump_json(),
            )
        except (ValidationError, TypeError, ValueError, AssertionError) as error:
            raise InvalidInferenceOutputError(self._operation, "the answer does not fit its schema") from error
        except TimeoutError as error:
            raise InferenceTimeoutError(self._operation, time.monotonic() - started) from error
        except NotImplementedError as error:
            raise InferenceConfigurationError("the model cannot answer in a schema") from error
        except Exception as error:  # each client library has errors of its own
            raise InferenceUnavailableError(self._operation) from error
        return GenerationResult(output=output, usage=InferenceUsage(requests=1))
