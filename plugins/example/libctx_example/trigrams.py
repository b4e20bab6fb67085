"""An embedder without a model: which letter trigrams a text holds."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TrigramEmbedder:
    """Hashes letter trigrams into a fixed number of dimensions.

    Words that share a stem, and words with a typing error, land near each other; meaning is
    beyond it. The same text gives the same vector on every machine.

    Args:
        dimension: Length of the vectors.

    Attributes:
        profile_id: Changes with the method and with the dimension, because vectors of
            different profiles are never compared.
        dimension: Length of the vectors.
    """

    def __init__(self, dimension: int = 256) -> None:
        self.dimension = dimension
        self.profile_id = f"example-trigrams-1-{dimension}"

    def embed_documents(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row of unit length per text; zeros for a text without letters or digits."""
        import numpy as np

        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for trigram in _trigrams(text):
                place = crc32(trigram.encode("utf-8", "replace"))
                # one bit of the hash gives the sign, so that collisions cancel instead of adding up
                vectors[row, place % self.dimension] += 1.0 if place & 0x8000_0000 else -1.0
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        normalised: NDArray[np.float32] = np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return normalised

    def embed_query(self, text: str, /) -> "NDArray[np.float32]":
        """Return the vector of a question: the same as of a document."""
        vector: NDArray[np.float32] = self.embed_documents([text])[0]
        return vector


def _trigrams(text: str) -> Iterator[str]:
    for word in "".join(letter if letter.isalnum() else " " for letter in text.casefold()).split():
        padded = f" {word} "
        for start in range(len(padded) - 2):
            yield padded[start : start + 3]
