"""Events as units that must stand or fall together: pure functions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from libctx_core.governor.rendering import Message, event_message, interrupted_result, stub_result
from libctx_core.models import HEAD_ROLES, Block, ContextEvent

MessageCounter = Callable[[Message], int]


class Item(NamedTuple):
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


class Unit(NamedTuple):
    """Messages that are valid only together: one message, or a call with all its results.

    Attributes:
        items: Its messages.
        tokens: Tokens of all of them.
    """

    items: tuple[Item, ...]
    tokens: int

    @classmethod
    def of(cls, items: Iterable[Item]) -> "Unit":
        """Return the unit of some messages."""
        whole = tuple(items)
        return cls(whole, sum([item.tokens for item in whole]))

    @property
    def sequence(self) -> int:
        """Sequence of the event it begins with, 0 if it begins with a message made here."""
        event = self.items[0].event
        return 0 if event is None else event.sequence

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


@dataclass(slots=True)
class _Call:
    """One call of an assistant event and the result that answers it."""

    block: Block
    caller: ContextEvent
    result: ContextEvent | None = None


def group(events: Sequence[ContextEvent], tokens: Callable[[ContextEvent], int], count: MessageCounter) -> Grouped:
    """Group events into units.

    A result joins the newest open call of its id before it, wherever it stands in the
    log; a call without a result gets an error result, so that no provider refuses the
    list. Where a model used one id for two calls, the older call is renamed. System and
    developer events belong to the head and are passed over, and so are redacted ones.
    """
    leaders: list[tuple[ContextEvent, list[_Call]]] = []
    open_calls: dict[str, list[_Call]] = {}
    orphans: list[ContextEvent] = []
    for event in events:
        if event.redacted or event.role in HEAD_ROLES:
            continue
        if event.role == "tool":
            call = _answered_by(event, open_calls)
            if call is None:
                orphans.append(event)
            else:
                call.result = event
            continue
        calls = [_Call(block, event) for block in event.tool_calls]
        leaders.append((event, calls))
        for call in calls:
            open_calls.setdefault(str(call.block.get("id")), []).append(call)
    used: set[str] = set()
    units = [_unit(event, calls, used, tokens, count) for event, calls in reversed(leaders)]
    return Grouped(tuple(reversed(units)), tuple(orphans))


def _answered_by(event: ContextEvent, open_calls: Mapping[str, Sequence[_Call]]) -> _Call | None:
    """Return the call a result answers: of the newest event with an open call of its id, the first."""
    waiting = [call for call in open_calls.get(event.tool_call_id or "", ()) if call.result is None]
    return next((call for call in waiting if call.caller is waiting[-1].caller), None)


def _unit(
    event: ContextEvent,
    calls: Sequence[_Call],
    used: set[str],
    tokens: Callable[[ContextEvent], int],
    count: MessageCounter,
) -> Unit:
    if not calls:
        plain = Item(event_message(event), tokens(event), event)
        return Unit((plain,), plain.tokens)
    names = [_free_name(str(call.block.get("id")), event.sequence, used) for call in calls]
    leader = Item(event_message(event), tokens(event), event)
    if any(name != str(call.block.get("id")) for name, call in zip(names, calls, strict=True)):
        message = {**leader.message, "content": _renamed(event.content, names)}
        leader = Item(message, count(message), event, note="a call id was used twice")
    results = [_result_item(call, name, tokens, count) for name, call in zip(names, calls, strict=True)]
    return Unit.of((leader, *results))


def _free_name(name: str, sequence: int, used: set[str]) -> str:
    """Return an id no newer call has, and take it."""
    free, attempt = name, 0
    while free in used:
        free = f"{name}~{sequence}" if attempt == 0 else f"{name}~{sequence}.{attempt}"
        attempt += 1
    used.add(free)
    return free


def _renamed(content: str | Sequence[Block], names: Sequence[str]) -> list[Block]:
    fresh = iter(names)
    return [
        {**block, "id": next(fresh)} if block.get("type") == "tool_call" else block
        for block in content
        if not isinstance(block, str)
    ]


def _result_item(call: _Call, name: str, tokens: Callable[[ContextEvent], int], count: MessageCounter) -> Item:
    if call.result is None:
        message = interrupted_result(name)
        return Item(message, count(message), None, note="the call has no result")
    message = event_message(call.result)
    if message["tool_call_id"] == name:
        return Item(message, tokens(call.result), call.result)
    message = {**message, "tool_call_id": name}
    return Item(message, count(message), call.result, note="a call id was used twice")


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
        changed[place][index] = item._replace(
            message=message, tokens=stub_tokens, cut=True, note="paged out: larger than the budget allows"
        )
        excess -= tokens - stub_tokens
    return tuple(Unit.of(items) for items in changed)


def total(units: Iterable[Unit]) -> int:
    """Return the tokens of all units."""
    return sum([unit.tokens for unit in units])
