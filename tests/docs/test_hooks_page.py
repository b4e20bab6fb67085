"""Every hook is documented with its exact arguments, and has a test of its name."""

import inspect
import re
from pathlib import Path

import pytest

from libctx_core.plugins import specs
from libctx_core.plugins.markers import PROJECT

ROOT = Path(__file__).parents[2]
MODES = ("Collected", "Strict", "First", "Deny-only", "Notify")
HOOKS = sorted(
    name for name, value in vars(specs).items() if inspect.isfunction(value) and hasattr(value, f"{PROJECT}_spec")
)


def test_there_are_hooks():
    assert len(HOOKS) == 19


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_documented_with_its_arguments_and_an_example(hook):
    page = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
    arguments = ", ".join(inspect.signature(getattr(specs, hook)).parameters)
    _, heading, rest = page.partition(f"### `{hook}({arguments})`\n")
    assert heading, f"docs/hooks.md has no heading for {hook}({arguments})"
    section = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    assert section.lstrip().startswith(MODES)
    assert "```python" in section


@pytest.mark.parametrize("hook", HOOKS)
def test_the_specification_says_how_a_hook_is_called(hook):
    said = inspect.getdoc(getattr(specs, hook))
    assert any(f"{mode}" in said for mode in MODES), said


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_has_a_test(hook):
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "plugins").glob("test_*.py"))
    assert f"def test_hook_{hook}(" in tests
