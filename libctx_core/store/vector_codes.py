"""Bit codes of vectors as they are stored: blocks of one small code per vector, and how to read them.

They are derived: an owner without codes, or with codes that are too old to be brought up
to date, is encoded again. A code still tells something about its vector, so it is blanked
in the transaction that removes or replaces the vector.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apsw

BLOCK = 65_536
"""Vectors per stored block: 2 MiB of codes at 256 dimensions."""


@dataclass(frozen=True, slots=True)
class CodeHeader:
    """What is true of an owner's stored codes.

    Attributes:
        epoch: Epoch of the vectors that were encoded.
        changes: Newest change they include.
        tail: Slots below this are encoded.
        count: Number of codes.
        settings: How many candidates are enough, as JSON.
        encoder: What the codes were made with.
    """

    epoch: int
    changes: int
    tail: int
    count: int
    settings: str
    encoder: bytes


def read_header(connection: apsw.Connection, owner: int) -> CodeHeader | None:
    """Return the header of an owner's codes, None if it has none."""
    for row in connection.execute(
        "SELECT epoch, changes, tail, count, settings, encoder FROM vector_code_header WHERE owner = ?", (owner,)
    ):
        return CodeHeader(*row)
    return None


def write_codes(
    connection: apsw.Connection, owner: int, header: CodeHeader, blocks: Sequence[tuple[bytes, bytes]]
) -> None:
    """Replace an owner's codes; must run in a write transaction.

    Args:
        connection: The writer.
        owner: The owner.
        header: What is true of the codes.
        blocks: Slots (int64, ascending) and as many codes of equal length, `BLOCK` at a time.
    """
    drop_codes(connection, owner)
    connection.execute(
        "INSERT INTO vector_code_header(owner, epoch, changes, tail, count, settings, encoder) VALUES(?,?,?,?,?,?,?)",
        (owner, header.epoch, header.changes, header.tail, header.count, header.settings, header.encoder),
    )
    connection.executemany(
        "INSERT INTO vector_code(owner, first, slots, codes) VALUES(?, ?, ?, ?)",
        [(owner, int.from_bytes(slots[:8], "little"), slots, codes) for slots, codes in blocks],
    )


def read_codes(connection: apsw.Connection, owner: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield an owner's blocks by ascending slot."""
    yield from connection.execute("SELECT slots, codes FROM vector_code WHERE owner = ? ORDER BY first", (owner,))


def drop_codes(connection: apsw.Connection, owner: int) -> None:
    """Remove an owner's codes."""
    connection.execute("DELETE FROM vector_code WHERE owner = ?", (owner,))
    connection.execute("DELETE FROM vector_code_header WHERE owner = ?", (owner,))


def blank_codes(connection: apsw.Connection, owner: int, slots: Sequence[int]) -> None:
    """Overwrite the codes of slots with zeros; must run in a write transaction."""
    if not slots or read_header(connection, owner) is None:
        return
    for slot in slots:
        for row, members, codes in connection.execute(
            "SELECT rowid, slots, length(codes) FROM vector_code"
            " WHERE owner = ? AND first <= ? ORDER BY first DESC LIMIT 1",
            (owner, slot),
        ):
            held = array("q", members)
            at = bisect_left(held, slot)
            if at < len(held) and held[at] == slot:
                size = codes // len(held)
                with connection.blob_open("main", "vector_code", "codes", row, True) as blob:
                    blob.seek(at * size)
                    blob.write(bytes(size))
