"""Vectors as they are stored, one row per slot, with the state that caches are checked against.

A row is little-endian float32, or int8 codes and their scale where the default embedder made
it: `is_quantised` says why. A row's length tells which, so both may stand in one file.

Every write keeps the owner's row in `vector_profile` true in the same transaction: how many
vectors there are, where the stretch of slots ends, and how often an existing slot was
changed. A cache that knows an older state reads only the slots behind its tail and those
named in the change log; a new epoch tells it to start over.
"""

import secrets
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apsw

from libctx_core.embedding.static import PROFILE_PREFIX
from libctx_core.errors import EmbeddingDimensionError, EmbeddingProfileError, InvalidInputError
from libctx_core.store.records import bound_slots, slot_range
from libctx_core.store.vector_codes import blank_codes, drop_codes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNNAMED_PROFILE = ""
"""Profile of vectors whose maker is unknown; it is compared with no other profile."""

MAX_DIMENSION = 32_768

MAX_LOGGED_CHANGES = 4_096
"""Changed slots the log holds per owner; beyond that every cache starts over."""

_LARGEST_CODE = 127
_SCALE_BYTES = 4

READ_BLOCK = 4_096
"""Vectors read from the file at a time: 6 MiB at 384 dimensions."""


@dataclass(frozen=True, slots=True)
class VectorState:
    """What an owner's vectors are, in one snapshot.

    Attributes:
        profile: Embedding profile, or `UNNAMED_PROFILE`.
        dimension: Length of every vector.
        count: Number of vectors.
        tail: All slots with a vector are below this one.
        epoch: Differs from any earlier one when caches must start over.
        changes: Number of the newest entry of the change log.
    """

    profile: str
    dimension: int
    count: int
    tail: int
    epoch: int
    changes: int


def vector_state(connection: apsw.Connection, owner: int) -> VectorState | None:
    """Return the state of an owner's vectors, None before the first was stored."""
    for row in connection.execute(
        "SELECT profile, dimension, count, tail, epoch, changes FROM vector_profile WHERE owner = ?", (owner,)
    ):
        return VectorState(*row)
    return None


def check_profile(state: VectorState | None, profile: str | None, dimension: int | None) -> None:
    """Compare what the file holds with what a caller brings; None is not compared.

    Raises:
        EmbeddingProfileError: Another embedder made the stored vectors.
        EmbeddingDimensionError: The stored vectors have another length.
    """
    if state is None:
        return
    if profile and state.profile and profile != state.profile:
        raise EmbeddingProfileError(state.profile, profile)
    if dimension is not None and dimension != state.dimension:
        raise EmbeddingDimensionError(state.dimension, dimension)


def fix_profile(connection: apsw.Connection, owner: int, profile: str | None, dimension: int) -> VectorState:
    """Return the owner's state, fixing profile and dimension if this is its first vector.

    Raises:
        EmbeddingProfileError: Another embedder made the stored vectors.
        EmbeddingDimensionError: The stored vectors have another length.
    """
    state = vector_state(connection, owner)
    check_profile(state, profile, dimension)
    if state is None:
        first, _ = slot_range(owner)
        state = VectorState(profile or UNNAMED_PROFILE, dimension, 0, first, secrets.randbits(48), 0)
        connection.execute(
            "INSERT INTO vector_profile(owner, profile, dimension, tail, epoch) VALUES(?, ?, ?, ?, ?)",
            (owner, state.profile, dimension, first, state.epoch),
        )
    elif profile and not state.profile:
        connection.execute("UPDATE vector_profile SET profile = ? WHERE owner = ?", (profile, owner))
    return state


def is_quantised(profile: str) -> bool:
    """Tell whether vectors of a profile are stored as int8 codes with one scale each.

    Those of the default embedder are: it sums such codes itself and can make its vectors
    again, and as float32 they would be half of what a message takes in the file. Whatever
    else is stored may be somebody's only copy and stays exact.
    """
    return profile.startswith(PROFILE_PREFIX)


def vector_bytes(vector: Any, *, field: str = "vector") -> bytes:
    """Return a vector as it is put: little-endian float32, whatever sequence of numbers it came as.

    Raises:
        InvalidInputError: Not a flat sequence of finite numbers, empty, over
            `MAX_DIMENSION`, or longer than float32 can measure.
    """
    return pack_vectors([vector], field=field)[0]


