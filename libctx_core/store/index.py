"""The lexical index on disk: postings per owner, a row of attributes per record, names, state.

Everything is keyed by owner first: statistics are sums over the owners a caller may
read, an append touches neighbouring pages, and removing an owner removes ranges. Terms
are stored as text with their postings, so a redacted word leaves no dictionary entry
behind. Nothing here is rebuilt when a library is reopened.
"""

import struct
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import apsw

from libctx_core.store.index_blocks import MAX_OFFSET, Block, Posting, decode, pack
from libctx_core.store.migrations import Component

INDEX = Component(
    "index",
    (
        """
        CREATE TABLE posting(
            owner INTEGER NOT NULL, term TEXT NOT NULL, first INTEGER NOT NULL, data BLOB NOT NULL,
            PRIMARY KEY(owner, term, first)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE index_attribute(id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
        CREATE TABLE index_name(
            owner INTEGER NOT NULL, field TEXT NOT NULL, name TEXT NOT NULL, ordinal INTEGER NOT NULL,
            PRIMARY KEY(owner, field, name)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE index_state(
            owner INTEGER PRIMARY KEY,
            positions INTEGER NOT NULL DEFAULT 0,
            posted INTEGER NOT NULL DEFAULT 0,
            alive INTEGER NOT NULL DEFAULT 0,
            length INTEGER NOT NULL DEFAULT 0,
            revision INTEGER NOT NULL DEFAULT 0,
            sitting INTEGER NOT NULL DEFAULT 0,
            sitting_size INTEGER NOT NULL DEFAULT 0,
            sitting_at REAL,
            sitting_ref TEXT,
            analysis INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE TABLE index_clock(one INTEGER PRIMARY KEY CHECK(one = 1), ticks INTEGER NOT NULL) STRICT;
        INSERT INTO index_clock VALUES(1, 0);
        """,
    ),
)

ATTRIBUTE = struct.Struct("<IHHHHBBB")
"""Attributes of one record, in the order of `Attributes`."""

ATTRIBUTE_BLOCK = 256
"""Records per attribute row: 3,840 bytes, one page."""

_BLOCK_BITS = 32


@dataclass(frozen=True, slots=True)
class Attributes:
    """What ranking knows about a record without reading it.

    Attributes:
        session: Ordinal of its session in the owner; neighbours count within one session.
        length: Indexed terms, the length BM25 divides by.
        words: Content words of its text.
        speaker: Ordinal of its speaker in the owner, 0 if it has none.
        flags: Bits named in `libctx_core.search.flags`.
        kind: Ordinal of its kind in the owner.
        role: Ordinal of its role in the owner, 0 if it has none.
        fresh: Terms that no earlier record of the owner held when it was indexed.
    """

    session: int
    length: int
    words: int
    speaker: int
    flags: int
    kind: int
    role: int
    fresh: int

    def packed(self) -> bytes:
        """Return the 15 bytes of the row; what exceeds its field is cut there, an ordinal becomes 0."""
        return ATTRIBUTE.pack(
            self.session,
            min(self.length, 0xFFFF),
            min(self.words, 0xFFFF),
            self.speaker if self.speaker <= 0xFFFF else 0,
            self.flags,
            self.kind if self.kind <= 0xFF else 0,
            self.role if self.role <= 0xFF else 0,
            min(self.fresh, 0xFF),
        )


@dataclass(slots=True)
class IndexState:
    """Counters of one owner's index.

    Attributes:
        owner: Owner id.
        positions: Next free position; positions only grow.
        posted: Positions below this have postings.
        alive: Records that are not removed.
        length: Sum of their lengths.
        revision: Grows with every change that is not an append.
        sitting: Ordinal of the last session.
        sitting_size: Records of it, if it was derived from times, else 0.
        sitting_at: When the last record of it was said.
        sitting_ref: Document it was cut from, if it was.
        analysis: Version of the text analysis behind the postings.
    """

    owner: int
    positions: int = 0
    posted: int = 0
    alive: int = 0
    length: int = 0
    revision: int = 0
    sitting: int = 0
    sitting_size: int = 0
    sitting_at: float | None = None
    sitting_ref: str | None = None
    analysis: int = 0


_STATE = "owner, positions, posted, alive, length, revision, sitting, sitting_size, sitting_at, sitting_ref, analysis"


# -- state ------------------------------------------------------------------------


def read_state(connection: apsw.Connection, owner: int) -> IndexState:
    """Return an owner's counters; zeros if it has no index yet."""
    for row in connection.execute(f"SELECT {_STATE} FROM index_state WHERE owner = ?", (owner,)):  # noqa: S608
        return IndexState(*row)
    return IndexState(owner)


