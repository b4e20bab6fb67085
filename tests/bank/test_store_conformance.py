"""The suite for backend authors, run on the stores and the remote memory of this library."""

import asyncio

import pytest

from libctx_core.bank import FileBankStore
from libctx_core.store.bank import BankStore
from libctx_core.store.database import Database
from libctx_core.testing.access import PayloadStoreSuite, RemoteMemorySuite
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
