"""From a settled layout to the messages a caller sends, and why each is there."""

from collections.abc import Iterator
from dataclasses import dataclass

from libctx_core.governor.envelope import Desk, Origin, Part
from libctx_core.governor.packing import Layout
from libctx_core.governor.rendering import Message
from libctx_core.governor.units import Item
from libctx_core.models import text_of

PREVIEW = 160
"""Characters of a message that its part shows."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The messages of a request.

    Attributes:
        messages: What the model reads, in order.
        parts: Why each of them is there.
        tokens: Tokens of all of them.
        recent_event_ids: Events shown from the end of the thread, the running turn included.
        uids: Events shown anywhere but on the desk.
    """

    messages: tuple[Message, ...]
    parts: tuple[Part, ...]
    tokens: int
    recent_event_ids: tuple[str, ...]
    uids: set[int]


def show(layout: Layout, shelf: Desk, desk: Item | None) -> Shown:
    """Put the messages of a layout in order, the desk between the past and the running turn."""
    parts: list[Part] = []
    messages: list[Message] = []
    recent: list[str] = []
    uids = {event.uid for event in layout.pinned_events}
    tokens = 0
    for item, origin in _in_order(layout, desk):
        event = item.event
        event_id = None
        if event is not None:
            event_id = event.event_id
            uids.add(event.uid)
            if origin in ("recent", "turn"):
                recent.append(event_id)
        message = item.message
        content = message["content"]
        preview = (content if isinstance(content, str) else text_of(content))[:PREVIEW]
        cut = item.cut
        records: tuple[str, ...] = ()
        if item is desk:
            records = tuple(entry.hit.record_id for entry in shelf.items)
            cut = any(entry.cut for entry in shelf.items)
        elif item is layout.pinned:
            records = tuple(pinned.recall_id for pinned in layout.pinned_events)
        parts.append(Part(origin, message["role"], item.tokens, event_id, records, cut, item.note, preview, event))
        messages.append(message)
        tokens += item.tokens
    return Shown(tuple(messages), tuple(parts), tokens, tuple(recent), uids)


def _in_order(layout: Layout, desk: Item | None) -> Iterator[tuple[Item, Origin]]:
    for item in layout.head:
        yield item, "system" if item.event is None else "protected"
    if layout.pinned is not None:
        yield layout.pinned, "protected"
    for unit in layout.recent:
        for item in unit.items:
            yield item, "recent"
    if desk is not None:
        yield desk, "desk"
    for unit in layout.turn:
        for item in unit.items:
            yield item, "turn" if item.event is not None or item.message["role"] == "tool" else "synthetic"