def read_states(connection: apsw.Connection, owners: Sequence[int] | None) -> list[IndexState]:
    """Return the counters of the owners that have an index, by rising id; None means all."""
    if owners is None:
        rows = connection.execute(f"SELECT {_STATE} FROM index_state ORDER BY owner")  # noqa: S608
        return [IndexState(*row) for row in rows]
    if not owners:
        return []
    rows = connection.execute(
        f"SELECT {_STATE} FROM index_state WHERE owner IN (SELECT value FROM carray(?)) ORDER BY owner",  # noqa: S608
        (apsw.carray(array("q", owners)),),
    )
    return [IndexState(*row) for row in rows]


def write_state(connection: apsw.Connection, state: IndexState) -> None:
    """Store an owner's counters and move the clock that tells caches to look again."""
    connection.execute(
        f"INSERT OR REPLACE INTO index_state({_STATE}) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
        (
            state.owner,
            state.positions,
            state.posted,
            state.alive,
            state.length,
            state.revision,
            state.sitting,
            state.sitting_size,
            state.sitting_at,
            state.sitting_ref,
            state.analysis,
        ),
    )
    connection.execute("UPDATE index_clock SET ticks = ticks + 1")


def read_clock(connection: apsw.Connection) -> int:
    """Return a number that differs after any change of any owner's index."""
    ticks: int = connection.execute("SELECT ticks FROM index_clock").get
    return ticks


# -- postings ---------------------------------------------------------------------


def read_tails(connection: apsw.Connection, owner: int, terms: Iterable[str]) -> dict[str, Block]:
    """Return the last block of each of the terms that the owner holds."""
    tails: dict[str, Block] = {}
    for term in sorted(terms):
        for first, data in connection.execute(
            "SELECT first, data FROM posting WHERE owner = ? AND term = ? ORDER BY first DESC LIMIT 1", (owner, term)
        ):
            tails[term] = first, data
    return tails


def append_postings(
    connection: apsw.Connection, owner: int, postings: Mapping[str, Sequence[Posting]], tails: Mapping[str, Block]
) -> None:
    """Append postings beyond the last position of the owner.

    Args:
        connection: The writer, inside a transaction.
        owner: Owner id.
        postings: Per term, rising positions and frequencies.
        tails: Last block of each term that is there already, from `read_tails`.
    """
    rows = [
        (owner, term, first, data) for term in sorted(postings) for first, data in pack(postings[term], tails.get(term))
    ]
    connection.executemany("INSERT OR REPLACE INTO posting(owner, term, first, data) VALUES(?,?,?,?)", rows)


def change_postings(connection: apsw.Connection, owner: int, changes: Mapping[str, Mapping[int, int | None]]) -> None:
    """Change postings in the middle of an owner.

    Args:
        connection: The writer, inside a transaction.
        owner: Owner id.
        changes: Per term, the new frequency at each position to change; None removes it.
    """
    for term in sorted(changes):
        waiting = sorted(changes[term].items())
        while waiting:
            first, entries, end = _block_around(connection, owner, term, waiting[0][0])
            inside = [change for change in waiting if end is None or change[0] < end]
            waiting = waiting[len(inside) :]
            entries.update((position, frequency) for position, frequency in inside if frequency is not None)
            for position, frequency in inside:
                if frequency is None:
                    entries.pop(position, None)
            connection.execute("DELETE FROM posting WHERE owner = ? AND term = ? AND first = ?", (owner, term, first))
            connection.executemany(
                "INSERT INTO posting(owner, term, first, data) VALUES(?,?,?,?)",
                [(owner, term, start, data) for start, data in pack(sorted(entries.items()))],
            )


def _block_around(
    connection: apsw.Connection, owner: int, term: str, position: int
) -> tuple[int | None, dict[int, int], int | None]:
    """Return the block a position falls into, its entries, and where the next block begins."""
    first: int | None = None
    entries: dict[int, int] = {}
    for first, data in connection.execute(
        "SELECT first, data FROM posting WHERE owner = ? AND term = ? AND first <= ? ORDER BY first DESC LIMIT 1",
        (owner, term, position),
    ):
        entries = dict(decode(first, data))
    end: int | None = connection.execute(
        "SELECT min(first) FROM posting WHERE owner = ? AND term = ? AND first > ?", (owner, term, position)
    ).get
    return first, entries, end


