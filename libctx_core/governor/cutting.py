"""Shortening one message: its longest text is cut, everything else stays."""

from typing import cast

from libctx_core.governor.rendering import Message
from libctx_core.tokens import TokenCounter, truncate_text
from libctx_core.tokens.truncation import MARKER, Where


def cut_message(
    message: Message, room: int, where: str, counter: TokenCounter, *, marker: str = MARKER
) -> Message | None:
    """Return the message cut to `room` tokens, or None if its text cannot give enough.

    Args:
        message: A message whose content is text or blocks.
        room: Tokens it may have, overhead included.
        where: The part to cut away: ``"top"``, ``"middle"`` or ``"bottom"``.
        counter: Counts its tokens.
        marker: Stands where text was cut.
    """
    content = message["content"]
    texts = [content] if isinstance(content, str) else [b["text"] for b in content if b.get("type") == "text"]
    if not texts:
        return None
    longest = max(range(len(texts)), key=lambda index: len(texts[index]))
    rest = _with_text(message, longest, "")
    overhead = counter.count_message(rest)
    allowance = room - overhead
    while allowance > 0:
        text, _ = truncate_text(texts[longest], allowance, counter, where=cast("Where", where), marker=marker)
        shorter = _with_text(message, longest, text)
        over = counter.count_message(shorter) - room
        if over <= 0:
            return shorter
        allowance -= over
    return None


def _with_text(message: Message, index: int, text: str) -> Message:
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": text}
    blocks = []
    seen = -1
    for block in content:
        if block.get("type") == "text":
            seen += 1
            blocks.append({**block, "text": text} if seen == index else block)
        else:
            blocks.append(block)
    return {**message, "content": blocks}
