"""Events as units that must stand or fall together: pure functions."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from libctx_core.governor.rendering import Message, event_message, interrupted_result, stub_result
from libctx_core.models import HEAD_ROLES, ContextEvent

MessageCounter = Callable[[Message], int]


@dataclass(frozen=True, slots=True)
class Item:
    """One message and where it comes from.

    Attributes:
        message: What the model reads.
        tokens: Its tokens, overhead included.
        event: The event, or None for a message made here.
        cut: Whether its text was shortened.
        note: Why it was changed or made.
    """

    message: Message
    tokens: int
    event: ContextEvent | None = None
    cut: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Unit:
    """Messages that are valid only together: one message, or a call with all its results."""

    items: tuple[Item, ...]

    @property
    def tokens(self) -> int:
        """Tokens of all its messages."""
        return sum(item.tokens for item in self.items)

    @property
    def starts_a_turn(self) -> bool:
        """Whether a request may begin with it."""
        return bool(self.items[0].message["role"] == "user")


@dataclass(frozen=True, slots=True)
class Grouped:
    """Units in order, and the events that belong to none.

    Attributes:
        units: What can be shown.
        orphans: Tool results whose call is not among the events.
    """

    units: tuple[Unit, ...]
    orphans: tuple[ContextEvent, ...]


def group(events: Sequence[ContextEvent], tokens: Callable[[ContextEvent], int], count: MessageCounter) -> Grouped:
    """Group events into units.

    A result joins the call it answers wherever it stands later in the log; a call
    without a result gets an error result, so that no provider refuses the list.
    System and developer events belong to the head and are passed over, and so are
    redacted ones.
    """
    results: dict[str, ContextEvent] = {}
    called: set[str] = set()
    for event in events:
        called.update(str(call.get("id")) for call in event.tool_calls)
        if event.role == "tool" and event.tool_call_id is not None and not event.redacted:
            results.setdefault(event.tool_call_id, event)
    units: list[Unit] = []
    orphans: list[ContextEvent] = []
    answered: set[str] = set()
    for event in events:
        if event.redacted or event.role in HEAD_ROLES:
            continue
        if event.role == "tool":
            first = event.tool_call_id is not None and results.get(event.tool_call_id) is event
            if not first or event.tool_call_id not in called:
                orphans.append(event)
            continue
        items = [Item(event_message(event), tokens(event), event)]
        for call in event.tool_calls:
            call_id = str(call.get("id"))
            if call_id in answered:
                continue
            answered.add(call_id)
            items.append(_result_item(call, results.get(call_id), event, tokens, count))
        units.append(Unit(tuple(items)))
    return Grouped(tuple(units), tuple(orphans))


def _result_item(
    call: dict[str, object],
    result: ContextEvent | None,
    caller: ContextEvent,
    tokens: Callable[[ContextEvent], int],
    count: MessageCounter,
) -> Item:
    if result is not None and result.sequence > caller.sequence:
        return Item(event_message(result), tokens(result), result)
    message = interrupted_result(call)
    return Item(message, count(message), None, note="the call has no result")


def shrink_results(units: Sequence[Unit], excess: int, count: MessageCounter) -> tuple[Unit, ...]:
    """Replace the largest tool results by stubs until `excess` tokens are saved, or none is left.

    Messages of the assistant stay byte for byte: providers sign their reasoning.
    """
    order = sorted(
        (
            (item.tokens, place, index)
            for place, unit in enumerate(units)
            for index, item in enumerate(unit.items)
            if item.message["role"] == "tool" and item.event is not None
        ),
        reverse=True,
    )
    changed = [list(unit.items) for unit in units]
    for tokens, place, index in order:
        if excess <= 0:
            break
        item = changed[place][index]
        recall_id = item.event.recall_id if item.event else None
        message = stub_result(item.message, recall_id, tokens)
        stub_tokens = count(message)
        if stub_tokens >= tokens:
            continue
        changed[place][index] = replace(
            item, message=message, tokens=stub_tokens, cut=True, note="paged out: larger than the budget allows"
        )
        excess -= tokens - stub_tokens
    return tuple(Unit(tuple(items)) for items in changed)


def total(units: Iterable[Unit]) -> int:
    """Return the tokens of all units."""
    return sum(unit.tokens for unit in units)
