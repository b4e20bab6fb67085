"""What a process that is forked does with the connections it inherits: close them, or never touch them.

SQLite keeps the locks of a file per process and in memory: a child that used an inherited
connection, or opened the file beside one, would think it held locks that its parent holds.
So connections that are at rest are closed in the child, which harms nobody, and the child
opens the library again. One that was in use by a thread, which a fork leaves behind, can
neither be used nor closed; then the file stays shut in this child.
"""

import os
from typing import Final, Protocol
from weakref import WeakSet

FORKED: Final = "was opened before this process was forked; open the library again in the child process"
SHUT: Final = (
    "was in use when this process was forked, so this process cannot open it; "
    "start processes first and open the library in each, or start them by spawn"
)


class Forkable(Protocol):
    """Something that holds connections."""

    def rest(self) -> None:
        """Finish what is being written, and begin nothing until `wake` or `abandon`."""
        ...

    def wake(self) -> None:
        """Go on, in the parent."""
        ...

    def abandon(self) -> None:
        """Give the inherited connections up, in the child."""
        ...


_open: WeakSet[Forkable] = WeakSet()
_resting: list[Forkable] = []
_shut: set[str] = set()


def watch(holder: Forkable) -> None:
    """Prepare for forks as long as the holder lives."""
    _open.add(holder)


def is_shut(path: str) -> bool:
    """Tell whether a file was in use when this process was forked."""
    return path in _shut


def shut(path: str, *inherited: object) -> None:
    """Keep a file from being opened in this child, and objects from ever being destroyed."""
    import ctypes

    _shut.add(path)
    for connections in inherited:
        # a connection that is destroyed is closed, at the latest when the interpreter ends
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connections))


def _before() -> None:
    for holder in tuple(_open):
        holder.rest()
        _resting.append(holder)


def _in_parent() -> None:
    while _resting:
        _resting.pop().wake()


def _in_child() -> None:
    while _resting:
        _resting.pop().abandon()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
