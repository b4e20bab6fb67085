"""What the package says of itself."""

import tomllib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import llama_index_libctx

ROOT = Path(__file__).parents[1]


def test_exports_are_sorted_and_there():
    names = llama_index_libctx.__all__
    assert len(set(names)) == len(names)
    assert list(names) == sorted(names, key=lambda name: (name[0].islower(), name))
    assert all(getattr(llama_index_libctx, name) is not None for name in names)


def test_the_hub_is_told_of_classes_that_exist():
    hub = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["llamahub"]
    assert hub["import_path"] == "llama_index_libctx"
    assert set(hub["class_authors"]) <= set(llama_index_libctx.__all__)


def test_it_is_typed_and_has_a_version():
    assert (files("llama_index_libctx") / "py.typed").is_file()
    assert version("llama-index-libctx")
