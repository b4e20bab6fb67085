import pytest

from libctx_core.store.database import Database


@pytest.fixture
def database(tmp_path):
    opened = Database(tmp_path / "library.db")
    yield opened
    opened.close()
