"""The pages agree with the program: links, commands, options, first commands, words to avoid."""

import re
from pathlib import Path

import pytest
import typer

from libctx_core.cli.app import OWN, application

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in ("README.md", "docs/**/*.md", "plugins/*/README.md", "integrations/*/README.md")
    for path in ROOT.glob(pattern)
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in target or target.startswith(("#", "mailto:")):
            continue
        assert (page.parent / target.split("#")[0]).exists(), f"{target} is not there"


def commands():
    group = typer.main.get_command(application([]))
    return {name: command for name, command in group.commands.items() if name in OWN}


@pytest.mark.parametrize("name", OWN)
def test_every_command_has_a_section_and_its_options_exist(name):
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    _, heading, rest = page.partition(f"## `libctx {name}")
    assert heading
    section = rest.split("\n## ")[0]
    known = {option for parameter in commands()[name].params for option in parameter.opts}
    assert set(re.findall(r"`(--?[a-z][a-z-]*)`", section)) <= known


def test_the_readme_begins_with_the_two_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.index("python -m pip install uv && uv run libctx demo") < readme.index("uv run pytest")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_page_installs_somebody_elses_package(page):
    # the bare name on the package index belongs to another project
    assert not re.search(r"pip install libctx(?![\w-])", page.read_text(encoding="utf-8"))


def test_every_benchmark_is_on_its_page():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for script in (ROOT / "benchmarks").glob("*.py"):
        if '__name__ == "__main__"' in script.read_text(encoding="utf-8") and not script.stem.startswith("recall_"):
            assert f"`{script.stem}`" in page, script.name
