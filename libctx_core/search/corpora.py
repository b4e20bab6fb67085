"""Corpora kept between questions, and brought up to date by reading what was appended."""

import threading
from collections import OrderedDict
from collections.abc import Sequence

import apsw

from libctx_core.search.corpus import Corpus, OwnerPart
from libctx_core.store.index import (
    ATTRIBUTE,
    ATTRIBUTE_BLOCK,
    IndexState,
    read_attributes,
    read_clock,
    read_names,
    read_states,
)

DEFAULT_BYTES = 64 * 1024 * 1024
"""Bytes of columns kept: 800,000 records."""

Key = tuple[int, ...] | None


class CorpusCache:
    """The corpora asked for last; every use is checked against the connection's snapshot.

    Args:
        max_bytes: Bytes of columns kept; the corpus in use is always kept.
    """

    def __init__(self, max_bytes: int = DEFAULT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Key, tuple[int, Corpus]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, connection: apsw.Connection, owners: Sequence[int] | None) -> Corpus:
        """Return the corpus of these owners, None meaning all, as the connection sees it."""
        key: Key = None if owners is None else tuple(sorted(set(owners)))
        clock = read_clock(connection)
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                self._kept.move_to_end(key)
        if kept is not None and kept[0] == clock:
            return kept[1]
        corpus = _renewed(connection, key, None if kept is None else kept[1])
        with self._lock:
            self._kept[key] = clock, corpus
            self._kept.move_to_end(key)
            held = sum(each.nbytes for _, each in self._kept.values())
            while held > self._max_bytes and len(self._kept) > 1:
                _, (_, dropped) = self._kept.popitem(last=False)
                held -= dropped.nbytes
        return corpus


def _renewed(connection: apsw.Connection, key: Key, known: Corpus | None) -> Corpus:
    old = {} if known is None else {part.state.owner: part for part in known.parts}
    states = [state for state in read_states(connection, key) if state.posted]
    parts = [_part(connection, state, old.get(state.owner)) for state in states]
    unchanged = known is not None and len(parts) == len(old) and all(p is old.get(p.state.owner) for p in parts)
    return known if known is not None and unchanged else Corpus(parts, known)


def _part(connection: apsw.Connection, state: IndexState, old: OwnerPart | None) -> OwnerPart:
    """Return an owner's columns: the known ones, those with what was appended, or all read again."""
    kept = 0
    if old is not None and old.state.revision == state.revision:
        if old.state.posted == state.posted:
            return old
        if old.state.posted < state.posted:
            kept = old.state.posted // ATTRIBUTE_BLOCK
    packed = read_attributes(connection, state.owner, kept)
    if old is not None and kept:
        packed = old.packed[: kept * ATTRIBUTE_BLOCK * ATTRIBUTE.size] + packed
    return OwnerPart(
        state, packed, read_names(connection, state.owner, "speaker"), read_names(connection, state.owner, "kind")
    )
