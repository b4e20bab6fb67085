"""What a model reads when it asks for something that was said before."""

import datetime as dt
from collections.abc import Sequence

from libctx_core.errors import EventNotFoundError
from libctx_core.governor import ContextGovernor
from libctx_core.models import ContextEvent, Hit

NOTHING = "Nothing that was said before matches."
MAX_TEXT = 1_200
"""Characters of one hit that are shown; the page itself is opened by its id."""


def hits_text(hits: Sequence[Hit]) -> str:
    """Return hits as lines, each with its recall id first, as data the model may quote."""
    if not hits:
        return NOTHING
    return "\n".join(_line(hit) for hit in hits)


def _line(hit: Hit) -> str:
    facts = [_recall_id(hit), hit.role or hit.kind, hit.speaker or "", _when(hit.occurred_at)]
    text = hit.text if len(hit.text) <= MAX_TEXT else f"{hit.text[:MAX_TEXT]} …"
    return f"[{' '.join(filter(None, facts))}] {text}"


def _recall_id(hit: Hit) -> str:
    return hit.record_id


def _when(seconds: float | None) -> str:
    return "" if seconds is None else dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M")


def event_text(governor: ContextGovernor, event_id: str) -> str:
    """Return a stored event whole, or a sentence that there is none."""
    try:
        event = governor.open_event(event_id.strip())
    except EventNotFoundError:
        return f"There is no page {event_id!r} in this conversation."
    return _page(event)


def _page(event: ContextEvent) -> str:
    if event.redacted:
        return f"[{event.recall_id} {event.role}] (removed)"
    return f"[{event.recall_id} {event.role}] {event.text}"
