"""Looking into a window: filters over the lorebook, text search over its elements."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from libctx_core.bank.lorebook import Locked, LoreBook, never_locked
from libctx_core.bank.patterns import extractor
from libctx_core.bank.window import ContextWindow

INT_MIN: Final = -(2**31)


@dataclass(frozen=True, slots=True)
class LoreBookQueryResult:
    """A lorebook entry that was found.

    Attributes:
        entry: The entry.
        extraction: First match of the pattern in its value, or "".
    """

    entry: LoreBook
    extraction: str = ""


@dataclass(frozen=True, slots=True)
class ElementMatch:
    """An element that was found.

    Attributes:
        element: The element.
        extraction: First match of the pattern in it, or "".
    """

    element: str
    extraction: str = ""


@dataclass(frozen=True, slots=True)
class MemorySearchResult:
    """What a text search found in a window."""

    lorebook_matches: tuple[LoreBookQueryResult, ...] = ()
    element_matches: tuple[ElementMatch, ...] = ()


def query_lorebook(
    window: ContextWindow,
    query: str = "",
    *,
    min_weight: int = INT_MIN,
    required_keys: Collection[str] = (),
    alias_keys: Collection[str] = (),
    extract_regex: str = "",
    locked: Locked = never_locked,
) -> list[LoreBookQueryResult]:
    """Return the entries that pass every filter.

    Args:
        window: Where to look.
        query: Text in key or value, regardless of case.
        min_weight: Least weight.
        required_keys: All must be among the entry's required keys.
        alias_keys: Any must be among its aliases; none given passes.
        extract_regex: Pattern whose first match in the value is returned.
        locked: Keys that are hidden.

    Raises:
        PatternError: The pattern is not usable.
    """
    extract = extractor(extract_regex)
    wanted = query.lower()
    required, aliases = set(required_keys), set(alias_keys)
    return [
        LoreBookQueryResult(entry, extract(entry.value))
        for key, entry in window.lore_book_keys.items()
        if not locked(key)
        and (wanted in key.lower() or wanted in entry.value.lower())
        and entry.weight >= min_weight
        and required <= set(entry.required_keys)
        and (not aliases or not aliases.isdisjoint(entry.alias_keys))
    ]


def search_memory(
    window: ContextWindow, query: str, *, extract_regex: str = "", locked: Locked = never_locked
) -> MemorySearchResult:
    """Return the entries and elements that hold a text, regardless of case.

    Raises:
        PatternError: The pattern is not usable.
    """
    extract = extractor(extract_regex)
    wanted = query.lower()
    return MemorySearchResult(
        tuple(query_lorebook(window, query, extract_regex=extract_regex, locked=locked)),
        tuple(
            [
                ElementMatch(element, extract(element))
                for element in window.context_elements
                if wanted in element.lower()
            ]
        ),
    )
