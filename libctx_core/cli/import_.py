"""``libctx import``: lines of JSON back into a library."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TextIO

import typer

from libctx_core.cli.files import AsJson, LibraryPath, opened
from libctx_core.cli.output import emit_json, emit_table, notice, progress

INDEXING_SECONDS = 600.0
"""How long an import waits until what it stored is searchable."""


def command(
    library: LibraryPath,
    source: Annotated[str, typer.Argument(help="A file that `export` wrote, or - for standard input.")] = "-",
    *,
    json: AsJson = False,
) -> None:
    """Store what an export holds; what the library has already is left as it is."""
    from libctx_core.cli.restore import Restored, read_lines, restore

    done = Restored()
    with _input(source) as stream, opened(library, read_only=False, create=True) as opening:
        with progress("importing", quiet=json) as advance:
            for done in restore(opening, read_lines(stream)):
                advance(done.events + done.books + done.known)
        with progress("indexing", quiet=json):
            searchable = opening.flush(INDEXING_SECONDS)
    if not searchable:
        notice("not everything is searchable yet; indexing goes on when the library is next open")
    if json:
        emit_json({**asdict(done), "searchable": searchable})
    else:
        emit_table(str(library), [{"what": name, "count": count} for name, count in asdict(done).items()])


@contextmanager
def _input(source: str) -> Iterator[TextIO]:
    if source == "-":
        yield sys.stdin
        return
    with Path(source).open(encoding="utf-8") as stream:
        yield stream
