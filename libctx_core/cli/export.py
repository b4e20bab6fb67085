"""``libctx export``: a library as lines of JSON."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TextIO

import typer

from libctx_core.cli.files import AsJson, Collection, LibraryPath, opened
from libctx_core.cli.output import emit_json, notice, progress
from libctx_core.errors import StorePathError


def command(
    library: LibraryPath,
    target: Annotated[str, typer.Argument(help="A new file, or - for standard output.")] = "-",
    *,
    collection: Collection = None,
    json: AsJson = False,
) -> None:
    """Write threads and books as JSON lines, lossless and ready for `import`."""
    from libctx_core.cli.dump import as_line, dump, left_out

    written = 0
    with opened(library) as opening, _output(target) as stream, progress("exporting", quiet=json) as advance:
        total = opening.stats().events
        for line in dump(opening, collection=collection):
            stream.write(as_line(line) + "\n")
            written += 1
            if written % 100 == 0:
                advance(written, max(total, written))
        others = left_out(opening, collection=collection)
    for kind, count in others.items():
        notice(f"not part of an export: {count} of kind {kind}; a backup of the file holds them")
    if json and target != "-":
        emit_json({"lines": written, "left_out": others})


@contextmanager
def _output(target: str) -> Iterator[TextIO]:
    """Lend standard output, or a new file for its owner only, which is removed if the block fails."""
    if target == "-":
        yield sys.stdout
        return
    path = Path(target)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise StorePathError(target, "exists already; an export never overwrites") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
    except BaseException:
        path.unlink()
        raise
