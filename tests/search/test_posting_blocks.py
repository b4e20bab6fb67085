"""Posting blocks hold exactly what was put into them, in order and within their limits."""

from hypothesis import given
from hypothesis import strategies as st

from libctx_core.store.index_blocks import ENTRY, MAX_ENTRIES, MAX_FREQUENCY, MAX_OFFSET, decode, pack

positions = st.lists(st.integers(0, 300_000), unique=True, max_size=700).map(sorted)
frequencies = st.integers(1, 400)


def postings_of(places, frequency):
    return [(place, 1 + (place * frequency) % 300) for place in places]


def read(blocks):
    return [posting for first, data in blocks for posting in decode(first, data)]


@given(positions, frequencies)
def test_blocks_give_back_their_postings(places, frequency):
    postings = postings_of(places, frequency)
    blocks = list(pack(postings))
    assert read(blocks) == [(place, min(count, MAX_FREQUENCY)) for place, count in postings]
    for first, data in blocks:
        assert 0 < len(data) <= MAX_ENTRIES * ENTRY.size
        assert decode(first, data)[0][0] == first
        assert decode(first, data)[-1][0] - first <= MAX_OFFSET


@given(positions, frequencies, st.integers(0, 700))
def test_appending_to_the_last_block_equals_packing_at_once(places, frequency, cut):
    postings = postings_of(places, frequency)
    head = list(pack(postings[:cut]))
    tail = list(pack(postings[cut:], head[-1] if head else None))
    assert read(head[:-1]) + read(tail) == read(pack(postings))
