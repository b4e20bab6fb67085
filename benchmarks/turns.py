"""Prepare and commit as a thread grows: CPU per operation, the query's share apart, memory."""

import resource
import tempfile
from functools import partial
from pathlib import Path

from report import cpu_ms, finish, options, percentiles, sentence

from libctx_core import LibraryOfContext

BUDGETS = {"token_budget": 8_000, "recent_token_budget": 2_500, "protected_token_budget": 1_000}
"""Those of the specification's own example."""

SIZES = (10, 100, 1_000, 10_000, 100_000)


def fill(governor, start: int, count: int) -> None:
    """Store `count` events of 50 tokens, alternating roles."""
    for base in range(start, start + count, 2_000):
        governor.record_many(
            {"role": "assistant" if n % 2 else "user", "content": sentence(n)}
            for n in range(base, min(base + 2_000, start + count))
        )


def main() -> None:
    """Print one row per thread size."""
    arguments = options(__doc__)
    sizes = SIZES[:3] if arguments.smoke else SIZES
    runs = 15 if arguments.smoke else 40
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "turns.sqlite"
        library = LibraryOfContext(path)
        governor = library.open_context_governor("bench", **BUDGETS)
        stored = 0
        for size in sizes:
            fill(governor, stored, size - stored)
            stored = size
            assert library.flush(600)
            governor.prepare(sentence(1_000_000 + size), focus=" ")
            governor.commit(sentence(1_000_001 + size))
            library.flush(60)
            prepare, commit, rest = [], [], []
            for run in range(runs):
                question, reply = sentence(2_000_000 + size * 10 + run), sentence(3_000_000 + run)
                prepare += cpu_ms(partial(governor.prepare, question))
                commit += cpu_ms(partial(governor.commit, reply))
                rest += cpu_ms(partial(governor.prepare, f"{question} again", focus=" "))
                commit += cpu_ms(partial(governor.commit, f"{reply} again"))
                stored += 4
                library.flush(60)
            library.close()
            library = LibraryOfContext(path)
            governor = library.open_context_governor("bench", **BUDGETS)
            reopened = cpu_ms(partial(governor.build_prompt, focus=sentence(5)))[0]
            rows.append(
                {
                    "events": size,
                    "prepare_ms": percentiles(prepare)["p50"],
                    "prepare_p95": percentiles(prepare)["p95"],
                    "without_query_ms": percentiles(rest)["p50"],
                    "commit_ms": percentiles(commit)["p50"],
                    "first_after_reopen_ms": round(reopened, 2),
                    "rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
                }
            )
        library.close()
    finish("turns", rows, {"runs": runs}, as_json=arguments.json)


if __name__ == "__main__":
    main()
