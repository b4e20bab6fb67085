"""Print the suites' scores: ``python -m llama_index_libctx.testing [--details]``."""

import argparse
import tempfile
from pathlib import Path

from llama_index_libctx.testing import filters, lifecycle
from llama_index_libctx.testing.peers import installed
from llama_index_libctx.testing.report import StoreFactory, SuiteReport, table


def main(arguments: list[str] | None = None) -> int:
    """Run both suites on every installed store and print a table."""
    parser = argparse.ArgumentParser(prog="python -m llama_index_libctx.testing", description=__doc__)
    parser.add_argument("--details", action="store_true", help="list every check that is not ok")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory:
        rows = [(name, _score(factory)) for name, factory in installed(Path(directory)).items()]
    print(table(rows))
    if options.details:
        for name, reports in rows:
            for report in filter(None, reports):
                print(f"\n{name}, {report}")
    return 0


def _score(factory: StoreFactory | None) -> list[SuiteReport | None]:
    if factory is None:
        return [None, None]
    return [filters.run(factory), lifecycle.run(factory)]


if __name__ == "__main__":
    raise SystemExit(main())
