"""Posting blocks: how occurrences of one term in one owner are laid out in bytes.

A block is a run of 3-byte entries, ``(position - first) as uint16, term frequency as
uint8``, in rising order of position; `first` is the position of its first entry and
part of the row's key. A block is closed at `MAX_ENTRIES`, so appending rewrites at most
768 bytes, and a block fits the local part of a 4 KiB page.
"""

import struct
from collections.abc import Iterable, Iterator

ENTRY = struct.Struct("<HB")
MAX_ENTRIES = 256
MAX_OFFSET = 0xFFFF
MAX_FREQUENCY = 0xFF

Posting = tuple[int, int]
"""A position in the owner and the term's frequency there."""

Block = tuple[int, bytes]
"""First position of a block and its entries."""


def decode(first: int, data: bytes) -> list[Posting]:
    """Return the postings of a block."""
    return [(first + offset, frequency) for offset, frequency in ENTRY.iter_unpack(data)]


def pack(postings: Iterable[Posting], onto: Block | None = None) -> Iterator[Block]:
    """Yield the blocks that hold `postings`, in rising order of position.

    Args:
        postings: Rising positions, all beyond the last one of `onto`.
        onto: The block to fill up first.
    """
    first, data = (onto[0], bytearray(onto[1])) if onto is not None else (0, bytearray())
    for position, frequency in postings:
        if data and (position - first > MAX_OFFSET or len(data) >= MAX_ENTRIES * ENTRY.size):
            yield first, bytes(data)
            data = bytearray()
        if not data:
            first = position
        data += ENTRY.pack(position - first, min(frequency, MAX_FREQUENCY))
    if data:
        yield first, bytes(data)
