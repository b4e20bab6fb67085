"""The library file: connections, migrations, one writer, and the tables of each room."""

from libctx_core.store.database import Database
from libctx_core.store.migrations import Component

__all__ = ["Component", "Database"]
