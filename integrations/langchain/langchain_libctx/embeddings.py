"""Embeddings across the border: the library's embedder for LangChain, and any LangChain embeddings for the library."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from libctx_core.concurrency import run_sync
from libctx_core.errors import EmbeddingDimensionError
from libctx_core.ports import Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PROBE = "dimension"


class LibraryEmbeddings(Embeddings):
    """An embedder of the library as LangChain `Embeddings`; by default the one that is packaged.

    The packaged embedder is a static table: it needs no network, no key and no model
    server, and answers in microseconds.

    Args:
        embedder: Another embedder.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        if embedder is None:
            from libctx_core.embedding import StaticEmbedder

            embedder = StaticEmbedder()
        self.embedder = embedder

    @property
    def dimension(self) -> int:
        """Length of every vector."""
        return self.embedder.dimension

    @property
    def profile_id(self) -> str:
        """Identity of the embedder; vectors of two profiles are never compared."""
        return self.embedder.profile_id

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector per text."""
        vectors: list[list[float]] = self.embedder.embed_documents(texts).tolist() if texts else []
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a question."""
        vector: list[float] = self.embedder.embed_query(text).tolist()
        return vector

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """See `embed_documents`; one thread hop."""
        return await run_sync(self.embed_documents, texts)

    async def aembed_query(self, text: str) -> list[float]:
        """See `embed_query`; one thread hop."""
        return await run_sync(self.embed_query, text)


class LangChainEmbedder:
    """LangChain `Embeddings` as an embedder of a library: ``LibraryOfContext(path, embedder=LangChainEmbedder(…))``.

    Args:
        embeddings: Any embeddings.
        profile_id: Identity of model and settings; by default class and model name.
        dimension: Length of the vectors; by default one text is embedded to find out.
    """

    def __init__(self, embeddings: Embeddings, *, profile_id: str | None = None, dimension: int | None = None) -> None:
        self.embeddings = embeddings
        self.profile_id = profile_id or profile_of(embeddings)
        self.dimension = len(embeddings.embed_query(_PROBE)) if dimension is None else dimension

    def embed_documents(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape ``(len(texts), dimension)``, each of unit length or zero.

        Raises:
            EmbeddingDimensionError: A vector has another length.
        """
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        return self._rows(self.embeddings.embed_documents(list(texts)))

    def embed_query(self, text: str, /) -> "NDArray[np.float32]":
        """Return the vector of a question, shape ``(dimension,)``, of unit length or zero.

        Raises:
            EmbeddingDimensionError: It has another length.
        """
        row: NDArray[np.float32] = self._rows([self.embeddings.embed_query(text)])[0]
        return row

    def _rows(self, vectors: Sequence[Sequence[float]]) -> "NDArray[np.float32]":
        import numpy as np

        for vector in vectors:
            if len(vector) != self.dimension:
                raise EmbeddingDimensionError(self.dimension, len(vector))
        rows = np.asarray(vectors, np.float32)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: NDArray[np.float32] = np.divide(rows, norms, out=np.zeros_like(rows), where=norms != 0)
        return unit


def profile_of(embeddings: Embeddings) -> str:
    """Return an identity of embeddings: their class, and their model where they name one."""
    if isinstance(embeddings, LibraryEmbeddings):
        return embeddings.profile_id
    name: Any = next(
        (
            value
            for attribute in ("model", "model_name", "model_id", "deployment")
            if isinstance(value := getattr(embeddings, attribute, None), str) and value
        ),
        "",
    )
    kind = f"{type(embeddings).__module__}.{type(embeddings).__qualname__}"
    return f"langchain:{kind}:{name}" if name else f"langchain:{kind}"
