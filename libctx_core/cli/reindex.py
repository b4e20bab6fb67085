"""``libctx reindex``: embed and index everything again."""

from typing import Annotated

import typer

from libctx_core.cli.files import AsJson, LibraryPath
from libctx_core.cli.output import emit_json, emit_lines, progress
from libctx_core.errors import StoreMissingError


def command(
    library: LibraryPath,
    *,
    embedder: Annotated[
        str | None, typer.Option("--embedder", "-e", help="Name of a registered embedder; the packaged one by default.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Embed and index everything again, with the packaged embedder or another one."""
    from libctx_core.library import LibraryOfContext

    if not library.exists():
        raise StoreMissingError(str(library), "does not exist; name the file of a library")
    with LibraryOfContext(library, embedder=embedder) as opening, progress("indexing", quiet=json) as advance:
        records = opening.reindex(advance)
        profile = None if opening.embedder is None else opening.embedder.profile_id
    if json:
        emit_json({"records": records, "embedder": profile})
    else:
        emit_lines([f"{records:,} records indexed with {profile}"])
