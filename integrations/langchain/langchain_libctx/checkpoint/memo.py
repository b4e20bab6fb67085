"""What a process remembers of the lists it stored last, so that it serialises only what is new."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

MAX_BYTES = 16 * 2**20
"""Fingerprints kept per checkpointer, over all threads."""


@dataclass(frozen=True, slots=True)
class ListMemo:
    """One version of one channel's list.

    Attributes:
        epoch: Id and epoch of the thread when the ids were valid.
        marks: Fingerprint of each element.
        ids: Chunk that holds each element.
    """

    epoch: tuple[int, int]
    marks: tuple[bytes | None, ...]
    ids: tuple[int, ...]

    def known(self, marks: Sequence[bytes | None]) -> int:
        """Return how many leading elements are the same as in this version."""
        count = 0
        for old, new in zip(self.marks, marks, strict=False):
            if old is None or old != new:
                break
            count += 1
        return count

    def size(self) -> int:
        """Return the bytes it occupies, about."""
        return sum(len(mark) + 96 for mark in self.marks if mark is not None)


class MemoCache:
    """The most recently used lists, bounded by bytes; safe for threads."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._memos: OrderedDict[tuple[str, str, str], tuple[ListMemo, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[str, str, str]) -> ListMemo | None:
        """Return the memo of (thread, namespace, channel), if it is still kept."""
        with self._lock:
            found = self._memos.get(key)
            if found is None:
                return None
            self._memos.move_to_end(key)
            return found[0]

    def put(self, key: tuple[str, str, str], memo: ListMemo) -> None:
        """Remember a version in place of the one before."""
        size = memo.size()
        with self._lock:
            self._drop(key)
            if size > self._max_bytes:
                return
            self._memos[key] = (memo, size)
            self._bytes += size
            while self._bytes > self._max_bytes:
                self._drop(next(iter(self._memos)))

    def forget(self, thread: str) -> None:
        """Drop everything of one thread."""
        with self._lock:
            for key in [key for key in self._memos if key[0] == thread]:
                self._drop(key)

    def _drop(self, key: tuple[str, str, str]) -> None:
        found = self._memos.pop(key, None)
        if found is not None:
            self._bytes -= found[1]
