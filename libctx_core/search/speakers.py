"""Names in a question: which speakers of the scope it means."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from libctx_core.search.analysis import Word
    from libctx_core.search.scope import Scope


def named_speakers(scope: "Scope", words: "Sequence[Word]") -> tuple[set[int], set[int]]:
    """Return the numbers of the speakers a question names, and the indexes of the words that name them.

    A name of one word is meant by that word; a longer one by two of its words in a row,
    or by its first word if no other name of the scope begins with it.
    """
    folded = [word.folded for word in words]
    at: dict[str, list[int]] = {}
    for index, word in enumerate(folded):
        at.setdefault(word, []).append(index)
    numbers: set[int] = set()
    places: set[int] = set()
    for name, speakers in scope.names.items():
        hits = _places(name, folded, at)
        if hits:
            numbers.update(speakers)
            places.update(hits)
    return numbers, places


def _places(name: tuple[str, ...], folded: list[str], at: dict[str, list[int]]) -> set[int]:
    if len(name) == 1:
        return set(at.get(name[0], ()))
    places: set[int] = set()
    for first, second in pairwise(name):
        for index in at.get(first, ()):
            if index + 1 < len(folded) and folded[index + 1] == second:
                places.update((index, index + 1))
    return places
