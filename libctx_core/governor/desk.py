"""The reading desk: which retrieved items are shown, and as what text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from libctx_core.governor.envelope import Desk, DeskItem
from libctx_core.governor.rendering import DESK_CLOSE, DESK_OPEN, Message, block_message, item_line
from libctx_core.models import Hit
from libctx_core.tokens import TokenCounter, truncate_text

MIN_CUT = 24
"""Tokens below which a shortened item says too little to be worth its head."""

CUT_MARK = " […]"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A retrieved item with its line.

    Attributes:
        hit: What was found.
        line: The line it would take.
        tokens: Tokens of that line.
    """

    hit: Hit
    line: str
    tokens: int


def recall_id(hit: Hit) -> str:
    """Return the id that brings a hit back whole."""
    return hit.record_id


def line_of(hit: Hit, text: str | None = None) -> str:
    """Return the line of a hit, or of a shortened form of it."""
    citation = "" if hit.kind == "event" else hit.citation
    return item_line(
        recall_id(hit), hit.role, hit.speaker, hit.occurred_at, hit.text if text is None else text, citation
    )


def candidates(hits: Iterable[Hit], counter: TokenCounter, enough: int) -> list[Candidate]:
    """Count the line of each hit, best first, until `enough` tokens are offered."""
    result = []
    offered = 0
    for hit in hits:
        line = line_of(hit)
        candidate = Candidate(hit, line, counter.count(line + "\n"))
        result.append(candidate)
        offered += candidate.tokens
        if offered > enough:
            break
    return result


def overhead(counter: TokenCounter) -> int:
    """Return the tokens of a desk block without its items."""
    empty = block_message(DESK_OPEN, [], DESK_CLOSE)
    if not counter.lines_add_up:
        return counter.count_message(empty)
    # the opening is counted with the line break that its first item adds
    frame = counter.count_message({**empty, "content": ""})
    return frame + sum(counter.count(text) for text in (DESK_OPEN + "\n", DESK_CLOSE))


def wanted(items: Sequence[Candidate], counter: TokenCounter) -> int:
    """Return the tokens a desk with all of these items would take."""
    return overhead(counter) + sum(item.tokens for item in items) if items else 0


def fill(items: Sequence[Candidate], room: int, counter: TokenCounter) -> tuple[list[DeskItem], Message | None, int]:
    """Choose the best items that fit; return them, the block and its tokens.

    Whole items first, in the order given; then one more may be cut with a mark. Items
    are shown in the order in which they were said.
    """
    frame = overhead(counter)
    left = room - frame
    chosen: list[tuple[DeskItem, str]] = []
    cut_candidate: Candidate | None = None
    for item in items:
        if item.tokens <= left:
            chosen.append((DeskItem(item.hit, item.tokens), item.line))
            left -= item.tokens
        elif cut_candidate is None:
            cut_candidate = item
    if cut_candidate is not None and left >= MIN_CUT:
        shortened = _shorten(cut_candidate.hit, left, counter)
        if shortened is not None:
            chosen.append(shortened)
    while chosen:
        ordered = sorted(chosen, key=lambda pair: _place(pair[0].hit))
        message = block_message(DESK_OPEN, [line for _, line in ordered], DESK_CLOSE)
        if counter.lines_add_up:
            tokens = frame + sum(item.tokens for item, _ in ordered)
        else:
            tokens = counter.count_message(message)
        if tokens <= room:
            return [item for item, _ in ordered], message, tokens
        chosen.pop()
    return [], None, 0


def _shorten(hit: Hit, room: int, counter: TokenCounter) -> tuple[DeskItem, str] | None:
    allowance = room - counter.count(line_of(hit, "") + "\n")
    while allowance >= MIN_CUT // 2:
        text, _ = truncate_text(hit.text, allowance, counter, where="bottom", marker=CUT_MARK)
        line = line_of(hit, text)
        tokens = counter.count(line + "\n")
        if tokens <= room:
            return DeskItem(hit, tokens, cut=True), line
        allowance -= tokens - room
    return None


def _place(hit: Hit) -> tuple[int, str, str, int, str]:
    """Sort books before threads, and each thread by sequence."""
    thread = hit.thread
    return (
        0 if thread is None else 1,
        thread.collection if thread else "",
        thread.session_id if thread else "",
        hit.sequence or 0,
        hit.record_id,
    )


def changes(before: Sequence[str], items: Sequence[DeskItem]) -> Desk:
    """Return the desk with what was swapped in and out since `before`."""
    now = [item.hit.record_id for item in items]
    return Desk(
        items=tuple(items),
        swapped_in=tuple(record for record in now if record not in before),
        swapped_out=tuple(record for record in before if record not in now),
        retained=tuple(record for record in now if record in before),
    )
