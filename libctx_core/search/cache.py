"""A cache bounded by bytes: what was used last stays, and one thread at a time prepares an entry."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar


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
        self._values: OrderedDict[K, V] = OrderedDict()
        self._turns: dict[K, threading.Lock] = {}

    def __contains__(self, key: K) -> bool:
        with self._lock:
            return key in self._values

    def get(self, key: K) -> V | None:
        """Return what is kept under a key."""
        with self._lock:
            return self._values.get(key)

    def renew(self, key: K, make: Callable[[V | None], V]) -> V:
        """Replace what is kept under a key by what `make` returns for it, and return that.

        Threads that renew one key take turns, so `make` sees the newest value.
        """
        with self._lock:
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            with self._lock:
                known = self._values.get(key)
            value = make(known)
            with self._lock:
                self._values[key] = value
                self._values.move_to_end(key)
                held = sum(one.nbytes for one in self._values.values())
                while held > self.max_bytes:
                    held -= self._values.popitem(last=False)[1].nbytes
        return value

    def forget(self, key: K) -> None:
        """Drop what is kept under a key."""
        with self._lock:
            self._values.pop(key, None)
