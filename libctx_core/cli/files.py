"""Opening the library a command works on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from libctx_core.errors import StoreMissingError

if TYPE_CHECKING:
    from libctx_core.library import LibraryOfContext

LibraryPath = Annotated[Path, typer.Argument(metavar="LIBRARY", help="The library file.", show_default=False)]
Collection = Annotated[str | None, typer.Option("--collection", "-c", help="Only this collection.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for machines.")]


@contextmanager
def opened(path: Path, *, read_only: bool = True, create: bool = False) -> Iterator["LibraryOfContext"]:
    """Open a library for the time of a command.

    Args:
        path: The file.
        read_only: Change nothing, index nothing.
        create: Make the file if there is none.

    Raises:
        StoreMissingError: There is no such file.
    """
    from libctx_core.library import LibraryOfContext

    if not create and not path.exists():
        raise StoreMissingError(str(path), "does not exist; name the file of a library")
    with LibraryOfContext(path, read_only=read_only) as library:
        yield library
