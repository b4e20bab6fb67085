"""The default embedder: a table of word pieces, summed and normalised; no model runs."""

import lzma
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Final

from libctx_core.data import expected_sha256, read_data
from libctx_core.embedding.wordpiece import WordPiece
from libctx_core.errors import InvalidInputError, PackageDataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TABLE_DIMENSION: Final = 256
"""Columns of the table, in order of the variance they carry."""

ALGORITHM_VERSION: Final = 1
"""Part of the profile; raised when tokenising or summing would change any vector."""

PROFILE_PREFIX: Final = "libctx-static-"
"""How the profile of every vector made here begins."""

_TABLE: Final = "libctx-static-256.table"
_VOCABULARY: Final = "libctx-static-256.vocab.xz"
_HASH_DIGITS: Final = 12

# Word weights become whole numbers so that every sum below is exact; see `_unit`.
_WEIGHT_STEPS: Final = 1_024

_load_lock: Final = Lock()


@dataclass(frozen=True, slots=True)
class _Table:
    """The loaded table: row i is ``codes[i] * scales[i]`` in one common unit."""

    codes: "NDArray[np.int8]"
    scales: "NDArray[np.float64]"
    pieces: WordPiece


@lru_cache(maxsize=1)
def _read_table() -> _Table:
    import numpy as np

    pieces = lzma.decompress(read_data(_VOCABULARY)).decode("utf-8").split("\n")
    content = read_data(_TABLE)
    cells = len(pieces) * TABLE_DIMENSION
    if len(content) != cells + 2 * len(pieces):
        raise PackageDataError(_TABLE, "the size does not fit the vocabulary")
    codes = np.frombuffer(content, np.int8, cells).reshape(len(pieces), TABLE_DIMENSION)
    scales = np.frombuffer(content, "<u2", len(pieces), cells).astype(np.float64)
    return _Table(codes, scales, WordPiece(pieces))


def _load_table() -> _Table:
    with _load_lock:
        return _read_table()


def piece_rows() -> "tuple[WordPiece, NDArray[np.int8]]":
    """Return the pieces of the table and its codes, one row per piece, ``TABLE_DIMENSION`` wide.

    A row's direction is the meaning of its piece; its length says nothing.
    """
    table = _load_table()
    return table.pieces, table.codes


class StaticEmbedder:
    """Embeds text as the weighted sum of its word pieces' vectors, distilled from all-MiniLM-L6-v2.

    Vectors are of unit length, or zero where no piece of the text is known, and the same to the
    last bit on every machine and in every batch. Frequent words weigh little already in the table;
    `embed_query_weighted` adds how rare a word is in the store at hand. Vectors of documents never
    depend on a store. The table is read on first use. May be shared between threads.

    Args:
        dimension: Columns to use, from 1 to 256. Fewer are coarser and smaller.

    Attributes:
        profile_id: Names columns, rules and the table's hash.
        dimension: Length of every vector.

    Raises:
        InvalidInputError: `dimension` is out of range.
        PackageDataError: The table is missing or altered.
    """

    def __init__(self, dimension: int = TABLE_DIMENSION) -> None:
        if not 1 <= dimension <= TABLE_DIMENSION:
            raise InvalidInputError("dimension", f"must be from 1 to {TABLE_DIMENSION}")
        digest = expected_sha256(_TABLE)[:_HASH_DIGITS]
        self.profile_id: str = f"{PROFILE_PREFIX}{dimension}/{ALGORITHM_VERSION}:{digest}"
        self.dimension: int = dimension
        self._loaded: _Table | None = None

    def embed_documents(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape ``(len(texts), dimension)``, each of unit length or zero."""
        import numpy as np

        table = self._table()
        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            ids = table.pieces.ids(text)
            if ids:
                row[:] = self._unit(table, ids, None)
        return rows

    def embed_query(self, text: str, /) -> "NDArray[np.float32]":
        """Return the vector of a question, shape ``(dimension,)``, of unit length or zero."""
        vector: NDArray[np.float32] = self.embed_documents((text,))[0]
        return vector

    def embed_query_weighted(self, text: str, idf: Callable[[str], float], /) -> "NDArray[np.float32]":
        """Return the vector of a question whose rare words weigh more.

        Every word counts with the square root of its inverse document frequency. On LoCoMo this
        finds 5 more of 100 evidence turns than equal weights.

        Args:
            text: The question.
            idf: Inverse document frequency of a word, asked once for each distinct word. Words are
                lower case, without accents and apostrophes (``don't`` is asked as ``don`` and
                ``t``), not stemmed; punctuation is never asked and weighs nothing. What is not a
                positive number counts as 0.

        Returns:
            The vector, shape ``(dimension,)``, of unit length or zero.
        """
        import numpy as np

        table = self._table()
        known: dict[str, int] = {}
        ids: list[int] = []
        weights: list[int] = []
        for word, pieces in table.pieces.words(text):
            weight = known.get(word)
            if weight is None:
                weight = known[word] = _steps(idf(word)) if _has_letters(word) else 0
            if weight:
                ids.extend(pieces)
                weights.extend([weight] * len(pieces))
        if not ids:
            return np.zeros(self.dimension, np.float32)
        return self._unit(table, ids, weights)

    def words(self, text: str, /) -> tuple[str, ...]:
        """Return the distinct words that `embed_query_weighted` asks about, in order of appearance."""
        found = (word for word, _ in self._table().pieces.words(text) if _has_letters(word))
        return tuple(dict.fromkeys(found))

    def _table(self) -> _Table:
        if self._loaded is None:
            self._loaded = _load_table()
        return self._loaded

    def _unit(self, table: _Table, ids: list[int], weights: list[int] | None) -> "NDArray[np.float32]":
        """Return the weighted sum of rows at unit length.

        Codes, scales and weights are whole numbers and their sums stay below 2**53, so that the
        product is exact whatever order the linear algebra library adds in; the length is an exactly
        rounded sum. That makes vectors equal to the bit everywhere.
        """
        import numpy as np

        rows = table.codes[ids, : self.dimension].astype(np.float64)
        factors = table.scales[ids] if weights is None else table.scales[ids] * np.array(weights, np.float64)
        total = factors @ rows
        length = math.sqrt(math.fsum((total * total).tolist()))
        unit: NDArray[np.float32] = (total / (length or 1.0)).astype(np.float32)
        return unit


def _steps(idf: float) -> int:
    return round(math.sqrt(idf) * _WEIGHT_STEPS) if 0 < idf < math.inf else 0


def _has_letters(word: str) -> bool:
    return any(character.isalnum() for character in word)
