"""The library's own parts, registered through the same hooks as everybody's."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from libctx_core.plugins.markers import hookimpl
from libctx_core.plugins.specs import StorageFactory

if TYPE_CHECKING:
    import apsw

    from libctx_core.store.database import Database, Durability


@hookimpl
def register_storage_backends() -> Mapping[str, StorageFactory]:
    """Bring ``sqlite``: one file, or ``:memory:``."""
    return {"sqlite": _sqlite}


def _sqlite(
    path: str,
    /,
    *,
    durability: "Durability",
    read_only: bool,
    on_connect: "Callable[[apsw.Connection], None] | None",
) -> "Database":
    from libctx_core.store.database import Database

    return Database(path, durability=durability, read_only=read_only, on_connect=on_connect)
