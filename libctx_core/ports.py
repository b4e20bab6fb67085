"""What the rooms ask of exchangeable parts: structural types, no behaviour."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@runtime_checkable
class Embedder(Protocol):
    """Turns text into vectors of one fixed profile.

    Attributes:
        profile_id: Identity of model, table and settings. Vectors of two profiles
            are never compared, so anything that changes a vector must change it.
        dimension: Length of every vector.
    """

    profile_id: str
    dimension: int

    def embed_documents(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape ``(len(texts), dimension)``, each of unit length or zero."""
        ...

    def embed_query(self, text: str, /) -> "NDArray[np.float32]":
        """Return the vector of a question, shape ``(dimension,)``, of unit length or zero."""
        ...


@runtime_checkable
class TextCounter(Protocol):
    """Counts the tokens of plain text.

    Attributes:
        name: Stable name under which counts are stored.
        exact: Whether counts equal the model's own; otherwise they never fall below it.
    """

    name: str
    exact: bool

    def count(self, text: str, /) -> int:
        """Return the number of tokens in `text`; never raises for any string."""
        ...
