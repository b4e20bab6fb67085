"""``libctx consult``: ask a library a question."""

import dataclasses
from typing import Annotated

import typer

from libctx_core.cli.files import AsJson, LibraryPath, opened
from libctx_core.cli.output import emit_json, emit_lines
from libctx_core.display import hits_text


def command(
    library: LibraryPath,
    question: Annotated[str, typer.Argument(help="Any text.")],
    *,
    k: Annotated[int, typer.Option("-k", min=1, max=1000, help="Hits wanted.")] = 10,
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Only this collection's threads and shelf.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the parts of each score.")] = False,
    json: AsJson = False,
) -> None:
    """Find the best records for a question, over everything or in one collection."""
    with opened(library) as opening:
        hits = opening.consult(
            question,
            k,
            collection=collection,
            reach="collection",
            everything=collection is None,
            explain=explain,
        )
    if json:
        emit_json([dataclasses.asdict(hit) for hit in hits])
    else:
        emit_lines(hits_text(hits).splitlines())
