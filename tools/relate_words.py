"""Derive the list of related words that the package ships from its own static table.

    uv run python tools/relate_words.py

For every index term that a whole word of the vocabulary has (three letters or more, no
stop word), the eight terms whose words have the highest cosine with it, if it exceeds
0.3. Of the words of one term the most frequent stands for all. The output depends only on
the table, the stop words and the stemmer; about ten seconds on one core.

Layout of the file, before compression: one line per term, the term, a tab, and its related
terms, closest first, each followed by its cosine in hundredths, with spaces between.
"""

import lzma

import numpy as np
from data_sums import DATA, record_sum

from libctx_core.embedding.static import piece_rows
from libctx_core.search.analysis import analyse_word
from libctx_core.search.related import CLOSE, FILE, MAX_RELATED

BLOCK = 1_024
CANDIDATES = 32


def words_of(vocabulary: tuple[str, ...]) -> tuple[list[int], list[str]]:
    """Return the ids of the words worth relating, the most frequent of each term, and the terms."""
    ids: dict[str, int] = {}
    for number, piece in enumerate(vocabulary):
        if len(piece) > 2 and piece.isascii() and piece.isalpha() and (found := analyse_word(piece).terms):
            ids.setdefault(found[0], number)
    return list(ids.values()), list(ids)


def closest(row: int, near: "np.ndarray", cosines: "np.ndarray") -> list[tuple[int, float]]:
    """Return the rows related to one, closest first."""
    order = sorted(zip(near.tolist(), cosines.tolist(), strict=True), key=lambda item: (-item[1], item[0]))
    return [(at, cosine) for at, cosine in order if at != row and cosine > CLOSE][:MAX_RELATED]


def main() -> None:
    pieces, codes = piece_rows()
    ids, terms = words_of(pieces.vocabulary)
    rows = codes[ids].astype(np.float32)  # products are whole numbers below 2**24, so every sum is exact
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    lines = []
    for start in range(0, len(ids), BLOCK):
        block = rows[start : start + BLOCK] @ rows.T / norms[start : start + BLOCK, None] / norms
        for row, cosines in enumerate(block, start):
            near = np.argpartition(cosines, -CANDIDATES)[-CANDIDATES:]
            found = closest(row, near, cosines[near])
            if found:
                listed = " ".join(f"{terms[at]}{min(round(100 * cosine), 99)}" for at, cosine in found)
                lines.append(f"{terms[row]}\t{listed}")
    file = DATA / FILE
    file.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{file.name}: {len(lines):,} terms, {file.stat().st_size:,} bytes, sha256 {record_sum(file)}")


if __name__ == "__main__":
    main()
