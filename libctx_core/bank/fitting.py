"""Windows cut to a token budget: the result never takes more than it, whatever the settings."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from libctx_core.bank.lorebook import Locked, never_locked, select_keys
from libctx_core.bank.settings import WHERE, TruncationMethod, TruncationSettings
from libctx_core.bank.window import ContextWindow, ConverseData, ConverseHistory
from libctx_core.tokens import TokenCounter, truncate_text

T = TypeVar("T")

_WORD = re.compile(r"\w+")


def window_tokens(window: ContextWindow, counter: TokenCounter) -> int:
    """Return the tokens of what a prompt receives of a window: values, elements and turns."""
    count = counter.count
    return (
        sum(count(entry.value) for entry in window.lore_book_keys.values())
        + sum(count(element) for element in window.context_elements)
        + sum(count(turn.content) for turn in window.converse_history)
    )


def keep_whole(items: Sequence[T], costs: Sequence[int], max_tokens: int, method: TruncationMethod) -> list[T]:
    """Return the items that stay, whole ones only, in order.

    Args:
        items: What may be kept.
        costs: Tokens of each.
        max_tokens: Tokens that may be kept.
        method: Top keeps from the end until the first that does not fit, Bottom from the
            start, Middle from both ends with half the tokens each.
    """
    indices = range(len(items))
    if method is TruncationMethod.BOTTOM:
        kept = _prefix(indices, costs, max_tokens)
    elif method is TruncationMethod.TOP:
        kept = _prefix(indices[::-1], costs, max_tokens)
    else:
        head = _prefix(indices, costs, max_tokens // 2)
        kept = head + _prefix(indices[: len(head) - 1 if head else None : -1], costs, max_tokens // 2)
    return [items[index] for index in sorted(kept)]


def _prefix(indices: Sequence[int], costs: Sequence[int], max_tokens: int) -> list[int]:
    kept = []
    for index in indices:
        max_tokens -= costs[index]
        if max_tokens < 0:
            break
        kept.append(index)
    return kept


def _cut(
    items: list[T],
    text_of: Callable[[T], str],
    text: str,
    max_tokens: int,
    counter: TokenCounter,
    method: TruncationMethod,
    *,
    preserve: bool,
) -> list[T]:
    """Cut a list to its budget; items that share a word with the text come first if wanted."""
    matching: list[T] = []
    if preserve:
        words = set(_WORD.findall(text.lower()))
        shares = [not words.isdisjoint(_WORD.findall(text_of(item).lower())) for item in items]
        wanted = [item for item, hit in zip(items, shares, strict=True) if hit]
        items = [item for item, hit in zip(items, shares, strict=True) if not hit]
        costs = [counter.count(text_of(item)) for item in wanted]
        matching = keep_whole(wanted, costs, max_tokens, method)
        max_tokens -= sum(counter.count(text_of(item)) for item in matching)
    costs = [counter.count(text_of(item)) for item in items]
    return matching + keep_whole(items, costs, max_tokens, method)


def select_and_truncate_context(
    window: ContextWindow,
    text: str,
    max_tokens: int,
    counter: TokenCounter,
    *,
    method: TruncationMethod = TruncationMethod.TOP,
    settings: TruncationSettings | None = None,
    locked: Locked = never_locked,
) -> ContextWindow:
    """Return the part of a window that a prompt receives.

    Elements and turns get an equal share each, the lorebook a share and all that they
    leave unused; under the fill modes the lorebook comes first.

    Args:
        window: The whole window; it is not changed.
        text: What is being talked about.
        max_tokens: Tokens the result may have (`window_tokens`); at 0 or below it is empty.
        counter: Counts tokens.
        method: Which end of elements and turns is cut away.
        settings: Budget factor, fill modes, preference for matching text.
        locked: Lorebook keys that are left out.
    """
    settings = settings or TruncationSettings()
    budget = settings.budget(max_tokens)
    book, elements = window.lore_book_keys, window.context_elements
    turns = window.converse_history.history
    others = bool(elements) + bool(turns)
    fill = settings.fill_mode or settings.fill_and_split_mode
    chosen: list[str] = []
    used = 0
    if fill:
        first = budget // 2 if settings.fill_and_split_mode and others else budget
        chosen = select_keys(book, text, first, counter.count, locked=locked, fill=True)
        used = sum(counter.count(book[key].value) for key in chosen)
        share = (budget - used) // max(1, others)
    else:
        share = budget // max(1, others + bool(book))
    preserve = settings.preserve_text_matches
    kept_elements = _cut(elements, lambda item: item, text, share, counter, method, preserve=preserve)
    kept_turns = _cut(turns, _content, text, share, counter, method, preserve=preserve)
    if not fill:
        used = sum(map(counter.count, kept_elements)) + sum(counter.count(turn.content) for turn in kept_turns)
        chosen = select_keys(book, text, budget - used, counter.count, locked=locked)
    return ContextWindow({key: book[key] for key in chosen}, kept_elements, ConverseHistory(kept_turns), window.version)


def _content(turn: ConverseData) -> str:
    return turn.content


def combine_and_truncate_as_string(
    window: ContextWindow,
    text: str,
    max_tokens: int,
    counter: TokenCounter,
    *,
    method: TruncationMethod = TruncationMethod.TOP,
    locked: Locked = never_locked,
) -> str:
    """Return the called-for lorebook values and the elements as one text, cut to the budget."""
    keys = select_keys(window.lore_book_keys, text, max_tokens, counter.count, locked=locked)
    combined = " ".join([*(window.lore_book_keys[key].value for key in keys), *window.context_elements])
    return truncate_text(combined, max_tokens, counter, where=WHERE[method])[0]
