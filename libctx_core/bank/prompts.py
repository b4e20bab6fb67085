"""A user's prompt cut to size without breaking the JSON in it."""

import json
from typing import Any, Final

from libctx_core.tokens import TokenCounter
from libctx_core.tokens.truncation import Where, truncate_text

_MAX_FALSE_STARTS: Final = 200
"""Braces that open no object before the rest of a prompt is taken as text."""


def fit_prompt(text: str, max_tokens: int, counter: TokenCounter, *, where: Where, keep_json: bool) -> str:
    """Return a prompt of at most `max_tokens` tokens.

    Args:
        text: The prompt.
        max_tokens: Tokens it may have.
        counter: Counts tokens.
        where: The part to cut away.
        keep_json: Cut a conversation by whole turns, and leave JSON objects whole while
            the text around them is cut; where they alone are too long, they are cut too.
    """
    if keep_json:
        turns = _history(text)
        if turns is not None:
            return _fit_history(turns, max_tokens, counter, where)
        fitted = _fit_around_objects(text, max_tokens, counter, where)
        if fitted is not None:
            return fitted
    return truncate_text(text, max_tokens, counter, where=where)[0]


def _history(text: str) -> list[Any] | None:
    """Return the turns if the whole text is a conversation's JSON."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    turns = value.get("history") if type(value) is dict and value.keys() == {"history"} else None
    return turns if type(turns) is list else None


def _fit_history(turns: list[Any], max_tokens: int, counter: TokenCounter, where: Where) -> str:
    """Drop whole turns, as few as it takes; more turns never take fewer tokens."""
    low, high = 0, len(turns)
    while low < high:
        middle = (low + high + 1) // 2
        if counter.count(_history_text(_keep(turns, middle, where))) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    text = _history_text(_keep(turns, low, where))
    return text if counter.count(text) <= max_tokens else ""


def _keep(turns: list[Any], number: int, where: Where) -> list[Any]:
    if where == "bottom":
        return turns[:number]
    head = number // 2 if where == "middle" else 0
    return turns[:head] + turns[len(turns) - (number - head) :]


def _history_text(turns: list[Any]) -> str:
    return json.dumps({"history": turns}, ensure_ascii=False)


def _fit_around_objects(text: str, max_tokens: int, counter: TokenCounter, where: Where) -> str | None:
    """Cut only the text outside JSON objects; None if there is none, or they alone do not fit."""
    pieces = _split_objects(text)
    outside = [index for index, (_, is_object) in enumerate(pieces) if not is_object]
    if len(outside) == len(pieces):
        return None
    parts = [piece for piece, _ in pieces]
    order = outside if where != "bottom" else outside[::-1]
    for index in order:
        total = counter.count("".join(parts))
        if total <= max_tokens:
            break
        room = counter.count(parts[index]) - (total - max_tokens)
        while room > 0:
            candidate = truncate_text(pieces[index][0], room, counter, where=where)[0]
            joined = counter.count("".join([*parts[:index], candidate, *parts[index + 1 :]]))
            if joined <= max_tokens:
                break
            room -= joined - max_tokens
        parts[index] = candidate if room > 0 else ""
    result = "".join(parts)
    return result if counter.count(result) <= max_tokens else None


def _split_objects(text: str) -> list[tuple[str, bool]]:
    """Return the text in pieces, each with whether it is a JSON object."""
    decoder = json.JSONDecoder()
    pieces: list[tuple[str, bool]] = []
    start = position = failures = 0
    while (opening := text.find("{", position)) >= 0 and failures < _MAX_FALSE_STARTS:
        try:
            _, end = decoder.raw_decode(text, opening)
        except (ValueError, RecursionError):
            position = opening + 1
            failures += 1
            continue
        if opening > start:
            pieces.append((text[start:opening], False))
        pieces.append((text[opening:end], True))
        start = position = end
    if start < len(text):
        pieces.append((text[start:], False))
    return pieces
