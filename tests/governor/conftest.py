"""A library in memory and a governor with a small budget."""

import pytest

from libctx_core import LibraryOfContext


@pytest.fixture
def library():
    with LibraryOfContext(":memory:", plugins=[]) as opened:
        yield opened


@pytest.fixture
def governor(library):
    return library.open_context_governor("thread", token_budget=600)
