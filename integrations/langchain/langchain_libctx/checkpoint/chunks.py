"""A channel's value as chunks: what did not change since the last step is not stored again.

A list becomes a shallow tree. Its elements (or runs of small ones) are chunks, nodes
list up to `FAN_OUT` of them, and a chunk is found again by the digest of its bytes, so
appending to a list of any length stores the new element and one path of small nodes.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate
from typing import Any, Protocol

import apsw

from langchain_libctx.checkpoint.memo import ListMemo
from langchain_libctx.fingerprints import fingerprint
from langchain_libctx.sql import fetch

FAN_OUT = 64
"""Entries of one node. An append rewrites one node per level: log64(n) of them."""

RUN = 256
"""Elements stored together where they are small, so that a row is never mostly overhead."""

_SMALL = 64
_WHOLE_LIST = 256
_WHOLE_DICT = 1024
"""Bytes below which a list, a dict, or an element is not worth a row of its own."""

_LIST, _DICT, _DELTA, _NODE = "@list", "@dict", "@delta", "@node"


class Serializer(Protocol):
    """The part of LangGraph's serialiser protocol that chunks need."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialise a value to a type tag and bytes."""
        ...

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialise what `dumps_typed` returned."""
        ...


@dataclass(frozen=True, slots=True)
class Blob:
    """One serialised value, not yet stored."""

    kind: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ListDraft:
    """A list on its way to disk.

    Attributes:
        run: Elements per entry.
        length: Elements in total.
        entries: Its entries, each a blob or the id of a chunk that is known to hold it.
        marks: Fingerprint of each element, where one could be taken; empty if `run` is not 1.
    """

    run: int
    length: int
    entries: tuple["Blob | int", ...]
    marks: tuple[bytes | None, ...] = ()


@dataclass(frozen=True, slots=True)
class DictDraft:
    """A dict on its way to disk: its keys as one value, its values as a list."""

    keys: Blob
    values: ListDraft


@dataclass(frozen=True, slots=True)
class DeltaDraft:
    """The snapshot of a delta channel."""

    value: "Draft"


Draft = Blob | ListDraft | DictDraft | DeltaDraft


def draft(value: Any, serde: Serializer, memo: ListMemo | None = None) -> Draft:
    """Serialise a value into what must be stored of it; touches no database.

    Args:
        value: The channel's value.
        serde: Serialiser of everything below the level of lists and dicts.
        memo: What the last version of this channel's list looked like.

    Raises:
        TypeError: The serialiser cannot express the value.
    """
    if type(value) is list and value:
        return _draft_list(value, serde, memo)
    if type(value) is dict and len(value) > 1:
        return _draft_dict(value, serde)
    if type(value).__name__ == "_DeltaSnapshot":
        return DeltaDraft(draft(value.value, serde, memo))
    return Blob(*serde.dumps_typed(value))


def _draft_list(value: list[Any], serde: Serializer, memo: ListMemo | None) -> Draft:
    head = [Blob(*serde.dumps_typed(item)) for item in value[:8]]
    if len(head) == len(value) and sum(len(blob.data) for blob in head) < _WHOLE_LIST:
        return Blob(*serde.dumps_typed(value))
    if sum(len(blob.data) for blob in head) < _SMALL * len(head):
        runs = (value[at : at + RUN] for at in range(0, len(value), RUN))
        return ListDraft(RUN, len(value), tuple(Blob(*serde.dumps_typed(run)) for run in runs))
    marks = tuple(fingerprint(item) for item in value)
    known = memo.known(marks) if memo is not None else 0
    kept: tuple[Blob | int, ...] = tuple(memo.ids[:known]) if memo is not None else ()
    fresh = (head[at] if at < len(head) else Blob(*serde.dumps_typed(value[at])) for at in range(known, len(value)))
    return ListDraft(1, len(value), (*kept, *fresh), marks)


def _draft_dict(value: dict[Any, Any], serde: Serializer) -> Draft:
    values = [Blob(*serde.dumps_typed(item)) for item in value.values()]
    if sum(len(blob.data) for blob in values) < _WHOLE_DICT:
        return Blob(*serde.dumps_typed(value))
    return DictDraft(Blob(*serde.dumps_typed(list(value))), ListDraft(1, len(values), tuple(values)))


def _pack(ids: Iterable[int]) -> bytes:
    """Write ids as differences: neighbours on disk are neighbours in time."""
    last = 0
    steps = []
    for identifier in ids:
        steps.append(identifier - last)
        last = identifier
    return json.dumps(steps, separators=(",", ":")).encode()


def _unpack(data: bytes) -> list[int]:
    return list(accumulate(json.loads(data)))


class ChunkWriter:
    """Stores drafts in the chunks of one thread; lives within one write transaction."""

    def __init__(self, connection: apsw.Connection, thread: int) -> None:
        self._connection = connection
        self._thread = thread
        self.lists: dict[int, list[int]] = {}
        """Entry ids of every list that was stored, by the id of its root."""

    def store(self, value: Draft) -> int:
        """Store what is new of a draft and return the id of its root chunk."""
        if isinstance(value, Blob):
            return self._put(value.kind, value.data)
        if isinstance(value, DeltaDraft):
            return self._put(_DELTA, _pack([self.store(value.value)]))
        if isinstance(value, DictDraft):
            return self._put(_DICT, _pack([self.store(value.keys), self.store(value.values)]))
        entries = [item if isinstance(item, int) else self._put(item.kind, item.data) for item in value.entries]
        root = self._put(f"{_LIST}/{value.run}/{value.length}", _pack(self._tree(entries)))
        self.lists[root] = entries
        return root

    def _tree(self, entries: list[int]) -> list[int]:
        """Stack nodes over the entries until one node can hold the rest."""
        level = entries
        while len(level) > FAN_OUT:
            level = [self._put(_NODE, _pack(level[at : at + FAN_OUT])) for at in range(0, len(level), FAN_OUT)]
        return level

    def _put(self, kind: str, data: bytes) -> int:
        digest = blake2b(kind.encode() + b"\0" + data, digest_size=16).digest()
        known = self._connection.execute(
            "SELECT id FROM checkpoint_chunk WHERE thread = ? AND digest = ?", (self._thread, digest)
        ).get
        if known is not None:
            return int(known)
        self._connection.execute(
            "INSERT INTO checkpoint_chunk(thread, digest, kind, data) VALUES(?,?,?,?)",
            (self._thread, digest, kind, data),
        )
        return int(self._connection.last_insert_rowid())


class ChunkReader:
    """Reads values back from chunks; lives within one read."""

    def __init__(self, connection: apsw.Connection, serde: Serializer) -> None:
        self._connection = connection
        self._serde = serde

    def load(self, chunk: int) -> Any:
        """Return the value whose root is this chunk."""
        value, _entries = self.load_with_entries(chunk)
        return value

    def load_with_entries(self, chunk: int) -> tuple[Any, list[int]]:
        """Return a value and, if it is a list of single elements, the chunk id of each."""
        kind, data = self._row(chunk)
        if kind.startswith(_LIST):
            _, run, length = kind.split("/")
            entries = self._entries(_unpack(data), int(length), int(run))
            values = [self._serde.loads_typed(row) for row in self._rows(entries)]
            if int(run) == 1:
                return values, entries
            return [item for part in values for item in part], []
        if kind == _DICT:
            keys, values_root = _unpack(data)
            return dict(zip(self.load(keys), self.load(values_root), strict=True)), []
        if kind == _DELTA:
            from langgraph.checkpoint.serde.types import _DeltaSnapshot

            value, entries = self.load_with_entries(_unpack(data)[0])
            return _DeltaSnapshot(value), entries
        return self._serde.loads_typed((kind, data)), []

    def _row(self, chunk: int) -> tuple[str, bytes]:
        return next(self._rows([chunk]))

    def _rows(self, chunks: Sequence[int]) -> Iterator[tuple[str, bytes]]:
        yield from self._connection.executemany(
            "SELECT kind, data FROM checkpoint_chunk WHERE id = ?", ((chunk,) for chunk in chunks)
        )

    def _entries(self, level: list[int], length: int, run: int) -> list[int]:
        """Descend from a root's entries to the list's own."""
        wanted = -(-length // run)
        while len(level) < wanted:
            level = [child for _, data in self._rows(level) for child in _unpack(data)]
        return level


def references(connection: apsw.Connection, roots: Iterable[int]) -> set[int]:
    """Return every chunk that is reachable from these, themselves included."""
    reached: set[int] = set()
    waiting = list(roots)
    while waiting:
        chunk = waiting.pop()
        if chunk in reached:
            continue
        reached.add(chunk)
        node = connection.execute(
            "SELECT data FROM checkpoint_chunk WHERE id = ? AND substr(kind, 1, 1) = '@'", (chunk,)
        ).get
        if node is not None:
            waiting.extend(_unpack(node))
    return reached


def transplant(connection: apsw.Connection, chunk: int, writer: ChunkWriter, moved: dict[int, int]) -> int:
    """Copy a chunk and all below it into the writer's thread; return its id there.

    Args:
        connection: The connection of the running write transaction.
        chunk: Root to copy.
        writer: Writer of the receiving thread.
        moved: Chunks copied so far, old id to new; grows.
    """
    if chunk not in moved:
        ((kind, data),) = fetch(connection, "SELECT kind, data FROM checkpoint_chunk WHERE id = ?", (chunk,))
        if kind.startswith("@"):
            data = _pack(transplant(connection, child, writer, moved) for child in _unpack(data))
        moved[chunk] = writer.store(Blob(kind, data))
    return moved[chunk]
