"""One bit per dimension of a vector, and the distance between such codes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROTATED_DIMENSIONS = 1_024
"""Longer vectors are encoded unrotated: their rotation would take over 4 MiB, and the
embedders that make them spread their variance evenly already."""

_SEED = 20_261_130

_SCAN = 65_536
"""Codes compared at a time: half a megabyte of intermediate results stays in the cache."""


@dataclass(frozen=True, slots=True)
class BitEncoder:
    """Turns unit vectors into codes: on which side of the centre they lie, axis by axis.

    Attributes:
        centre: Mean of the vectors, shape ``(dimension,)``.
        rotation: Orthogonal matrix, shape ``(dimension, dimension)``, that spreads the
            variance over all axes, without which the many weak ones outvote the strong;
            None to leave the axes as they are.
    """

    centre: "NDArray[np.float32]"
    rotation: "NDArray[np.float32] | None"

    @classmethod
    def of(cls, units: "NDArray[np.float32]") -> "BitEncoder":
        """Return the encoder for vectors like these."""
        import numpy as np

        dimension = units.shape[1]
        centre: NDArray[np.float32] = units.mean(axis=0, dtype=np.float64).astype(np.float32)
        if dimension > ROTATED_DIMENSIONS:
            return cls(centre, None)
        noise = np.random.default_rng(_SEED).standard_normal((dimension, dimension))
        return cls(centre, np.linalg.qr(noise).Q.astype(np.float32))

    def to_bytes(self) -> bytes:
        """Return the encoder as little-endian float32 numbers."""
        rotation = b"" if self.rotation is None else self.rotation.astype("<f4").tobytes()
        return self.centre.astype("<f4").tobytes() + rotation

    @classmethod
    def from_bytes(cls, stored: bytes, dimension: int) -> "BitEncoder":
        """Return the encoder that `to_bytes` wrote."""
        import numpy as np

        numbers = np.frombuffer(stored, "<f4")
        rotation = numbers[dimension:].reshape(dimension, dimension) if len(numbers) > dimension else None
        return cls(numbers[:dimension], rotation)

    def project(self, units: "NDArray[np.float32]") -> "NDArray[np.float32]":
        """Return unit rows relative to the centre, on the axes whose signs are the bits."""
        moved: NDArray[np.float32] = units - self.centre
        if self.rotation is not None:
            moved = moved @ self.rotation
        return moved

    def encode(self, units: "NDArray[np.float32]") -> "NDArray[np.uint64]":
        """Return the codes of unit rows as columns, shape ``(words, rows)``, 64 bits to a word."""
        import numpy as np

        packed = np.packbits(self.project(units) > 0.0, axis=1)
        padded = np.zeros((len(packed), 8 * words_for(units.shape[1])), np.uint8)
        padded[:, : packed.shape[1]] = packed
        return np.ascontiguousarray(padded.view(np.uint64).T)


def words_for(dimension: int) -> int:
    """Return how many 64-bit words a code takes."""
    return -(-dimension // 64)


def hamming(words: "NDArray[np.uint64]", code: "NDArray[np.uint64]") -> "NDArray[np.uint16]":
    """Return in how many bits each column of `words` differs from a code of shape ``(words,)``."""
    import numpy as np

    count = words.shape[1]
    found = np.zeros(count, np.uint16)
    differing = np.empty(min(count, _SCAN), np.uint64)
    bits = np.empty(len(differing), np.uint8)
    for start in range(0, count, _SCAN):
        end = min(count, start + _SCAN)
        size = end - start
        for row, word in zip(words, code, strict=True):
            np.bitwise_xor(row[start:end], word, out=differing[:size])
            np.bitwise_count(differing[:size], out=bits[:size])
            np.add(found[start:end], bits[:size], out=found[start:end])
    return found


def agreement(words: "NDArray[np.uint64]", projected: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return for each column of `words` how well its bits agree with a projected question.

    That is the sum of the question's numbers where the bit is set: finer than the Hamming
    distance, because an axis counts as much as the question leans to it.
    """
    import numpy as np

    octets = np.ascontiguousarray(words.T).view(np.uint8)
    numbers = np.zeros(8 * octets.shape[1], np.float32)
    numbers[: len(projected)] = projected
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32)
    sums = numbers.reshape(-1, 8) @ bits.T
    found: NDArray[np.float32] = sums[np.arange(octets.shape[1]), octets].sum(axis=1)
    return found
