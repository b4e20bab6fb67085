"""Which messages make up a request: pure decisions over counted units."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from libctx_core.errors import TurnTooLargeError
from libctx_core.governor.budget import WHOLE_TURNS, Budgets
from libctx_core.governor.cutting import cut_message
from libctx_core.governor.envelope import OmittedProtected
from libctx_core.governor.recent import protected_in, slim, take_newest
from libctx_core.governor.rendering import PINNED_CLOSE, PINNED_OPEN, block_message, item_line
from libctx_core.governor.units import Item, Unit, shrink_results, total
from libctx_core.models import HEAD_ROLES, ContextEvent
from libctx_core.tokens import TokenCounter

TRUNCATION = {"truncate_top": "top", "truncate_middle": "middle", "truncate_bottom": "bottom"}
"""Overflow modes of a turn, and the end of the text that each shortens."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What is settled before retrieval.

    Attributes:
        head: System prompt and protected system events.
        pinned: The block of protected events outside the recent window, if any.
        pinned_events: Events in that block.
        recent: Units of the recent window, oldest first.
        left_out: Units of the window that found no room, oldest first.
        turn: Units of the running turn.
        protected: Protected events shown anywhere.
        omitted_protected: Protected events that found no room.
        free: Tokens that nothing has claimed.
    """

    head: tuple[Item, ...]
    pinned: Item | None
    pinned_events: tuple[ContextEvent, ...]
    recent: tuple[Unit, ...]
    left_out: tuple[Unit, ...]
    turn: tuple[Unit, ...]
    protected: tuple[ContextEvent, ...]
    omitted_protected: tuple[OmittedProtected, ...]
    free: int

    @property
    def recent_events(self) -> tuple[ContextEvent, ...]:
        """Events of the recent units that are shown."""
        return tuple(item.event for unit in self.recent for item in unit.items if item.event is not None)


@dataclass(slots=True)
class _Pinning:
    head: list[Item] = field(default_factory=list)
    pinned: list[ContextEvent] = field(default_factory=list)
    shown: list[ContextEvent] = field(default_factory=list)
    omitted: list[OmittedProtected] = field(default_factory=list)
    used: int = 0


def fit_turn(units: Sequence[Unit], room: int, overflow: str, counter: TokenCounter) -> tuple[Unit, ...]:
    """Make the running turn fit: results become stubs first, text is cut only if asked.

    Raises:
        TurnTooLargeError: It does not fit, and `overflow` is ``"error"`` or cutting cannot help.
    """
    turn = tuple(units)
    needed = total(turn)
    if needed <= room:
        return turn
    turn = shrink_results(turn, needed - room, counter.count_message)
    if total(turn) <= room:
        return turn
    where = TRUNCATION.get(overflow)
    if where is not None:
        turn = _cut_text(turn, room, where, counter)
        if total(turn) <= room:
            return turn
    raise TurnTooLargeError(needed, room)


def _cut_text(turn: tuple[Unit, ...], room: int, where: str, counter: TokenCounter) -> tuple[Unit, ...]:
    """Shorten the user's text of a turn, the longest message first."""
    order = sorted(range(len(turn)), key=lambda place: turn[place].tokens, reverse=True)
    changed = list(turn)
    for place in order:
        excess = total(changed) - room
        if excess <= 0:
            break
        unit = changed[place]
        if not unit.starts_a_turn:
            continue
        item = unit.items[0]
        message = cut_message(item.message, item.tokens - excess, where, counter)
        if message is None:
            continue
        cut = Item(message, counter.count_message(message), item.event, cut=True, note=f"cut at the {where} to fit")
        changed[place] = Unit((cut,), cut.tokens)
    return tuple(changed)


