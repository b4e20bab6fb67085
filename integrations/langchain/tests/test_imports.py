"""The public names of the package, and what importing them costs."""

import subprocess
import sys

import langchain_libctx


def test_every_public_name_resolves() -> None:
    for name in langchain_libctx.__all__:
        assert getattr(langchain_libctx, name).__name__ == name
    assert sorted(langchain_libctx.__all__) == list(langchain_libctx.__all__)
    assert set(langchain_libctx.__all__) <= set(dir(langchain_libctx))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(langchain_libctx, "LibraryOfEverything")


def test_importing_the_package_imports_no_framework() -> None:
    code = (
        "import sys, langchain_libctx\n"
        "print([name for name in ('langchain', 'langchain_classic', 'langgraph', 'langchain_core', 'numpy')"
        " if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert shown.stdout.strip() == "[]"
