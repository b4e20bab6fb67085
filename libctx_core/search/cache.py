"""A cache bounded by bytes: what was used last stays, and one thread at a time prepares an entry."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

_TURNS = 64
"""Locks that keys share, so that their number stays bounded however many keys there were."""


class Sized(Protocol):
    """Something that knows how many bytes it holds."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        ...


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Sized)


class ByteCache(Generic[K, V]):
    """Keeps values up to a number of bytes; a value that is larger alone is not kept.

    Args:
        max_bytes: Bytes kept at most.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._lock = threading.Lock()
        self._turns = tuple(threading.Lock() for _ in range(_TURNS))
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._held = 0

    def __contains__(self, key: K) -> bool:
        with self._lock:
            return key in self._values

    def get(self, key: K) -> V | None:
        """Return what is kept under a key."""
        with self._lock:
            found = self._values.get(key)
        return None if found is None else found[0]

    def renew(self, key: K, make: Callable[[V | None], V]) -> V:
        """Replace what is kept under a key by what `make` returns for it, and return that.

        Threads that renew one key take turns, so `make` sees the newest value. It must not
        renew another key.
        """
        with self._turns[hash(key) % _TURNS]:
            value = make(self.get(key))
            with self._lock:
                self._drop(key)
                self._values[key] = value, value.nbytes
                self._held += value.nbytes
                while self._held > self.max_bytes:
                    self._drop(next(iter(self._values)))
        return value

    def forget(self, key: K) -> None:
        """Drop what is kept under a key."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: K) -> None:
        found = self._values.pop(key, None)
        if found is not None:
            self._held -= found[1]
