"""What a request does not show, and why: nothing leaves silently."""

from collections.abc import Sequence

from libctx_core.governor.envelope import Omission
from libctx_core.governor.packing import Layout
from libctx_core.governor.thread import Tail
from libctx_core.models import HEAD_ROLES, ContextEvent

FEW = 32
"""Omitted events that are still named one by one."""


def list_omissions(
    tail: Tail, layout: Layout, orphans: Sequence[ContextEvent], shown: set[int], *, hidden: int
) -> tuple[Omission, ...]:
    """List every event that is not shown, by reason; older ones as one range."""
    result: list[Omission] = []
    near = [*tail.window, *tail.turn]
    first_near = near[0].sequence if near else tail.through + 1
    left_out = [item.event for unit in layout.left_out for item in unit.items if item.event is not None]
    listed = {event.uid for event in (*left_out, *orphans)}
    rest = [event for event in near if event.uid not in shown and event.uid not in listed]
    apart = {event.uid for event in layout.protected if event.sequence < first_near}
    if tail.question is not None:
        apart.add(tail.question.uid)
    older = tail.visible - len(near) - hidden - len(apart)
    if older > 0:
        result.append(Omission("older than the recent window", older, 1, first_near - 1))
    for reason, events in (
        ("no room left in the budget", [event for event in left_out if event.uid not in shown]),
        ("tool result without its call", orphans),
        ("redacted", [event for event in rest if event.redacted]),
        ("system text that is not protected", [e for e in rest if e.role in HEAD_ROLES and not e.redacted]),
    ):
        if events:
            result.append(_omission(reason, events))
    if tail.through > tail.visible:
        result.append(Omission("on another branch", tail.through - tail.visible, 1, tail.through))
    if hidden:
        result.append(Omission("hidden by the caller", hidden, 0, tail.through))
    return tuple(result)


def _omission(reason: str, events: Sequence[ContextEvent]) -> Omission:
    sequences = [event.sequence for event in events]
    names = tuple(event.event_id for event in events) if len(events) <= FEW else ()
    return Omission(reason, len(events), min(sequences), max(sequences), names)
