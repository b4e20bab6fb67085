"""Turning what was said into entries that cite it."""

from collections.abc import Iterable, Iterator

from libctx_core.memory.canonical import MAX_ENTRY_TEXT_BYTES
from libctx_core.memory.plan import Proposal
from libctx_core.memory.values import EntryContext
from libctx_core.models import ContextEvent, caption_of
from libctx_core.sources.values import SourceRef

EVENT_SOURCE_TYPE = "event"
"""Source type of references to events; the source id is the event's recall id."""


def event_ref(event: ContextEvent) -> SourceRef:
    """Return the reference under which an entry cites an event."""
    return SourceRef(source_type=EVENT_SOURCE_TYPE, source_id=event.recall_id)


def event_proposals(
    events: Iterable[ContextEvent], *, session: str | None = None, kind: str = "working_note"
) -> Iterator[Proposal]:
    """Yield one entry per event, or several for a long one; events without words give none.

    Args:
        events: The events, in order.
        session: Name of their session.
        kind: Kind of the entries.
    """
    for event in events:
        for text in pieces(event.text):
            yield Proposal(
                kind=kind,
                text=text,
                sources=(event_ref(event),),
                context=EntryContext(
                    speaker=event.speaker or event.role,
                    session=session,
                    occurred_at=event.created_at if event.occurred_at is None else event.occurred_at,
                    caption=caption_of(event.content),
                ),
            )


def pieces(text: str) -> Iterator[str]:
    """Yield a text in parts that an entry can hold, cut between lines or words where possible."""
    rest = text.strip()
    while len(rest.encode()) > MAX_ENTRY_TEXT_BYTES:
        head = rest.encode()[:MAX_ENTRY_TEXT_BYTES].decode("utf-8", "ignore")
        cut = max(head.rfind("\n"), head.rfind(" "))
        if cut < len(head) // 2:
            cut = len(head)
        yield head[:cut].rstrip()
        rest = rest[cut:].lstrip()
    if rest:
        yield rest
