"""Which units of the recent window a request shows: pure decisions over counted units."""

from collections.abc import Sequence

from libctx_core.governor.budget import WINDOW_FLOOR, Budgets
from libctx_core.governor.cutting import cut_message
from libctx_core.governor.units import Item, Unit, shrink_results, total
from libctx_core.models import ContextEvent
from libctx_core.tokens import TokenCounter

Split = tuple[tuple[Unit, ...], tuple[Unit, ...]]
"""Units that are shown, and units that are not, both oldest first."""


def slim(window: Sequence[Unit], recent: int, counter: TokenCounter) -> tuple[Unit, ...]:
    """Replace results by stubs in units that alone exceed the recent budget.

    Otherwise one long result would push every message around it out of sight.
    """
    allowed = int(recent * WINDOW_FLOOR)
    return tuple(
        shrink_results((unit,), unit.tokens - allowed, counter.count_message)[0] if unit.tokens > recent else unit
        for unit in window
    )


def take_newest(window: Sequence[Unit], ceiling: int, counter: TokenCounter, *, least: int) -> Split:
    """Return the newest units within a ceiling, beginning with a user turn, and the rest.

    Where that would leave fewer than `least` tokens, because the newest turns are larger
    than the ceiling, the question of the turn that was cut is shown with its newest
    steps: its answer is what the next question is about.
    """
    start = _newest(window, ceiling)
    opened = start
    while opened < len(window) and not window[opened].starts_a_turn:
        opened += 1
    plain = tuple(window[opened:]), tuple(window[:opened])
    if opened == start or total(plain[0]) >= least:
        return plain
    asked = next((place for place in range(start - 1, -1, -1) if window[place].starts_a_turn), None)
    question = None if asked is None else _short(window[asked], int(ceiling * WINDOW_FLOOR), counter)
    if asked is None or question is None:
        return plain
    newest = max(asked + 1, _newest(window, ceiling - question.tokens))
    if newest >= opened:
        return plain
    return (question, *window[newest:]), (*window[:asked], *window[asked + 1 : newest])


def _newest(window: Sequence[Unit], ceiling: int) -> int:
    """Return where the longest tail of the window within a ceiling begins."""
    used = 0
    for place in range(len(window) - 1, -1, -1):
        used += window[place].tokens
        if used > ceiling:
            return place + 1
    return 0


def _short(unit: Unit, room: int, counter: TokenCounter) -> Unit | None:
    """Return a user's unit within `room` tokens, cut in the middle if it must be."""
    item = unit.items[0]
    if item.tokens <= room:
        return unit
    marker = f"\n[… Recall it by {item.event.recall_id}.]\n" if item.event is not None else "\n[…]\n"
    message = cut_message(item.message, room, "middle", counter, marker=marker)
    if message is None:
        return None
    cut = Item(message, counter.count_message(message), item.event, cut=True, note="cut in the middle to fit")
    return Unit((cut,), cut.tokens)


def give_to_desk(recent: Sequence[Unit], wanted: int, budgets: Budgets, counter: TokenCounter) -> Split:
    """Drop the oldest recent units until `wanted` tokens are free.

    The window keeps its floor, and units that hold a protected event.
    """
    floor = int(budgets.recent * WINDOW_FLOOR)
    units = tuple(recent)
    kept, dropped = take_newest(units, max(floor, total(units) - wanted), counter, least=1)
    if not protected_in(dropped):
        return kept, dropped
    start = next(place for place, unit in enumerate(units) if protected_in((unit,)))
    while start and not units[start].starts_a_turn:
        start -= 1
    return units[start:], units[:start]


def protected_in(units: Sequence[Unit]) -> list[ContextEvent]:
    """Return the protected events of units, in order."""
    return [item.event for unit in units for item in unit.items if item.event is not None and item.event.protected]
