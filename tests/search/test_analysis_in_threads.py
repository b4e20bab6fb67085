"""Analysis gives the same terms however many threads analyse at once."""

import sys
from concurrent.futures import ThreadPoolExecutor

from libctx_core.search import analysis

ENDINGS = ("", "s", "ing", "ed", "ation", "ational", "fulness", "ousness", "izer", "ively", "ement", "ibility")
WORDS = [
    f"{start}{middle}{end}" for start in ("rel", "op", "nat", "vib") for middle in ("at", "er", "ol") for end in ENDINGS
]


def terms(_):
    # the inner function: the outer one remembers words, and would hide a race after the first
    return [analysis._analyse(word).terms for word in WORDS * 5]


def test_threads_do_not_cut_each_others_words():
    expected = terms(0)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(found == expected for found in pool.map(terms, range(24)))
    finally:
        sys.setswitchinterval(interval)
