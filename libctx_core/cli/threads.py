"""``libctx threads``: the threads of a library."""

import datetime as dt
from typing import Any

from libctx_core.cli.files import AsJson, Collection, LibraryPath, opened
from libctx_core.cli.output import emit_json, emit_table


def command(library: LibraryPath, *, collection: Collection = None, json: AsJson = False) -> None:
    """List the threads with their events and what waits to be indexed."""
    with opened(library) as opening:
        rows: list[dict[str, Any]] = [
            {
                "collection": thread.key.collection,
                "session": thread.key.session_id,
                "owner": thread.user,
                "events": thread.events,
                "pending": thread.pending,
                "updated": dt.datetime.fromtimestamp(thread.updated_at, dt.UTC).isoformat(timespec="seconds"),
            }
            for thread in opening.threads(collection)
        ]
    if json:
        emit_json(rows)
    else:
        emit_table(f"{len(rows)} threads", rows)
