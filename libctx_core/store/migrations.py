"""Staged schema: each room declares its tables, each step is a transaction of its own."""

from dataclasses import dataclass

import apsw

from libctx_core.errors import NewerSchemaError, StoreReadOnlyError

APPLICATION_ID = 0x4C435458
"""ASCII ``LCTX`` in the database header: how a library file is told from any other."""

_LEDGER = "CREATE TABLE IF NOT EXISTS schema_component(name TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT"


@dataclass(frozen=True, slots=True)
class Component:
    """A named part of the schema.

    Attributes:
        name: Stable name, e.g. ``"events"``.
        steps: SQL scripts; step *n* lifts version *n* to *n + 1*. A released step is
            never edited: append the next one.
    """

    name: str
    steps: tuple[str, ...]


def version_of(connection: apsw.Connection, component: str) -> int:
    """Return the version of a component in this file, 0 if it has none."""
    known = connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_component'"
    ).get
    if not known:
        return 0
    return connection.execute("SELECT version FROM schema_component WHERE name = ?", (component,)).get or 0


def migrate(connection: apsw.Connection, component: Component, path: str, *, read_only: bool) -> None:
    """Apply the steps a file lacks.

    A killed migration resumes at the first step that was not committed.

    Raises:
        NewerSchemaError: The file's version is beyond the last step.
        StoreReadOnlyError: Steps are missing and the file may not be written.
    """
    target = len(component.steps)
    found = version_of(connection, component.name)
    if found > target:
        raise NewerSchemaError(path, component.name, found, target)
    if found == target:
        return
    if read_only:
        raise StoreReadOnlyError(path, f"its schema part {component.name!r} must be upgraded, which needs write access")
    while found < target:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.execute(_LEDGER)
            # another process may have taken the step while this one waited for the lock
            found = version_of(connection, component.name)
            if found < target:
                connection.execute(component.steps[found])
                found += 1
                connection.execute(
                    "INSERT INTO schema_component VALUES(?, ?) "
                    "ON CONFLICT(name) DO UPDATE SET version = excluded.version",
                    (component.name, found),
                )
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    if found > target:
        raise NewerSchemaError(path, component.name, found, target)
