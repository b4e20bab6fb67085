"""Lorebook entries, and which of them a text calls for."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from libctx_core.errors import InvalidInputError

Count: TypeAlias = Callable[[str], int]
Locked: TypeAlias = Callable[[str], bool]
Book: TypeAlias = Mapping[str, "LoreBook"]


@dataclass(frozen=True, slots=True)
class LoreBook:
    """One entry of background knowledge.

    Attributes:
        key: Its name; not blank.
        value: Its text, what a prompt receives.
        weight: Its importance; heavier entries are chosen first.
        linked_keys: Entries that come along whenever this one is hit.
        alias_keys: Other names that hit this entry.
        required_keys: Entries that must be chosen as well, or this one is left out.
    """

    key: str
    value: str
    weight: int = 0
    linked_keys: tuple[str, ...] = ()
    alias_keys: tuple[str, ...] = ()
    required_keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if type(self.key) is not str or not self.key.strip():
            raise InvalidInputError("key", "must be a non-blank str")
        if type(self.value) is not str:
            raise InvalidInputError("value", "must be a str")
        if type(self.weight) is not int:
            raise InvalidInputError("weight", "must be an int")
        for field in ("linked_keys", "alias_keys", "required_keys"):
            keys = getattr(self, field)
            if isinstance(keys, str) or any(type(key) is not str for key in keys):
                raise InvalidInputError(field, "must be a collection of str")
            object.__setattr__(self, field, tuple(keys))

    def combine(self, other: "LoreBook") -> "LoreBook":
        """Return this entry with the other's text appended and its required keys added."""
        return replace(
            self,
            value=f"{self.value} {other.value}",
            required_keys=union(self.required_keys, other.required_keys),
        )


def union(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    """Return both in order, without repeats."""
    return tuple(dict.fromkeys([*first, *second]))


def resolve_key(book: Book, name: str) -> str | None:
    """Return the key of the entry a name means: exact spellings first, then regardless of case."""
    if name in book:
        return name
    for key, entry in book.items():
        if name in entry.alias_keys:
            return key
    folded = name.casefold()
    for key, entry in book.items():
        if key.casefold() == folded or any(alias.casefold() == folded for alias in entry.alias_keys):
            return key
    return None


def never_locked(key: str) -> bool:
    """Answer for a book without locks."""
    return False


def matching_keys(book: Book, text: str, locked: Locked = never_locked) -> list[str]:
    """Return the unlocked entries whose key or alias occurs in the text, regardless of case."""
    lowered = text.lower()
    return [
        key
        for key, entry in book.items()
        if not locked(key)
        and (key.lower() in lowered or any(alias.lower() in lowered for alias in entry.alias_keys if alias.strip()))
    ]


def _linked(book: Book, hits: list[str]) -> dict[str, None]:
    """Return the hits and, breadth first, everything linked from them."""
    found = dict.fromkeys(hits)
    queue = list(hits)
    for key in queue:
        for linked in book[key].linked_keys:
            if linked in book and linked not in found:
                found[linked] = None
                queue.append(linked)
    return found


def _satisfied(book: Book, active: Collection[str], required: str) -> bool:
    """Return whether an active entry is the required one, by key or by alias of either."""
    entry = book.get(required)
    aliases = () if entry is None else entry.alias_keys
    return any(key == required or required in book[key].alias_keys or key in aliases for key in active)


def _all_satisfied(book: Book, active: Collection[str], key: str) -> bool:
    return all(_satisfied(book, active, required) for required in book[key].required_keys)


def candidate_keys(book: Book, text: str, locked: Locked = never_locked) -> list[str]:
    """Return what the text calls for, heaviest first: hits, links, and entries whose needs are met."""
    closure = _linked(book, matching_keys(book, text, locked))
    dependent = [
        key
        for key, entry in book.items()
        if key not in closure and entry.required_keys and _all_satisfied(book, closure, key)
    ]
    active = [*closure, *dependent]
    kept = [key for key in active if not locked(key) and _all_satisfied(book, active, key)]
    return sorted(kept, key=lambda key: -book[key].weight)


def select_keys(
    book: Book, text: str, max_tokens: int, count: Count, *, locked: Locked = never_locked, fill: bool = False
) -> list[str]:
    """Return the entries to show: what the text calls for, as far as their values fit.

    An entry that does not fit is skipped, later ones still have their chance.

    Args:
        book: Entries by key.
        text: What is being talked about.
        max_tokens: Tokens that the values may take together; at 0 or below nothing is chosen.
        count: Counts tokens; only values count, keys are not shown.
        locked: Entries that are never chosen.
        fill: Use what is left for other entries, heaviest first, whose needs are met.
    """
    if max_tokens <= 0:
        return []
    chosen: dict[str, None] = {}
    used = 0
    for key in candidate_keys(book, text, locked):
        cost = count(book[key].value)
        if used + cost <= max_tokens:
            chosen[key] = None
            used += cost
    if fill:
        rest = [key for key in book if key not in chosen and not locked(key)]
        for key in sorted(rest, key=lambda key: -book[key].weight):
            if used >= max_tokens:
                break
            cost = count(book[key].value)
            if used + cost <= max_tokens and _all_satisfied(book, chosen, key):
                chosen[key] = None
                used += cost
    return list(chosen)
