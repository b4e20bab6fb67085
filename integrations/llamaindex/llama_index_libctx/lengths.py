"""The refusal of vectors of another length, with everything needed to see why."""

from collections.abc import Iterator
from contextlib import contextmanager

from libctx_core.errors import EmbeddingDimensionError
from libctx_core.search.collection import VectorCollection


class VectorLengthError(EmbeddingDimensionError):
    """Nodes or a question come from another embedding model than the stored nodes.

    Attributes:
        expected: Length of the stored vectors.
        found: Length of the new one.
        stored_model: The model that made the stored vectors, None if it was not named.
        given_model: The model at hand, None if it was not named.
    """

    code = "vector_length"

    def __init__(self, expected: int, found: int, stored_model: str | None, given_model: str | None) -> None:
        super().__init__(expected, found)
        self.stored_model = stored_model
        self.given_model = given_model
        stored, given = (f" by model {name!r}" if name else "" for name in (stored_model, given_model))
        message = (
            f"the stored vectors have {expected} dimensions{stored}, the one given has {found}{given}; "
            "use one embedding model per collection, or clear() it first"
        )
        self.args = (message,)


@contextmanager
def lengths_explained(collection: VectorCollection) -> Iterator[None]:
    """Name the models where vectors of two lengths meet."""
    try:
        yield
    except EmbeddingDimensionError as error:
        raise VectorLengthError(error.expected, error.found, collection.stored_profile(), collection.profile) from error
