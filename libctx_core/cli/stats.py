"""``libctx stats``: how much a library holds."""

import dataclasses

from libctx_core.cli.files import AsJson, LibraryPath, opened
from libctx_core.cli.output import emit_json, emit_table


def command(library: LibraryPath, *, json: AsJson = False) -> None:
    """Count threads, events, records and bytes."""
    with opened(library) as opening:
        counts = dataclasses.asdict(opening.stats())
    if json:
        emit_json(counts)
        return
    emit_table(str(library), [{"what": name, "count": count} for name, count in counts.items()])
