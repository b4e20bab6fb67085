"""What any storage backend must do: a suite to subclass.

```python
class TestMyStorage(StorageSuite):
    def open_storage(self, path, **options):
        return my_factory(str(path), **{"durability": "full", "read_only": False, "on_connect": None, **options})
```

The class has to stand in a file that a second process can load by its path, since the
suite opens the store from processes that it kills. `path` is fresh for each test and
means whatever the backend takes it to mean; two stores on one path are one store.

| part | what it holds a backend to |
|---|---|
| `EventTests` | ids stored once, event and outbox row together, order, isolation of failures, snapshots |
| `OutboxTests` | leases, expiry, fencing by token, watermarks, backoff, quarantine |
| `ProcessTests` | two writers, kills at random moments, before a commit, with a lease |
| `MigrationTests` | steps as transactions, resumed after a kill, two at once, newer schemas refused |

A backend whose connections do not take the library's statements overrides `open_log`
too, and gives back an object with the methods of `EventLog`. Set `kills` higher for a
long run.
"""

from libctx_core.testing.storage_events import EventTests
from libctx_core.testing.storage_log import EventLog, Storage, StorageTests
from libctx_core.testing.storage_migrations import MigrationTests
from libctx_core.testing.storage_outbox import OutboxTests
from libctx_core.testing.storage_processes import ProcessTests

__all__ = ["EventLog", "EventTests", "MigrationTests", "OutboxTests", "ProcessTests", "Storage", "StorageSuite"]


class StorageSuite(EventTests, OutboxTests, ProcessTests, MigrationTests, StorageTests):
    """Tests of a storage backend; subclass it and say how a store is opened."""
