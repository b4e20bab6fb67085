"""The default embedder: always there, the same to the bit, and close to what texts mean."""

import hashlib
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libctx_core.embedding import StaticEmbedder
from libctx_core.errors import InvalidInputError, PackageDataError
from libctx_core.ports import Embedder

EMBEDDER = StaticEmbedder()

GOLDEN_TEXTS = ("The ferry to the island leaves at seven.", "Wann fährt die Fähre?", "人工智能 and C++", "🙂", "")
GOLDEN = {
    256: "317d3276c1e09fa1c33dea6d7fcfc96ba6767ff9d2cf2b31cbbc606cd911b562",
    128: "9baf445f8af41f1e601ef6e7dafa7c7b1186fb5d08d2244312b3e012595d3d17",
}
GOLDEN_WEIGHTED = "738eb37fe19c2780cf55e2a7a59abfb7b9b75e84bcf5a3eb6ae1a7f0606c7b85"


def digest(vectors):
    return hashlib.sha256(vectors.astype("<f4").tobytes()).hexdigest()


class TestVectors:
    def test_has_the_shape_of_its_port(self):
        assert isinstance(EMBEDDER, Embedder)
        vectors = EMBEDDER.embed_documents(["one", "two"])
        assert (vectors.shape, vectors.dtype) == ((2, 256), np.float32)
        assert EMBEDDER.embed_query("one").shape == (256,)
        assert EMBEDDER.embed_documents([]).shape == (0, 256)

    @settings(max_examples=200, deadline=None)
    @given(text=st.text(alphabet=st.characters()))
    def test_unit_length_or_zero(self, text):
        length = float(np.linalg.norm(EMBEDDER.embed_query(text).astype(np.float64)))
        assert length == 0 or length == pytest.approx(1, abs=1e-6)

    @pytest.mark.parametrize("text", ["", "  \n", "🙂", "\x00"])
    def test_text_without_known_pieces_is_zero(self, text):
        assert not EMBEDDER.embed_query(text).any()

    def test_nearer_in_meaning_is_nearer(self):
        dog, puppy, revenue, sales = EMBEDDER.embed_documents(
            [
                "My dog loves long walks in the park.",
                "Our puppy enjoys strolling outside.",
                "The quarterly revenue grew by four percent.",
                "Company sales increased this quarter",
            ]
        )
        assert min(dog @ puppy, revenue @ sales) > 0.5
        assert max(dog @ revenue, dog @ sales, puppy @ revenue, puppy @ sales) < 0.25

    def test_long_text_is_embedded_whole(self):
        head, tail = "the garden was quiet " * 3_000, "submarine periscope torpedo " * 3_000
        assert EMBEDDER.embed_query(head + tail) @ EMBEDDER.embed_query(tail) > 0.5


class TestDeterminism:
    @pytest.mark.parametrize("dimension", sorted(GOLDEN))
    def test_golden_vectors(self, dimension):
        assert digest(StaticEmbedder(dimension).embed_documents(GOLDEN_TEXTS)) == GOLDEN[dimension]

    def test_golden_weighted_question(self):
        vector = EMBEDDER.embed_query_weighted(GOLDEN_TEXTS[0], lambda word: len(word) / 3)
        assert digest(vector) == GOLDEN_WEIGHTED

    @settings(max_examples=60, deadline=None)
    @given(texts=st.lists(st.text(alphabet="ab cdé?中", max_size=30), max_size=8))
    def test_a_vector_does_not_depend_on_its_batch(self, texts):
        together = EMBEDDER.embed_documents(texts)
        alone = [EMBEDDER.embed_query(text) for text in texts]
        assert all(np.array_equal(row, vector) for row, vector in zip(together, alone, strict=True))

    def test_the_order_of_words_does_not_change_a_bit(self):
        words = ["seven", "brave", "otters", "swam", "over", "the", "cold", "river", "at", "dawn"]
        assert digest(EMBEDDER.embed_query(" ".join(words))) == digest(EMBEDDER.embed_query(" ".join(words[::-1])))


class TestWeightedQuestions:
    def test_equal_weights_change_nothing(self):
        text = "where did the ferry go"
        assert np.array_equal(EMBEDDER.embed_query_weighted(text, lambda word: 1.0), EMBEDDER.embed_query(text))

    def test_a_rare_word_pulls_the_question_towards_it(self):
        text, rare = "which submarine did the garden club mention", EMBEDDER.embed_query("submarine")
        weighted = EMBEDDER.embed_query_weighted(text, lambda word: 9.0 if word == "submarine" else 1.0)
        assert weighted @ rare > EMBEDDER.embed_query(text) @ rare

    def test_each_word_is_asked_once_and_punctuation_never(self):
        asked = []

        def idf(word):
            asked.append(word)
            return 1.0

        EMBEDDER.embed_query_weighted("Don't, don't go to the CAFÉ?! 你好", idf)
        assert asked == ["don", "t", "go", "to", "the", "cafe", "你", "好"]
        assert EMBEDDER.words("Don't, don't go to the CAFÉ?! 你好") == tuple(asked)

    @pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
    def test_unusable_weights_count_as_zero(self, value):
        assert not EMBEDDER.embed_query_weighted("some words", lambda word: value).any()

    def test_documents_do_not_depend_on_weights(self):
        before = EMBEDDER.embed_documents(GOLDEN_TEXTS)
        EMBEDDER.embed_query_weighted(GOLDEN_TEXTS[0], lambda word: 7.0)
        assert np.array_equal(before, EMBEDDER.embed_documents(GOLDEN_TEXTS))


class TestProfile:
    def test_names_the_table_and_the_dimension(self):
        assert EMBEDDER.profile_id.startswith("libctx-static-256/1:")
        assert StaticEmbedder(128).profile_id != EMBEDDER.profile_id
        assert StaticEmbedder().profile_id == EMBEDDER.profile_id

    def test_changes_with_the_table(self, tmp_path, monkeypatch):
        sums = "".join(f"{'0' * 64}  libctx-static-256.{kind}\n" for kind in ("table", "vocab.xz"))
        (tmp_path / "SHA256SUMS").write_text(sums)
        monkeypatch.setattr("libctx_core.data.FOLDER", tmp_path)
        assert StaticEmbedder().profile_id == "libctx-static-256/1:000000000000"

    def test_fewer_dimensions_are_the_first_ones(self):
        full, short = EMBEDDER.embed_query("a quiet harbour"), StaticEmbedder(128).embed_query("a quiet harbour")
        assert np.allclose(full[:128] / np.linalg.norm(full[:128]), short, atol=1e-6)

    @pytest.mark.parametrize("dimension", [0, -1, 257])
    def test_a_dimension_out_of_range_is_refused(self, dimension):
        with pytest.raises(InvalidInputError, match="256"):
            StaticEmbedder(dimension)

    def test_a_missing_table_is_a_typed_error(self, tmp_path, monkeypatch):
        monkeypatch.setattr("libctx_core.data.FOLDER", tmp_path)
        with pytest.raises(PackageDataError, match="reinstall"):
            StaticEmbedder()


CHILD = """
import socket, sys

def refuse(*args, **kwargs):
    raise AssertionError("network")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from libctx_core.embedding import StaticEmbedder
embedder = StaticEmbedder()
assert not {"numpy", "onnxruntime"} & set(sys.modules), "loaded before the first text"
assert embedder.embed_query("hello").any()
assert "onnxruntime" not in sys.modules
print("isolated")
"""


def test_nothing_is_loaded_before_the_first_text_and_nothing_is_fetched():
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, env=dict(os.environ), timeout=120
    )
    assert done.stdout.strip() == "isolated", done.stderr
