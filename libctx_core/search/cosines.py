"""The vector channel: cosines of a question with every record in scope."""

import weakref
from collections.abc import Mapping
from dataclasses import dataclass

import apsw
import numpy as np

from libctx_core.errors import EmbeddingProfileError
from libctx_core.ports import Embedder
from libctx_core.search.columns import Floats, Rows
from libctx_core.search.matrix import dots
from libctx_core.search.neighbours import VectorSearch
from libctx_core.search.scope import Scope
from libctx_core.search.vectors import VectorIndex
from libctx_core.search.weighting import WeightedEmbedder, word_weight
from libctx_core.store.database import Database
from libctx_core.store.vectors import vector_state

MANY = 16
"""Owners from which their matrices are held together for as long as the scope does not change."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some rows of a scope and their unit vectors."""

    rows: slice | Rows
    units: Floats


@dataclass(frozen=True, slots=True)
class _Held:
    """The matrices of a scope of many owners, and how many owners were passed over."""

    scope: weakref.ref[Scope]
    pieces: list[_Piece]
    foreign: str | None


class VectorChannel:
    """Embeds questions and compares them with the vectors in scope.

    Args:
        vectors: The vector index.
        embedder: Embeds questions.
    """

    def __init__(self, vectors: VectorSearch, embedder: Embedder) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._held: _Held | None = None
        self._asked: list[int] = []

    def cosines(
        self, connection: apsw.Connection, scope: Scope, text: str, idf: Mapping[str, float], *, strict: bool
    ) -> Floats | None:
        """Return the cosine of each row, NaN where it has no comparable vector; None if no owner has any.

        Args:
            connection: A reader, on the snapshot the scope was made from.
            scope: The records.
            text: The question.
            idf: Inverse document frequencies of its terms, by which its words weigh.
            strict: Refuse vectors of another embedder, instead of passing over their owners.

        Raises:
            EmbeddingProfileError: `strict`, and an owner's vectors come from another embedder.
        """
        index = self._vectors
        if len(scope.parts) >= MANY and isinstance(index, VectorIndex) and index.backend == "numpy":
            return self._of_many(connection, index, scope, text, idf, strict=strict)
        owners, foreign = self._comparable(connection, scope)
        if strict and foreign is not None:
            raise EmbeddingProfileError(foreign, self._embedder.profile_id)
        if not owners:
            return None
        self._asked = owners
        return scope.spread(index.similarities(connection, owners, self._embed(text, idf)))

    def save(self, database: Database) -> None:
        """Store what took long to derive from the vectors asked last; call it outside a read."""
        for owner in self._asked:
            self._vectors.save_codes(database, owner)

    def _of_many(
        self,
        connection: apsw.Connection,
        index: VectorIndex,
        scope: Scope,
        text: str,
        idf: Mapping[str, float],
        *,
        strict: bool,
    ) -> Floats | None:
        held = self._held
        if held is None or held.scope() is not scope:
            owners, foreign = self._comparable(connection, scope)
            pieces = [_piece(connection, index, scope, owner) for owner in owners]
            held = self._held = _Held(weakref.ref(scope), pieces, foreign)
        if strict and held.foreign is not None:
            raise EmbeddingProfileError(held.foreign, self._embedder.profile_id)
        if not held.pieces:
            return None
        query = self._embed(text, idf)
        length = float(np.linalg.norm(query))
        unit = query / np.float32(length) if length else query
        cosines = np.full(scope.size, np.nan, np.float32)
        for piece in held.pieces:
            cosines[piece.rows] = dots(piece.units, unit)
        return cosines

    def _comparable(self, connection: apsw.Connection, scope: Scope) -> tuple[list[int], str | None]:
        """Return the owners with vectors of this embedder, and another embedder's profile if there is one."""
        owners: list[int] = []
        foreign: str | None = None
        for owner in scope.owners.tolist():
            state = vector_state(connection, owner)
            if state is not None and state.profile in ("", self._embedder.profile_id):
                owners.append(owner)
            elif state is not None:
                foreign = state.profile
        return owners, foreign

    def _embed(self, text: str, idf: Mapping[str, float]) -> Floats:
        """Return the question's vector; words weigh by their rarity in scope where the embedder can do that."""
        if isinstance(self._embedder, WeightedEmbedder):
            vector = self._embedder.embed_query_weighted(text, lambda word: word_weight(word, idf))
            if vector.any():
                return vector
        return self._embedder.embed_query(text)


def _piece(connection: apsw.Connection, index: VectorIndex, scope: Scope, owner: int) -> _Piece:
    matrix = index.matrix(connection, owner)
    positions, units = matrix.positions(), matrix.units
    within = positions < scope.count(owner)
    if matrix.alive is not None:
        within &= matrix.alive
    if not within.all():
        positions, units = positions[within], units[within]
    rows = positions + scope.start(owner)
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return _Piece(slice(int(rows[0]), int(rows[-1]) + 1), units)
    return _Piece(rows, units)
