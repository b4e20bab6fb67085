"""How much each word of a question weighs in its vector."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from libctx_core.search.analysis import analyse_word

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STOP_WORD_WEIGHT = 0.05
"""Inverse document frequency given to stop words, which are not indexed."""


@runtime_checkable
class WeightedEmbedder(Protocol):
    """An embedder that can weigh the words of a question."""

    def embed_documents(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text."""
        ...

    def embed_query_weighted(self, text: str, idf: Callable[[str], float], /) -> "NDArray[np.float32]":
        """Return the vector of a question whose words count by their inverse document frequency."""
        ...


def word_weight(word: str, idf: Mapping[str, float]) -> float:
    """Return a word's inverse document frequency, of its rarest term; small for a stop word."""
    return max((idf.get(term, STOP_WORD_WEIGHT) for term in analyse_word(word).terms), default=STOP_WORD_WEIGHT)
