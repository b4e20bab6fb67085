"""The part of the storage suite about schemas: staged, resumable, never downgraded."""

from pathlib import Path

import pytest

from libctx_core.errors import NewerSchemaError, StoreReadOnlyError
from libctx_core.store.migrations import Component
from libctx_core.testing import storage_children as children
from libctx_core.testing.processes import Child, address
from libctx_core.testing.storage_log import Storage, StorageTests


class MigrationTests(StorageTests):
    """Each step of a component's schema is a transaction of its own."""

    def open_plain(self, path: Path) -> Storage:
        """Open a store whose connections have the function the suite's steps call."""
        return self.open_storage(path, on_connect=children.with_function(int))

    @staticmethod
    def tables(storage: Storage) -> dict[str, list[int]]:
        """Return the tables of the suite's schema with what they hold."""
        with storage.read() as connection:
            names = [
                row[0]
                for row in connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'suite\\_%' ESCAPE '\\'")
            ]
            return {name: [row[0] for row in connection.execute(f"SELECT x FROM {name}")] for name in names}  # noqa: S608

    def test_steps_run_once(self, tmp_path: Path) -> None:
        """However often they are asked for, by however many stores on the path."""
        for _ in range(2):
            storage = self.open_plain(tmp_path / "store")
            storage.ensure(children.SCHEMA)
            storage.ensure(children.SCHEMA)
            assert self.tables(storage) == {"suite_one": [1], "suite_two": [2], "suite_three": [3]}
            storage.close()

    def test_a_store_is_lifted_from_an_older_schema(self, tmp_path: Path) -> None:
        """What the older release stored is there for the steps that follow."""
        storage = self.open_plain(tmp_path / "store")
        storage.ensure(Component("suite", children.STEPS[:1]))
        storage.write(lambda connection: connection.execute("INSERT INTO suite_one VALUES(10)"))
        storage.close()
        storage = self.open_plain(tmp_path / "store")
        storage.ensure(children.SCHEMA)
        assert self.tables(storage) == {"suite_one": [1, 10], "suite_two": [2, 11], "suite_three": [3, 12]}
        storage.close()

    @pytest.mark.parametrize("step", [2, 3])
    def test_a_killed_migration_goes_on_where_it_stopped(self, tmp_path: Path, step: int) -> None:
        """The steps before the kill stay, the one it hit left nothing, the rest follow."""
        path = tmp_path / "store"
        with Child(children.stall_in_a_migration, *address(self), str(path), str(step)) as child:
            assert child.hear() == f"in step {step}"
            child.kill()
        storage = self.open_plain(path)
        assert list(self.tables(storage)) == ["suite_one", "suite_two", "suite_three"][: step - 1]
        storage.ensure(children.SCHEMA)
        assert self.tables(storage) == {"suite_one": [1], "suite_two": [2], "suite_three": [3]}
        storage.close()

    def test_two_processes_migrate_at_once(self, tmp_path: Path) -> None:
        """Neither fails, and no step runs twice."""
        path = tmp_path / "store"
        helpers = [Child(children.migrate, *address(self), str(path)) for _ in range(2)]
        for helper in helpers:
            assert helper.hear() == "ready"
        for helper in helpers:
            helper.go()
        for helper in helpers:
            helper.join()
        storage = self.open_plain(path)
        assert self.tables(storage) == {"suite_one": [1], "suite_two": [2], "suite_three": [3]}
        storage.close()

    def test_a_failed_step_leaves_nothing_and_can_be_repeated(self, tmp_path: Path) -> None:
        """Its own transaction is undone, those before it stay."""
        storage = self.open_plain(tmp_path / "store")
        broken = Component("suite", (children.STEPS[0], "CREATE TABLE suite_two(x); SELECT no_such_function()"))
        with pytest.raises(Exception, match="no_such_function"):
            storage.ensure(broken)
        assert self.tables(storage) == {"suite_one": [1]}
        storage.ensure(children.SCHEMA)
        assert self.tables(storage) == {"suite_one": [1], "suite_two": [2], "suite_three": [3]}
        storage.close()

    def test_a_newer_schema_is_refused(self, tmp_path: Path) -> None:
        """The error names the component and both versions; nothing is changed."""
        storage = self.open_plain(tmp_path / "store")
        storage.ensure(children.SCHEMA)
        storage.close()
        storage = self.open_plain(tmp_path / "store")
        with pytest.raises(NewerSchemaError) as caught:
            storage.ensure(Component("suite", children.STEPS[:2]))
        assert (caught.value.component, caught.value.found, caught.value.supported) == ("suite", 3, 2)
        assert self.tables(storage) == {"suite_one": [1], "suite_two": [2], "suite_three": [3]}
        storage.close()

    def test_a_store_open_for_reading_is_not_migrated(self, tmp_path: Path) -> None:
        """It says so, and reads what is up to date."""
        storage = self.open_plain(tmp_path / "store")
        storage.ensure(Component("suite", children.STEPS[:1]))
        storage.close()
        reader = self.open_storage(tmp_path / "store", read_only=True)
        reader.ensure(Component("suite", children.STEPS[:1]))
        with pytest.raises(StoreReadOnlyError):
            reader.ensure(children.SCHEMA)
        with pytest.raises(StoreReadOnlyError):
            reader.write(lambda connection: connection.execute("INSERT INTO suite_one VALUES(2)"))
        assert self.tables(reader) == {"suite_one": [1]}
        reader.close()
