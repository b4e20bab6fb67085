"""Threads as JSON objects: lossless out, idempotent in."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from libctx_core.errors import InvalidInputError
from libctx_core.models import Block, ContextEvent, ThreadKey

FORMAT = "libctx.event.v1"

_FIELDS = (
    "event_id", "role", "content", "metadata", "importance", "protected", "speaker", "occurred_at", "turn_id",
    "reply_to", "parent_event_id", "label", "native",
)  # fmt: skip


def event_record(key: ThreadKey, event: ContextEvent, revisions: Sequence[str | list[Block]] = ()) -> dict[str, Any]:
    """Return one event as a JSON object."""
    record: dict[str, Any] = {"format": FORMAT, "collection": key.collection, "session_id": key.session_id}
    record["sequence"] = event.sequence
    record.update({name: getattr(event, name) for name in _FIELDS if getattr(event, name) is not None})
    record["created_at"] = event.created_at
    if event.redacted:
        record["redacted"] = True
    if event.repaired:
        record["repaired"] = True
    if revisions:
        record["revisions"] = list(revisions)
    return record


def read_record(line: str, number: int) -> dict[str, Any]:
    """Parse one line of an export.

    Raises:
        InvalidInputError: The line is no event of a known format; the error names the line.
    """
    try:
        record = json.loads(line)
    except ValueError as error:
        raise InvalidInputError(f"line {number}", "is not JSON") from error
    if not isinstance(record, Mapping) or record.get("format") != FORMAT:
        raise InvalidInputError(f"line {number}", f"is not an event of format {FORMAT}")
    missing = [
        name for name in ("collection", "session_id", "event_id", "role", "content", "sequence") if name not in record
    ]
    if missing:
        raise InvalidInputError(f"line {number}", f"lacks {', '.join(missing)}")
    return dict(record)


def arguments_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `record_many` that store the event again."""
    return {name: record[name] for name in _FIELDS if name in record}