def lay_out(
    *,
    budgets: Budgets,
    fixed: int,
    system: Item | None,
    protected: Sequence[ContextEvent],
    window: Sequence[Unit],
    turn: tuple[Unit, ...],
    tokens: Callable[[ContextEvent], int],
    counter: TokenCounter,
    reserve: int = 0,
) -> Layout:
    """Share out the budget: system prompt and turn, protected, recent; the rest is free for the desk.

    Args:
        budgets: Limits of the request.
        fixed: Tokens of tool schemas and reply head.
        system: The system prompt.
        protected: Protected events outside the running turn, in order.
        window: Units of the recent window, oldest first, the running turn excluded.
        turn: The running turn, already fitted.
        tokens: Tokens of an event's message.
        counter: Counts messages made here.
        reserve: Tokens the caller will use for a turn it adds itself.
    """
    head = () if system is None else (system,)
    free = budgets.total - fixed - reserve - total(turn) - sum(item.tokens for item in head)
    in_window = {item.event.uid for unit in window for item in unit.items if item.event is not None}
    pins = _pin(protected, min(budgets.protected, free), in_window, tokens, counter)
    free -= pins.used
    ceiling = min(budgets.recent, max(0, free - budgets.desk_floor))
    window = slim(window, budgets.recent, counter)
    recent, left_out = take_newest(window, ceiling, counter, least=int(ceiling * WHOLE_TURNS))
    late_room = min(budgets.protected - pins.used, free - total(recent))
    pinned_late = _pin_left_out(left_out, pins, late_room, counter)
    pinned = _pinned_item(pins.pinned, counter)
    used = total(recent) + pinned_late
    shown_protected = [*pins.shown, *protected_in(recent)]
    return Layout(
        head=(*head, *pins.head),
        pinned=pinned,
        pinned_events=tuple(sorted(pins.pinned, key=lambda event: event.sequence)),
        recent=recent,
        left_out=left_out,
        turn=turn,
        protected=tuple(sorted(shown_protected, key=lambda event: event.sequence)),
        omitted_protected=tuple(pins.omitted),
        free=free - used,
    )


def _pin(
    protected: Sequence[ContextEvent],
    room: int,
    in_window: set[int],
    tokens: Callable[[ContextEvent], int],
    counter: TokenCounter,
) -> _Pinning:
    """Choose protected events by importance, then age; show them in their own order."""
    result = _Pinning()
    for event in sorted(protected, key=lambda event: (-event.importance, event.sequence)):
        if event.uid in in_window or event.redacted:
            continue
        cost = tokens(event) if event.role in HEAD_ROLES else _pin_cost(event, result.pinned, counter)
        if result.used + cost > room:
            result.omitted.append(
                OmittedProtected(event.event_id, cost, f"{max(0, room - result.used)} protected tokens were left")
            )
            continue
        result.used += cost
        result.shown.append(event)
        if event.role in HEAD_ROLES:
            result.head.append(Item({"role": event.role, "content": event.content}, cost, event))
        else:
            result.pinned.append(event)
    result.head.sort(key=lambda item: item.event.sequence if item.event else 0)
    return result


def _pin_left_out(left_out: Sequence[Unit], pins: _Pinning, room: int, counter: TokenCounter) -> int:
    """Pin the protected events of units that fell out of the window; return the tokens they took."""
    taken = 0
    for event in sorted(protected_in(left_out), key=lambda event: (-event.importance, event.sequence)):
        cost = _pin_cost(event, pins.pinned, counter)
        if taken + cost > room:
            pins.omitted.append(
                OmittedProtected(event.event_id, cost, f"{max(0, room - taken)} protected tokens were left")
            )
            continue
        taken += cost
        pins.pinned.append(event)
        pins.shown.append(event)
    return taken


def _pin_cost(event: ContextEvent, already: list[ContextEvent], counter: TokenCounter) -> int:
    """Return what one more pinned event adds to the block, at most."""
    after = _pinned_item([*already, event], counter)
    before = _pinned_item(already, counter)
    return (after.tokens if after else 0) - (before.tokens if before else 0)


def _pinned_item(events: Sequence[ContextEvent], counter: TokenCounter) -> Item | None:
    if not events:
        return None
    lines = [
        item_line(event.recall_id, event.role, event.speaker, event.occurred_at, event.text, event.label or "")
        for event in sorted(events, key=lambda event: event.sequence)
    ]
    message = block_message(PINNED_OPEN, lines, PINNED_CLOSE)
    return Item(message, counter.count_message(message))
