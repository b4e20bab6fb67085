"""Every Python block of the README and the documentation runs, each page in a folder of its own."""

from pathlib import Path

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("README.md", "docs/**/*.md", "plugins/*/README.md", "integrations/*/README.md")
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIBCTX_PLUGINS", raising=False)
    document = Sybil(parsers=[PythonCodeBlockParser()]).parse(page)
    for example in document.examples():
        example.evaluate()
