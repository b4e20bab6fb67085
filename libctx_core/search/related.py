"""Words of like meaning: the terms whose words stand near a question's word in the static table."""

import lzma
import threading
from functools import lru_cache

from libctx_core.data import read_data

FILE = "libctx-related.xz"
"""Derived from the static table by ``tools/relate_words.py``, which describes its layout."""

CLOSE = 0.3
"""Cosine from which a word counts as related; found together with the weights of the ranker."""

MAX_RELATED = 8
"""Related words of one word; 16 find no more."""

Related = tuple[tuple[str, float], ...]
"""Terms and their closeness, from 0 to 1, closest first."""

_load_lock = threading.Lock()


@lru_cache(maxsize=1)
def _read_lines() -> dict[str, str]:
    text = lzma.decompress(read_data(FILE)).decode("utf-8")
    return dict(line.split("\t", 1) for line in text.split("\n"))


def related_terms(word: str) -> Related:
    """Return the related terms of a folded word; none for one that the table does not hold."""
    with _load_lock:
        lines = _read_lines()
    listed = lines.get(word, "").split()
    return tuple((entry[:-2], int(entry[-2:]) / 100) for entry in listed)
