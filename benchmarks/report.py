"""What every benchmark shares: options, CPU clocks, a table or one JSON object as the last line."""

import argparse
import gc
import itertools
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from libctx_core.embedding.static import piece_rows

WORDS_PER_MESSAGE = 38
"""About 50 tokens of English."""


def options(description: str, *, add: Callable[[argparse.ArgumentParser], None] | None = None) -> argparse.Namespace:
    """Parse the common options: ``--json`` and ``--smoke`` (small sizes, for continuous integration)."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--smoke", action="store_true", help="small sizes only")
    if add is not None:
        add(parser)
    return parser.parse_args()


def data_folder() -> Path:
    """Return where evaluation data lies: ``LIBCTX_DATA``, or ``shared/data`` beside the checkout."""
    named = os.environ.get("LIBCTX_DATA")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "shared" / "data"


def cpu_ms(work: Callable[[], Any], repeat: int = 1) -> list[float]:
    """Return the CPU milliseconds of the calling thread for each run.

    Garbage is collected before a series, not before a single run: a collection empties
    the processor's caches, which no caller does before each operation.
    """
    if repeat > 1:
        gc.collect()
    times = []
    for _ in range(repeat):
        start = time.thread_time()
        work()
        times.append((time.thread_time() - start) * 1e3)
    return times


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile, rounded."""
    ordered = sorted(values)
    return {
        "p50": round(statistics.median(ordered), 4),
        "p95": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))], 4),
    }


@cache
def vocabulary() -> tuple[list[str], list[float]]:
    """Return English words, the most frequent first, and their cumulative weights by Zipf's law.

    They are the whole words of the default embedder's vocabulary, which lists them by frequency.
    """
    pieces, _ = piece_rows()
    words = [piece for piece in pieces.vocabulary if len(piece) > 2 and piece.isascii() and piece.isalpha()]
    return words, list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))


def sentence(seed: int | random.Random, words: int = WORDS_PER_MESSAGE) -> str:
    """Return about 50 tokens of made-up text, its words as frequent as in English; the same for the same seed."""
    source = random.Random(seed) if isinstance(seed, int) else seed
    known, weights = vocabulary()
    return " ".join(source.choices(known, cum_weights=weights, k=words)).capitalize() + "."


def finish(name: str, rows: Iterable[Mapping[str, Any]], summary: Mapping[str, Any], *, as_json: bool) -> None:
    """Print the rows as a table; with `as_json` also everything as one JSON object, last."""
    listed = list(rows)
    if listed:
        columns = list(dict.fromkeys(key for row in listed for key in row))
        widths = {c: max(len(c), *(len(_text(row.get(c))) for row in listed)) for c in columns}
        print("  ".join(c.ljust(widths[c]) for c in columns))
        for row in listed:
            print("  ".join(_text(row.get(c)).ljust(widths[c]) for c in columns))
    for key, value in summary.items():
        print(f"{key}: {value}")
    if as_json:
        print(json.dumps({"benchmark": name, "rows": listed, **summary}))
    sys.stdout.flush()


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
