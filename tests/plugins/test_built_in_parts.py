"""The library's own parts come through the same hooks as everybody's."""

import pytest

from libctx_core.plugins import Plugins, built_in
from libctx_core.store import Database


@pytest.fixture(scope="module")
def plugins():
    return Plugins.load([])


def test_the_defaults_are_registered_by_name(plugins):
    assert plugins.embedder(built_in.DEFAULT_EMBEDDER).profile_id.startswith("libctx-static-256/")
    assert plugins.tokenizer(built_in.DEFAULT_TOKENIZER).count("two words") >= 2
    assert plugins.vector_index(built_in.DEFAULT_VECTOR_INDEX)().backend == "numpy"


def test_the_default_storage_opens_a_library_file(plugins, tmp_path):
    opened = plugins.storage_backend(built_in.DEFAULT_STORAGE)(
        str(tmp_path / "library.sqlite"), durability="normal", read_only=False, on_connect=plugins.sqlite_connect
    )
    try:
        assert isinstance(opened, Database)
        assert opened.durability == "normal"
    finally:
        opened.close()


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "utf8-bytes"])
def test_every_tokenizer_counts(plugins, name):
    counter = plugins.tokenizer(name)
    assert counter.count("") == 0
    assert counter.exact is (name != "utf8-bytes")


def test_sqlite_vec_is_a_backend_of_its_own(plugins):
    assert plugins.vector_index("sqlite-vec")().backend == "sqlite-vec"


def test_built_ins_can_be_named_by_their_owner(plugins):
    assert plugins.embedder("libctx:static").dimension == 256


def test_a_library_chooses_its_parts_by_name_and_learns_new_resource_kinds(tmp_path):
    from types import SimpleNamespace

    from libctx_core import LibraryOfContext
    from libctx_core.access import ContextAccess
    from libctx_core.errors import PluginNotFoundError
    from libctx_core.plugins import hookimpl

    access = ContextAccess()
    brings = SimpleNamespace(register_resource_kinds=hookimpl(lambda: ["MAILBOX"]))
    with LibraryOfContext(
        tmp_path / "library.sqlite", plugins=[brings], vector_index="sqlite-vec", context_access=access
    ) as library:
        library.shelve("The hull is blue.")
        assert library.consult("blue hull", k=1)[0].text == "The hull is blue."
    assert "MAILBOX" in access.kinds
    with pytest.raises(PluginNotFoundError, match="vector index"):
        LibraryOfContext(":memory:", plugins=[], vector_index="no-such-index")
