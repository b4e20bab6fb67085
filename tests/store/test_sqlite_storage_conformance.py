"""The SQLite store passes the suite that every storage backend must pass."""

import pytest

from libctx_core.store.database import Database
from libctx_core.testing.storage import EventTests, OutboxTests, ProcessTests, StorageSuite


class TestSqliteStorage(StorageSuite):
    def open_storage(self, path, **options):
        return Database(path, **options)


class TestSqliteStorageWithoutSync(EventTests, OutboxTests):
    def open_storage(self, path, **options):
        return Database(path, durability="normal", **options)


@pytest.mark.exhaustive
class TestSqliteStorageKilledOften(ProcessTests):
    kills = 200

    def open_storage(self, path, **options):
        return Database(path, **options)
