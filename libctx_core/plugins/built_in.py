"""The library's own parts, registered through the same hooks as everybody's."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from libctx_core.plugins.markers import hookimpl
from libctx_core.plugins.specs import StorageFactory
from libctx_core.ports import Embedder, TextCounter

if TYPE_CHECKING:
    import apsw

    from libctx_core.search.neighbours import VectorSearch
    from libctx_core.search.vectors import Backend
    from libctx_core.store.database import Database, Durability

DEFAULT_EMBEDDER = "static"
DEFAULT_STORAGE = "sqlite"
DEFAULT_TOKENIZER = "any-model"
DEFAULT_VECTOR_INDEX = "numpy"


@hookimpl
def register_storage_backends() -> Mapping[str, StorageFactory]:
    """Bring ``sqlite``: one file, or ``:memory:``."""
    return {DEFAULT_STORAGE: _sqlite}


@hookimpl
def register_vector_indexes() -> "Mapping[str, Callable[[], VectorSearch]]":
    """Bring ``numpy``, scanned matrices, and ``sqlite-vec``, distances computed inside SQLite."""
    return {
        DEFAULT_VECTOR_INDEX: partial(_vector_index, "numpy"),
        "sqlite-vec": partial(_vector_index, "sqlite-vec"),
    }


@hookimpl
def register_embedders() -> Mapping[str, Callable[[], Embedder]]:
    """Bring ``static``, the table that is always there, and ``minilm``, the optional sentence model."""
    return {DEFAULT_EMBEDDER: _static, "minilm": _minilm}


@hookimpl
def register_tokenizers() -> Mapping[str, Callable[[], TextCounter]]:
    """Bring the two vocabularies, the larger of both for models that are not known, and the bound of bytes."""
    return {
        DEFAULT_TOKENIZER: partial(_counter, None),
        "cl100k_base": partial(_counter, "cl100k_base"),
        "o200k_base": partial(_counter, "o200k_base"),
        "utf8-bytes": _bytes,
    }


def _sqlite(
    path: str,
    /,
    *,
    durability: "Durability",
    read_only: bool,
    on_connect: "Callable[[apsw.Connection], None] | None",
) -> "Database":
    from libctx_core.store.database import Database

    return Database(path, durability=durability, read_only=read_only, on_connect=on_connect)


def _vector_index(backend: "Backend") -> "VectorSearch":
    from libctx_core.search.vectors import VectorIndex

    return VectorIndex(backend=backend)


def _static() -> Embedder:
    from libctx_core.embedding import StaticEmbedder

    return StaticEmbedder()


def _minilm() -> Embedder:
    from libctx_core.embedding import MiniLMEmbedder

    return MiniLMEmbedder()


def _counter(encoding: str | None) -> TextCounter:
    from libctx_core.tokens import TokenCounter

    return TokenCounter.for_model() if encoding is None else TokenCounter.for_encoding(encoding)


def _bytes() -> TextCounter:
    from libctx_core.tokens import Utf8Bound

    return Utf8Bound()
