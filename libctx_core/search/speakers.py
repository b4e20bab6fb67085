"""Names in a question: which speakers of the corpus it means."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from libctx_core.search.analysis import Word


def name_keys(name: Sequence[str]) -> list[tuple[str, ...]]:
    """Return what names a speaker: a name of one word that word, a longer one any two of its words in a row."""
    return [(name[0],)] if len(name) == 1 else list(pairwise(name))


def named_speakers(
    names: Mapping[tuple[str, ...], Sequence[int]], words: "Sequence[Word]"
) -> tuple[set[int], set[int]]:
    """Return the numbers of the speakers a question names, and the places of the words that name them.

    Args:
        names: Numbers of the speakers by their `name_keys`.
        words: The words of the question.
    """
    folded = [word.folded for word in words]
    numbers: set[int] = set()
    places: set[int] = set()
    for size in (1, 2):
        for at in range(len(folded) - size + 1):
            found = names.get(tuple(folded[at : at + size]))
            if found and (size > 1 or _is_name(words[at], at)):
                numbers.update(found)
                places.update(range(at, at + size))
    return numbers, places


def _is_name(word: "Word", at: int) -> bool:
    """Tell whether a word that is a name means one: ``will`` does so only as ``Will``, inside a question."""
    return bool(word.terms) or (word.capital and at > 0)
