"""The suite for backend authors, run on the stores and the remote memory of this library."""

import asyncio

import apsw
import pytest

from libctx_core.bank import FileBankStore
from libctx_core.errors import StoreClosedError, StoreError
from libctx_core.store.bank import BankStore
from libctx_core.store.database import Database
from libctx_core.testing.access import KIND, PayloadStoreSuite, RemoteMemorySuite
from libctx_core.testing.access_fakes import AsyncRemoteMemory, FakeRemoteMemory


class TestLibraryFile(PayloadStoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        database = Database(tmp_path / "library.sqlite")
        yield BankStore(database)
        database.close()


class TestDatabaseInMemory(PayloadStoreSuite):
    @pytest.fixture
    def store(self):
        database = Database(":memory:")
        yield BankStore(database)
        database.close()


@pytest.mark.parametrize("memory", [True, False])
def test_a_closed_library_says_so_instead_of_missing_pages(tmp_path, memory):
    database = Database(":memory:" if memory else tmp_path / "library.sqlite")
    store = BankStore(database)
    assert store.head(KIND, "k") == (None, None)
    database.close()
    with pytest.raises(StoreClosedError):
        store.head(KIND, "k")


def test_a_damaged_table_is_an_error_and_not_an_absence(tmp_path):
    database = Database(tmp_path / "library.sqlite")
    store = BankStore(database)
    store.head(KIND, "k")
    database.write(lambda connection: connection.execute("DROP TABLE bank_page"))
    with pytest.raises((StoreError, apsw.SQLError)):
        store.head(KIND, "k")
    database.close()


class TestFiles(PayloadStoreSuite):
    @pytest.fixture
    def store(self, tmp_path):
        return FileBankStore(tmp_path / "lore", tmp_path / "todo")


class TestRemote(RemoteMemorySuite):
    @pytest.fixture
    def store(self, tmp_path):
        return FileBankStore(tmp_path / "lore", tmp_path / "todo")

    @pytest.fixture
    def remote(self):
        return FakeRemoteMemory()


class TestRemoteWithCoroutines(TestRemote):
    @pytest.fixture
    def remote(self):
        return AsyncRemoteMemory(FakeRemoteMemory(), lambda: asyncio.sleep(0))
