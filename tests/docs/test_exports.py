"""What a package exports is listed, sorted, and there."""

import importlib
import pkgutil
from types import ModuleType

import pytest

import libctx_core

PACKAGES = ["libctx_core"] + [
    f"libctx_core.{module.name}" for module in pkgutil.iter_modules(libctx_core.__path__) if module.ispkg
]


def exporting():
    modules = [importlib.import_module(name) for name in PACKAGES]
    return [module for module in modules if hasattr(module, "__all__")]


@pytest.mark.parametrize("module", exporting(), ids=lambda module: module.__name__)
def test_exports_are_sorted_unique_and_there(module):
    names = list(module.__all__)
    assert len(names) == len(set(names))
    assert names == sorted(names, key=_order)
    for name in names:
        assert getattr(module, name) is not None


def _order(name):
    """Constants, then classes, then functions, as the formatter sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


@pytest.mark.parametrize("module", exporting(), ids=lambda module: module.__name__)
def test_nothing_public_is_left_out(module):
    public = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not isinstance(value, ModuleType) and hasattr(value, "__module__")
    }
    assert public <= set(module.__all__), public - set(module.__all__)


def test_the_package_says_its_version():
    from importlib.metadata import version

    assert libctx_core.__version__ == version("libctx-core")


def test_the_package_is_typed():
    from importlib.resources import files

    assert (files("libctx_core") / "py.typed").is_file()
