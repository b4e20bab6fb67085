"""``libctx history``: what was said in a thread."""

from typing import Annotated, Any

import typer

from libctx_core.cli.files import AsJson, LibraryPath, opened
from libctx_core.cli.output import emit_json, emit_table
from libctx_core.errors import ThreadNotFoundError


def command(
    library: LibraryPath,
    session: Annotated[str, typer.Argument(help="The thread.")],
    *,
    collection: Annotated[str, typer.Option("--collection", "-c", help="Its collection.")] = "default",
    limit: Annotated[int | None, typer.Option("--limit", "-n", min=1, help="Only the last so many events.")] = None,
    json: AsJson = False,
) -> None:
    """Show the events of a thread in order."""
    with opened(library) as opening:
        governor = opening.open_context_governor(session, collection=collection)
        events = list(governor.history(limit=limit))
        if not events:
            raise ThreadNotFoundError(collection, session)
    if json:
        emit_json([_record(event) for event in events])
        return
    emit_table(
        f"{collection}/{session}",
        [
            {
                "sequence": event.sequence,
                "role": event.role,
                "tokens": event.token_count,
                "protected": event.protected,
                "event": event.event_id,
                "text": "[redacted]" if event.redacted else event.text,
            }
            for event in events
        ],
    )


def _record(event: Any) -> dict[str, Any]:
    fields = (
        "event_id",
        "sequence",
        "role",
        "content",
        "speaker",
        "occurred_at",
        "created_at",
        "protected",
        "redacted",
    )
    return {name: getattr(event, name) for name in fields}
