"""What makes vectors of memory entries, and when such a vector is valid."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from pydantic import Field

from libctx_core.concurrency import Portal
from libctx_core.errors import InvalidEmbeddingError
from libctx_core.memory.inference import InferenceUsage
from libctx_core.sources.base import Value

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from libctx_core.ports import Embedder

EmbeddingVector: TypeAlias = tuple[float, ...]


class EmbeddingProfile(Value):
    """What vectors of a deployment are made by; vectors of two profiles are never compared.

    Attributes:
        profile_id: Name of the profile.
        model: Name of the model.
        dimension: Length of every vector.
        distance: How vectors are compared.
        normalization: ``unit`` for vectors of length 1, ``none`` for vectors as they come.
    """

    profile_id: str
    model: str
    dimension: int = Field(ge=1)
    distance: Literal["l2"] = "l2"
    normalization: Literal["none", "unit"] = "unit"


class EmbeddingResult(Value):
    """Vectors of a batch of texts, in order.

    Attributes:
        vectors: One per text.
        usage: What they cost.
    """

    vectors: tuple[EmbeddingVector, ...]
    usage: InferenceUsage = InferenceUsage()


class EmbeddingModel(Protocol):
    """Turns texts into vectors of one profile.

    Attributes:
        profile: The profile.
    """

    profile: EmbeddingProfile

    async def embed(self, texts: tuple[str, ...], /) -> EmbeddingResult:
        """Return one vector per text."""
        ...


def check_vectors(profile: EmbeddingProfile, count: int, vectors: Sequence[Sequence[float]]) -> list[EmbeddingVector]:
    """Return vectors as their profile wants them: finite, of its dimension, normalised.

    Args:
        profile: The profile.
        count: How many there must be.
        vectors: What a model returned.

    Raises:
        InvalidEmbeddingError: There are more or fewer (``count``), one has another length
            (``dimension``), holds NaN or an infinity (``finite``), or cannot be brought
            to unit length (``zero``).
    """
    if len(vectors) != count:
        raise InvalidEmbeddingError("count", f"{len(vectors)} vectors for {count} texts")
    return [_checked(profile, vector) for vector in vectors]


def _checked(profile: EmbeddingProfile, vector: Sequence[float]) -> EmbeddingVector:
    if len(vector) != profile.dimension:
        raise InvalidEmbeddingError("dimension", f"{len(vector)} numbers, the profile says {profile.dimension}")
    values = [float(number) for number in vector]
    if not all(math.isfinite(number) for number in values):
        raise InvalidEmbeddingError("finite", "the vector holds NaN or an infinity")
    if profile.normalization == "none":
        return tuple(values)
    largest = max(abs(number) for number in values)
    if largest == 0.0:
        raise InvalidEmbeddingError("zero", "a zero vector has no direction")
    # scaled by the largest first, so that squares neither overflow nor vanish
    scaled = [number / largest for number in values]
    length = math.sqrt(math.fsum(number * number for number in scaled))
    return tuple(number / length for number in scaled)


def profile_of(embedder: "Embedder") -> EmbeddingProfile:
    """Return the profile of the library's embedder."""
    return EmbeddingProfile(profile_id=embedder.profile_id, model=embedder.profile_id, dimension=embedder.dimension)


class ModelEmbedder:
    """The library's embedder over an asynchronous `EmbeddingModel`.

    Args:
        model: The model; its profile must be normalised to unit length.
        portal: Carries the calls.

    Attributes:
        profile_id: Name of the model's profile.
        dimension: Length of every vector.

    Raises:
        InvalidEmbeddingError: The profile is not normalised (``zero``).
    """

    def __init__(self, model: EmbeddingModel, portal: Portal) -> None:
        if model.profile.normalization != "unit":
            raise InvalidEmbeddingError("zero", "search needs a profile normalised to unit length")
        self.profile_id = model.profile.profile_id
        self.dimension = model.profile.dimension
        self._model = model
        self._portal = portal

    def embed_documents(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape ``(len(texts), dimension)``."""
        import numpy as np

        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        result = self._portal.call(self._model.embed, tuple(texts))
        return np.array(check_vectors(self._model.profile, len(texts), result.vectors), dtype=np.float32)

    def embed_query(self, text: str, /) -> "NDArray[np.float32]":
        """Return the vector of a question, shape ``(dimension,)``."""
        row: NDArray[np.float32] = self.embed_documents((text,))[0]
        return row
