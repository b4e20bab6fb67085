"""Searching the store by meaning: which texts are embedded, and how closeness is scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from langchain_core.embeddings import Embeddings

from langchain_libctx.extras import extra
from libctx_core.errors import EmbeddingDimensionError, InvalidInputError

with extra("langgraph", "the LangGraph store"):
    from langgraph.store.base import IndexConfig, PutOp, ensure_embeddings, get_text_at_path, tokenize_path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Distance = Literal["cosine", "l2", "inner_product"]
_DISTANCES = ("cosine", "l2", "inner_product")
WHOLE = "$"
"""The path that stands for the whole value."""


@dataclass(frozen=True, slots=True)
class Passage:
    """One text of one item that is to be embedded."""

    field: str
    text: str


class ItemIndex:
    """An index configuration, ready to be used.

    Args:
        config: LangGraph's `IndexConfig`: ``dims``, ``embed`` and optionally ``fields``
            (or ``text_fields``, as the SQLite store calls them) and ``distance_type``.

    Raises:
        InvalidInputError: An unknown distance, or dimensions that are no positive number.
    """

    def __init__(self, config: IndexConfig) -> None:
        settings: Mapping[str, Any] = config
        self.embeddings: Embeddings = ensure_embeddings(config.get("embed"))
        self.dims = settings.get("dims")
        if not isinstance(self.dims, int) or self.dims < 1:
            raise InvalidInputError("index.dims", "must be the number of dimensions of the embeddings")
        self.distance = settings.get("distance_type") or "cosine"
        if self.distance not in _DISTANCES:
            raise InvalidInputError("index.distance_type", f"must be one of {', '.join(_DISTANCES)}")
        fields = settings.get("fields") or settings.get("text_fields") or [WHOLE]
        self._fields = [(path, _tokens(path)) for path in fields]

    def passages(self, op: PutOp) -> list[Passage]:
        """Return the texts of an item that are to be embedded; none with ``index=False``."""
        if op.value is None or op.index is False:
            return []
        paths = self._fields if op.index is None else [(path, _tokens(path)) for path in op.index]
        found: list[Passage] = []
        for path, tokens in paths:
            texts = get_text_at_path(op.value, tokens)
            found.extend(
                Passage(path if len(texts) == 1 else f"{path}.{number}", text) for number, text in enumerate(texts)
            )
        return found

    def pack(self, vectors: Sequence[Sequence[float]]) -> list[bytes]:
        """Return vectors as they are stored.

        Raises:
            EmbeddingDimensionError: One has another length than the index.
        """
        import numpy as np

        for vector in vectors:
            if len(vector) != self.dims:
                raise EmbeddingDimensionError(self.dims or 0, len(vector))
        return [np.asarray(vector, np.float32).tobytes() for vector in vectors]

    def rank(self, query: Sequence[float], items: Sequence[int], rows: Sequence[bytes]) -> list[tuple[int, float]]:
        """Return each item once, with the score of its closest field, the best first.

        Higher is closer: the cosine, the negated Euclidean distance, or the inner product.

        Raises:
            EmbeddingDimensionError: The query, or a stored vector, has another length.
        """
        import numpy as np

        if len(query) != self.dims:
            raise EmbeddingDimensionError(self.dims or 0, len(query))
        if not items:
            return []
        joined = b"".join(rows)
        if len(joined) != len(rows) * self.dims * 4:
            raise EmbeddingDimensionError(self.dims, len(rows[0]) // 4)
        matrix = np.frombuffer(joined, np.float32).reshape(len(rows), self.dims)
        scores = self._scores(matrix, np.asarray(query, np.float32))
        # the sort is stable, so equal scores stand in the order of their items
        order = np.argsort(-scores, kind="stable")
        best: dict[int, float] = {}
        for at in order:
            best.setdefault(items[at], float(scores[at]))
        return list(best.items())

    def _scores(self, matrix: "NDArray[np.float32]", query: "NDArray[np.float32]") -> "NDArray[np.float32]":
        import numpy as np

        products: NDArray[np.float32] = matrix @ query
        if self.distance == "inner_product":
            return products
        if self.distance == "l2":
            distances: NDArray[np.float32] = -np.linalg.norm(matrix - query, axis=1)
            return distances
        norms = np.linalg.norm(matrix, axis=1) * np.linalg.norm(query)
        cosines: NDArray[np.float32] = np.divide(products, norms, out=np.zeros_like(products), where=norms != 0)
        return cosines


def _tokens(path: str) -> str | list[str]:
    return path if path == WHOLE else tokenize_path(path)