def read_all_postings(connection: apsw.Connection, owner: int) -> Iterator[tuple[str, int, bytes]]:
    """Yield term, first position and entries of every block of an owner."""
    yield from connection.execute(
        "SELECT term, first, data FROM posting WHERE owner = ? ORDER BY term, first", (owner,)
    )


def terms_at(connection: apsw.Connection, owner: int, position: int) -> list[str]:
    """Return the terms that hold a position, by looking through all postings of the owner."""
    return [
        term
        for term, first, data in read_all_postings(connection, owner)
        if first <= position <= first + MAX_OFFSET and any(at == position for at, _ in decode(first, data))
    ]


def drop_postings(connection: apsw.Connection, owner: int) -> None:
    """Remove all postings of an owner."""
    connection.execute("DELETE FROM posting WHERE owner = ?", (owner,))


# -- attributes -------------------------------------------------------------------


def _attribute_id(owner: int, block: int) -> int:
    return owner << _BLOCK_BITS | block


def read_attributes(connection: apsw.Connection, owner: int, block: int = 0) -> bytes:
    """Return the packed attributes of an owner from a block on, ``ATTRIBUTE.size`` bytes a record."""
    return b"".join(
        data
        for (data,) in connection.execute(
            "SELECT data FROM index_attribute WHERE id BETWEEN ? AND ? ORDER BY id",
            (_attribute_id(owner, block), _attribute_id(owner + 1, 0) - 1),
        )
    )


def append_attributes(connection: apsw.Connection, owner: int, start: int, rows: Sequence[bytes]) -> None:
    """Append packed attributes for the positions from `start` on."""
    block, filled = divmod(start, ATTRIBUTE_BLOCK)
    data = read_attributes(connection, owner, block)[: filled * ATTRIBUTE.size] + b"".join(rows)
    size = ATTRIBUTE_BLOCK * ATTRIBUTE.size
    connection.executemany(
        "INSERT OR REPLACE INTO index_attribute(id, data) VALUES(?,?)",
        [
            (_attribute_id(owner, block + number), data[at : at + size])
            for number, at in enumerate(range(0, len(data), size))
        ],
    )


def change_attributes(
    connection: apsw.Connection, owner: int, position: int, change: Callable[[Attributes], Attributes]
) -> tuple[Attributes, Attributes]:
    """Rewrite the attributes of one position; return the old and the new ones."""
    block, row = divmod(position, ATTRIBUTE_BLOCK)
    key = _attribute_id(owner, block)
    data = bytearray(connection.execute("SELECT data FROM index_attribute WHERE id = ?", (key,)).get)
    at = row * ATTRIBUTE.size
    old = Attributes(*ATTRIBUTE.unpack_from(data, at))
    new = change(old)
    data[at : at + ATTRIBUTE.size] = new.packed()
    connection.execute("UPDATE index_attribute SET data = ? WHERE id = ?", (bytes(data), key))
    return old, new


# -- names ------------------------------------------------------------------------


def read_names(connection: apsw.Connection, owner: int, field: str) -> dict[str, int]:
    """Return the names of a field (``session``, ``speaker``, ``kind``, ``role``) and their ordinals."""
    return dict(
        connection.execute("SELECT name, ordinal FROM index_name WHERE owner = ? AND field = ?", (owner, field))
    )


def name_ordinal(connection: apsw.Connection, owner: int, field: str, name: str, ordinal: int) -> int:
    """Return the ordinal of a name, storing `ordinal` for it if it is new."""
    known: int | None = connection.execute(
        "SELECT ordinal FROM index_name WHERE owner = ? AND field = ? AND name = ?", (owner, field, name)
    ).get
    if known is not None:
        return known
    connection.execute(
        "INSERT INTO index_name(owner, field, name, ordinal) VALUES(?,?,?,?)", (owner, field, name, ordinal)
    )
    return ordinal


def count_names(connection: apsw.Connection, owner: int, field: str) -> int:
    """Return how many names a field has in an owner."""
    total: int = connection.execute("SELECT count(*) FROM index_name WHERE owner = ? AND field = ?", (owner, field)).get
    return total


def drop_index(connection: apsw.Connection, owner: int) -> None:
    """Remove everything the index holds about an owner, its counters included."""
    drop_postings(connection, owner)
    connection.execute(
        "DELETE FROM index_attribute WHERE id BETWEEN ? AND ?",
        (_attribute_id(owner, 0), _attribute_id(owner + 1, 0) - 1),
    )
    connection.execute("DELETE FROM index_name WHERE owner = ?", (owner,))
    connection.execute("DELETE FROM index_state WHERE owner = ?", (owner,))
    connection.execute("UPDATE index_clock SET ticks = ticks + 1")
