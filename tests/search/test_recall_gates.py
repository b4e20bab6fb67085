"""Search finds what answers: gates on evaluation data that lies beside the checkout, never in it."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LIBCTX_DATA", ROOT.parent / "shared" / "data"))
MEETINGS = DATA / "qmsum-test.jsonl"
TALKS = DATA / "locomo-dev5.json"

needs_meetings = pytest.mark.skipif(not MEETINGS.exists(), reason=f"no QMSum meetings at {MEETINGS}; set LIBCTX_DATA")
needs_talks = pytest.mark.skipif(not TALKS.exists(), reason=f"no LoCoMo conversations at {TALKS}; set LIBCTX_DATA")


@pytest.fixture(scope="module")
def bench():
    """The recall benchmark, whose scripts import each other by name."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import recall

        yield recall
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def meeting_ratio(bench, count):
    meetings = list(bench.read_meetings(MEETINGS))[:count]
    return bench.meetings_summary(meetings)["ratio_to_plain"]


@needs_meetings
def test_meetings_are_searched_better_than_by_plain_bm25(bench):
    assert meeting_ratio(bench, 10) >= 1.15


@needs_meetings
@pytest.mark.exhaustive
def test_all_meetings_are_searched_better_than_by_plain_bm25(bench):
    assert meeting_ratio(bench, None) >= 1.25


def figures(bench, conversations):
    rows = bench.conversations_table(conversations)
    assert all(row["empty"] == 0 for row in rows if row["system"].startswith("libctx"))
    return {row["system"]: row for row in rows if row["group"] == "all"}


@needs_talks
def test_evidence_is_among_the_best_ten(bench):
    # the second conversation of the file, the shortest one
    found = figures(bench, bench.read_conversations(TALKS)[1:2])
    assert found["libctx"]["recall@10"] >= 80
    assert found["libctx"]["recall@10"] >= 1.3 * found["plain FTS5 BM25"]["recall@10"]
    assert found["libctx, words only"]["recall@10"] >= 76


@needs_talks
@pytest.mark.exhaustive
def test_evidence_is_among_the_best_ten_in_every_setting(bench):
    found = figures(bench, bench.read_conversations(TALKS))
    assert found["libctx"]["recall@10"] >= 82.5
    assert found["libctx"]["recall@5"] >= 75
    assert found["libctx, words only"]["recall@10"] >= 78
    assert found["libctx, one store"]["recall@10"] >= 78
