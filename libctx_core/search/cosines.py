"""The vector channel: cosines of a question with every record of the corpus."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import is_not

import apsw
import numpy as np

from libctx_core.errors import EmbeddingProfileError
from libctx_core.ports import Embedder
from libctx_core.search.columns import Floats, Rows
from libctx_core.search.corpus import Corpus, OwnerPart
from libctx_core.search.matrix import dots
from libctx_core.search.neighbours import VectorSearch
from libctx_core.search.vectors import VectorIndex
from libctx_core.search.weighting import WeightedEmbedder, word_weight
from libctx_core.store.database import Database
from libctx_core.store.vectors import vector_state

MANY = 16
"""Owners from which their matrices are held together."""

GROUP = 32
"""Owners held as one matrix. A change of one of them copies these again, not the whole corpus."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Some owners of a corpus, next to each other, as one matrix.

    Attributes:
        parts: The owners as they were when the matrix was made.
        places: Where its rows stand, counted from the first owner's first row.
        units: Their unit vectors; None if no owner has any that can be compared.
        foreign: Another embedder's profile, if one of them has its vectors.
    """

    parts: tuple[OwnerPart, ...]
    places: Rows
    units: Floats | None
    foreign: str | None


class VectorChannel:
    """Embeds questions and compares them with the vectors of the corpus.

    Args:
        vectors: The vector index.
        embedder: Embeds questions.
    """

    def __init__(self, vectors: VectorSearch, embedder: Embedder) -> None:
        self._vectors = vectors
        self._embedder = embedder
        self._groups: dict[int, _Group] = {}
        self._asked: list[int] = []

    def cosines(
        self, connection: apsw.Connection, corpus: Corpus, text: str, idf: Mapping[str, float], *, strict: bool
    ) -> Floats | None:
        """Return the cosine of each row, NaN where it has no comparable vector; None if no owner has any.

        Args:
            connection: A reader, on the snapshot the corpus was made from.
            corpus: The records.
            text: The question.
            idf: Inverse document frequencies of its terms, by which its words weigh.
            strict: Refuse vectors of another embedder, instead of passing over their owners.

        Raises:
            EmbeddingProfileError: `strict`, and an owner's vectors come from another embedder.
        """
        index = self._vectors
        if len(corpus.parts) >= MANY and isinstance(index, VectorIndex) and index.backend == "numpy":
            return self._of_many(connection, index, corpus, text, idf, strict=strict)
        owners, foreign = self._comparable(connection, corpus.owners.tolist())
        if strict and foreign is not None:
            raise EmbeddingProfileError(foreign, self._embedder.profile_id)
        if not owners:
            return None
        self._asked = owners
        return corpus.spread(index.similarities(connection, owners, self._embed(text, idf)))

    def save(self, database: Database) -> None:
        """Store what took long to derive from the vectors asked last; call it outside a read."""
        owners, self._asked = self._asked, []
        for owner in owners:
            self._vectors.save_codes(database, owner)

    def _of_many(
        self,
        connection: apsw.Connection,
        index: VectorIndex,
        corpus: Corpus,
        text: str,
        idf: Mapping[str, float],
        *,
        strict: bool,
    ) -> Floats | None:
        groups = []
        for at in range(0, len(corpus.parts), GROUP):
            parts = corpus.parts[at : at + GROUP]
            known = self._groups.get(parts[0].state.owner)
            if known is None or len(known.parts) != len(parts) or any(map(is_not, known.parts, parts)):
                known = self._group(connection, index, parts)
            groups.append(known)
        self._groups = {group.parts[0].state.owner: group for group in groups}
        foreign = next((group.foreign for group in groups if group.foreign), None)
        if strict and foreign is not None:
            raise EmbeddingProfileError(foreign, self._embedder.profile_id)
        if all(group.units is None for group in groups):
            return None
        query = self._embed(text, idf)
        length = float(np.linalg.norm(query))
        unit = query / np.float32(length) if length else query
        cosines = np.full(corpus.size, np.nan, np.float32)
        for group in groups:
            if group.units is not None:
                cosines[corpus.starts[group.parts[0].state.owner] + group.places] = dots(group.units, unit)
        return cosines

    def _group(self, connection: apsw.Connection, index: VectorIndex, parts: tuple[OwnerPart, ...]) -> _Group:
        """Gather the vectors of some owners."""
        owners, foreign = self._comparable(connection, [part.state.owner for part in parts])
        comparable = set(owners)
        places: list[Rows] = []
        units: list[Floats] = []
        start = 0
        for part in parts:
            if part.state.owner in comparable:
                matrix = index.matrix(connection, part.state.owner)
                positions = matrix.positions()
                within = positions < part.count
                if matrix.alive is not None:
                    within &= matrix.alive
                places.append(positions[within] + start)
                units.append(matrix.units[within])
            start += part.count
        if not units:
            return _Group(parts, np.zeros(0, np.int64), None, foreign)
        return _Group(parts, np.concatenate(places), np.concatenate(units), foreign)

    def _comparable(self, connection: apsw.Connection, asked: Sequence[int]) -> tuple[list[int], str | None]:
        """Return the owners with vectors of this embedder, and another embedder's profile if there is one."""
        owners: list[int] = []
        foreign: str | None = None
        for owner in asked:
            state = vector_state(connection, owner)
            if state is not None and state.profile in ("", self._embedder.profile_id):
                owners.append(owner)
            elif state is not None:
                foreign = state.profile
        return owners, foreign

    def _embed(self, text: str, idf: Mapping[str, float]) -> Floats:
        """Return the question's vector; words weigh by their rarity in the corpus where the embedder can do that."""
        if isinstance(self._embedder, WeightedEmbedder):
            vector = self._embedder.embed_query_weighted(text, lambda word: word_weight(word, idf))
            if vector.any():
                return vector
        return self._embedder.embed_query(text)
