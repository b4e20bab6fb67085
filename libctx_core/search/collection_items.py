"""What goes into a vector collection and what comes out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from libctx_core.errors import EmbeddingDimensionError, InvalidInputError, InvalidTextError
from libctx_core.models import check_identifier
from libctx_core.store.records import RecordInput
from libctx_core.store.vectors import pack_vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NODE = "node"
"""Kind of the records a collection holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionItem:
    """One item of a vector collection.

    Attributes:
        key: Its id in the collection.
        text: What text search looks in.
        vector: Its embedding; an item without one is found by key, filter and text only.
        metadata: Any JSON object; every key and every list member can be filtered on.
        ref: Id of the document it was cut from.
        payload: Text an adapter keeps with it, never searched.
    """

    key: str
    text: str
    vector: "Sequence[float] | NDArray[np.float32] | None" = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    ref: str | None = None
    payload: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionHit:
    """An item a query found.

    Attributes:
        item: A copy of the item.
        score: Cosine similarity in [-1, 1] for vector and MMR queries; for text and hybrid
            ones a score in [0, 1], comparable within one answer.
    """

    item: CollectionItem
    score: float


@dataclass(frozen=True, slots=True)
class PreparedItem:
    """An item checked and encoded, ready for the writer."""

    record: RecordInput
    vector: bytes | None


def prepare_items(items: Sequence[CollectionItem]) -> list[PreparedItem]:
    """Check and encode items outside the write lock; of items with one key the last is kept.

    Raises:
        InvalidIdentifierError: A key or document id cannot name something.
        InvalidTextError: A text holds a lone surrogate.
        InvalidInputError: Metadata is no JSON object, or a vector is unusable.
        EmbeddingDimensionError: Two vectors have different lengths.
    """
    kept = list({item.key: item for item in items}.values())
    vectors = iter(pack_vectors([item.vector for item in kept if item.vector is not None]))
    return [PreparedItem(_record(item), None if item.vector is None else next(vectors)) for item in kept]


def dimension_of(prepared: Sequence[PreparedItem], expected: int | None) -> int | None:
    """Return the length of the vectors in a batch, None if it has none.

    Raises:
        EmbeddingDimensionError: It is not the expected one.
    """
    for item in prepared:
        if item.vector is not None:
            dimension = len(item.vector) // 4
            if expected is not None and dimension != expected:
                raise EmbeddingDimensionError(expected, dimension)
            return dimension
    return None


def with_and_without_vectors(
    prepared: Sequence[PreparedItem],
) -> "list[tuple[list[RecordInput], NDArray[np.float32] | None]]":
    """Return the records that have a vector with a row for each, and the others."""
    import numpy as np

    parts: list[tuple[list[RecordInput], NDArray[np.float32] | None]] = []
    packed = [item.vector for item in prepared if item.vector is not None]
    if packed:
        rows = np.frombuffer(b"".join(packed), "<f4").reshape(len(packed), -1)
        parts.append(([item.record for item in prepared if item.vector is not None], rows))
    if len(packed) < len(prepared):
        parts.append(([item.record for item in prepared if item.vector is None], None))
    return parts


def _record(item: CollectionItem) -> RecordInput:
    return RecordInput(
        key=check_identifier("key", item.key),
        kind=NODE,
        text=_storable("text", item.text),
        ref=None if item.ref is None else check_identifier("ref", item.ref),
        metadata=encode_metadata(item.metadata),
        payload=None if item.payload is None else _storable("payload", item.payload),
    )


def _storable(name: str, text: str) -> str:
    if not isinstance(text, str):
        raise InvalidTextError(name, f"must be a str, not {type(text).__name__}")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidTextError(name, "holds a lone surrogate, which UTF-8 cannot store") from error
    return text


def encode_metadata(metadata: Mapping[str, Any]) -> str | None:
    """Return metadata as JSON, None for an empty object.

    Raises:
        InvalidInputError: It is no mapping with text keys, or holds what JSON cannot.
    """
    if not metadata:
        return None
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise InvalidInputError("metadata", "must be a mapping whose keys are text")
    try:
        return json.dumps(metadata if isinstance(metadata, dict) else dict(metadata), separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInputError("metadata", "must hold only what JSON can: text, numbers, lists, objects") from error


def decode_metadata(stored: str | None) -> dict[str, Any]:
    """Return a fresh copy of stored metadata."""
    if stored is None:
        return {}
    metadata: dict[str, Any] = json.loads(stored)
    return metadata
