"""LangGraph's own conformance suite, with every optional capability."""

from pathlib import Path

import pytest
from langchain_libctx.checkpoint import LibrarySaver
from langgraph.checkpoint.conformance import checkpointer_test, validate


@pytest.mark.parametrize("place", ["file", "memory"])
async def test_conformance_with_all_capabilities(place: str, tmp_path: Path) -> None:
    count = iter(range(100))

    @checkpointer_test(name=f"LibrarySaver-{place}")
    async def saver():
        path = ":memory:" if place == "memory" else str(tmp_path / f"{next(count)}.sqlite")
        async with LibrarySaver.from_conn_string(path) as opened:
            yield opened

    report = await validate(saver)
    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert failures == {}
    assert report.passed_all()
    assert {"delete_for_runs", "copy_thread", "prune"} <= report.results.keys()
    assert all(result.detected and result.passed for result in report.results.values())