def pack_vectors(vectors: Sequence[Any], *, field: str = "vector") -> list[bytes]:
    """Return vectors of one length as they are put.

    Raises:
        EmbeddingDimensionError: Their lengths differ.
        InvalidInputError: As for `vector_bytes`.
    """
    import numpy as np

    if not vectors:
        return []
    packed = [_pack(vector, field) for vector in vectors]
    length = len(packed[0])
    for row in packed:
        if len(row) != length:
            raise EmbeddingDimensionError(length // 4, len(row) // 4)
    matrix = np.frombuffer(b"".join(packed), "<f4").reshape(len(packed), -1)
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", matrix, matrix)
    if not np.isfinite(squares).all():
        raise InvalidInputError(field, "holds NaN, infinity, or numbers too large for float32")
    return packed


def _pack(vector: Any, field: str) -> bytes:
    if isinstance(vector, list | tuple):
        length, shape = len(vector), (len(vector),)
    else:
        import numpy as np

        try:
            vector = np.asarray(vector, dtype="<f4")
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInputError(field, "must be a flat sequence of numbers") from error
        shape = vector.shape
        length = shape[0] if len(shape) == 1 else 0
    if not 1 <= length <= MAX_DIMENSION:
        raise InvalidInputError(field, f"must have one axis of 1 to {MAX_DIMENSION} numbers, not shape {shape}")
    try:
        return struct.pack(f"<{length}f", *vector) if isinstance(vector, list | tuple) else bytes(vector.tobytes())
    except (struct.error, OverflowError) as error:
        raise InvalidInputError(field, "must be a flat sequence of numbers that fit float32") from error


def put_vectors(connection: apsw.Connection, owner: int, rows: Sequence[tuple[int, bytes]]) -> None:
    """Store vectors by slot, replacing those that exist; must run in a write transaction.

    Args:
        connection: The writer, after `fix_profile`.
        owner: Owner of all the slots.
        rows: Slot and `vector_bytes`, by ascending slot.

    Raises:
        EmbeddingDimensionError: A vector has another length than the owner's.
    """
    if not rows:
        return
    state = vector_state(connection, owner)
    assert state is not None, "fix_profile comes first"
    for _, data in rows:
        if len(data) != 4 * state.dimension:
            raise EmbeddingDimensionError(state.dimension, len(data) // 4)
    behind = [slot for slot, _ in rows if slot < state.tail]
    replaced = len(present_vectors(connection, behind))
    stored = _quantised(rows) if is_quantised(state.profile) else rows
    connection.executemany("INSERT OR REPLACE INTO vector(slot, data) VALUES(?, ?)", stored)
    connection.execute(
        "UPDATE vector_profile SET count = count + ?, tail = max(tail, ?) WHERE owner = ?",
        (len(rows) - replaced, rows[-1][0] + 1, owner),
    )
    blank_codes(connection, owner, behind)
    _log_changes(connection, owner, behind)


def _quantised(rows: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    import numpy as np

    exact = np.frombuffer(b"".join([row for _, row in rows]), "<f4").reshape(len(rows), -1)
    scales = (np.abs(exact).max(axis=1, keepdims=True) / _LARGEST_CODE).astype("<f4")
    codes = np.rint(exact / np.where(scales > 0, scales, 1)).astype(np.int8)
    return [(slot, codes[at].tobytes() + scales[at].tobytes()) for at, (slot, _) in enumerate(rows)]


def unpack_vectors(rows: Sequence[bytes], dimension: int) -> "NDArray[np.float32]":
    """Return stored rows as one matrix, shape ``(len(rows), dimension)``; do not change it."""
    import numpy as np

    data, size = b"".join(rows), dimension + _SCALE_BYTES
    if len(data) == 4 * dimension * len(rows):
        return np.frombuffer(data, "<f4").reshape(len(rows), dimension)
    if len(data) == size * len(rows):
        coded = np.frombuffer(data, np.int8).reshape(len(rows), size)
        scales = np.ascontiguousarray(coded[:, dimension:]).view("<f4")
        matrix: NDArray[np.float32] = coded[:, :dimension] * scales
        return matrix
    # vectors put before and after codes came into use
    return np.concatenate([unpack_vectors([row], dimension) for row in rows])


def remove_vectors(connection: apsw.Connection, owner: int, slots: Iterable[int]) -> None:
    """Delete the vectors of slots that have one; must run in a write transaction."""
    gone = present_vectors(connection, slots)
    if not gone:
        return
    connection.executemany("DELETE FROM vector WHERE slot = ?", [(slot,) for slot in gone])
    blank_codes(connection, owner, gone)
    connection.execute("UPDATE vector_profile SET count = count - ? WHERE owner = ?", (len(gone), owner))
    _log_changes(connection, owner, gone)


def clear_vectors(connection: apsw.Connection, owner: int) -> None:
    """Delete all vectors of an owner and forget their profile: the next one may come from another embedder."""
    connection.execute("DELETE FROM vector WHERE slot BETWEEN ? AND ?", slot_range(owner))
    connection.execute("DELETE FROM vector_change WHERE owner = ?", (owner,))
    connection.execute("DELETE FROM vector_profile WHERE owner = ?", (owner,))
    drop_codes(connection, owner)


def _log_changes(connection: apsw.Connection, owner: int, slots: Sequence[int]) -> None:
    if not slots:
        return
    logged: int = connection.execute(
        "SELECT coalesce(max(number) - min(number), 0) FROM vector_change WHERE owner = ?", (owner,)
    ).get
    if logged + len(slots) > MAX_LOGGED_CHANGES:
        connection.execute("DELETE FROM vector_change WHERE owner = ?", (owner,))
        connection.execute("UPDATE vector_profile SET epoch = epoch + 1 WHERE owner = ?", (owner,))
        return
    last: int = connection.execute(
        "UPDATE vector_profile SET changes = changes + ? WHERE owner = ? RETURNING changes", (len(slots), owner)
    ).get
    numbers = range(last - len(slots) + 1, last + 1)
    connection.executemany(
        "INSERT INTO vector_change(owner, number, slot) VALUES(?, ?, ?)",
        [(owner, number, slot) for number, slot in zip(numbers, slots, strict=True)],
    )


def changed_slots(connection: apsw.Connection, owner: int, after: int) -> list[int]:
    """Return the slots changed since entry `after` of the log, each once."""
    rows = connection.execute("SELECT slot FROM vector_change WHERE owner = ? AND number > ?", (owner, after))
    return list(dict.fromkeys(slot for (slot,) in rows))


def present_vectors(connection: apsw.Connection, slots: Iterable[int]) -> list[int]:
    """Return those of `slots` that have a vector."""
    wanted = tuple(slots)
    if not wanted:
        return []
    rows = connection.execute(
        "SELECT slot FROM vector WHERE slot IN (SELECT value FROM carray(?))", (bound_slots(wanted),)
    )
    return [slot for (slot,) in rows]


def read_vectors(
    connection: apsw.Connection, first: int, last: int, dimension: int
) -> "Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]":
    """Yield the vectors of slots `first` to `last`, both included, in blocks by ascending slot.

    Each block is slots of shape ``(n,)`` and vectors of shape ``(n, dimension)``, n ≤ `READ_BLOCK`.
    """
    cursor = connection.execute("SELECT slot, data FROM vector WHERE slot BETWEEN ? AND ?", (first, last))
    yield from _blocks(cursor, dimension)


def read_some_vectors(
    connection: apsw.Connection, slots: "NDArray[np.int64]", dimension: int
) -> "tuple[NDArray[np.int64], NDArray[np.float32]]":
    """Return slots and vectors of those of `slots` (ascending) that have one, by ascending slot."""
    import numpy as np

    nothing = np.empty(0, np.int64), np.empty((0, dimension), np.float32)
    if not len(slots):
        return nothing
    cursor = connection.execute(
        "SELECT slot, data FROM vector WHERE slot IN (SELECT value FROM carray(?)) ORDER BY slot",
        (apsw.carray(np.ascontiguousarray(slots, dtype=np.int64)),),
    )
    blocks = list(_blocks(cursor, dimension))
    if not blocks:
        return nothing
    return np.concatenate([block[0] for block in blocks]), np.concatenate([block[1] for block in blocks])


def _blocks(cursor: Any, dimension: int) -> "Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]":
    from itertools import islice

    import numpy as np

    while rows := list(islice(cursor, READ_BLOCK)):
        slots = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        yield slots, unpack_vectors([row[1] for row in rows], dimension)
