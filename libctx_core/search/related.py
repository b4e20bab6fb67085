"""Words of like meaning: the terms whose words stand near a term's in the static table."""

import lzma
import threading
from functools import lru_cache

from libctx_core.data import read_data

FILE = "libctx-related.xz"
"""Derived from the static table by ``tools/relate_words.py``, which describes its layout."""

CLOSE = 0.3
"""Cosine from which a term counts as related; found together with the weights of the ranker."""

MAX_RELATED = 8
"""Related terms of one term; 16 find no more."""

Near = tuple[tuple[str, int], ...]
"""Terms and their closeness in percent, closest first."""

_load_lock = threading.Lock()


@lru_cache(maxsize=1)
def _read_lines() -> dict[str, str]:
    text = lzma.decompress(read_data(FILE)).decode("utf-8")
    return dict(line.split("\t", 1) for line in text.split("\n"))


@lru_cache(maxsize=16_384)
def related_terms(term: str) -> Near:
    """Return what is related to an index term; nothing for one that the table does not hold."""
    with _load_lock:
        lines = _read_lines()
    return tuple((entry[:-2], int(entry[-2:])) for entry in lines.get(term, "").split())
