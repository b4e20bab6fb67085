"""The library: one file that holds everything an agent has seen, and the doors into it."""

from libctx_core.library.opening import LibraryOfContext
from libctx_core.library.view import LibraryView

__all__ = ["LibraryOfContext", "LibraryView"]
