"""What the storage suite runs in processes of their own; each opens the store as the suite under test does."""

from pathlib import Path
from typing import Any

from libctx_core.store import events
from libctx_core.store.migrations import Component
from libctx_core.store.owners import THREAD, get_or_create_owner
from libctx_core.testing.processes import load_attribute, say, wait_for_parent
from libctx_core.testing.storage_log import COLLECTION, EventLog, StorageTests, draft

STEPS = (
    "CREATE TABLE suite_one(x INTEGER); INSERT INTO suite_one VALUES(1)",
    "CREATE TABLE suite_two(x INTEGER); INSERT INTO suite_two SELECT x + 1 FROM suite_one; SELECT stall(2)",
    "CREATE TABLE suite_three(x INTEGER); INSERT INTO suite_three SELECT x + 1 FROM suite_two; SELECT stall(3)",
)
"""A schema whose second and third step each call a function, which a test may let hang."""

SCHEMA = Component("suite", STEPS)


def suite_of(source: str, name: str) -> StorageTests:
    """Make the suite that runs in the parent."""
    suite: StorageTests = load_attribute(source, name)()
    return suite


def log_of(source: str, name: str, path: str) -> EventLog:
    """Open the event log as the suite does."""
    return suite_of(source, name).open_log(Path(path))


def append_until_killed(source: str, name: str, path: str, prefix: str) -> None:
    """Store events one by one, and say the id of each once it is acknowledged."""
    log = log_of(source, name, path)
    for number in range(1_000_000):
        say(log.append("s", (f"{prefix}-{number}", f"event {number} of {prefix}"))[0].event_id)


def append_some(source: str, name: str, path: str, prefix: str, count: str) -> None:
    """Store a number of events in one thread when the parent says go."""
    log = log_of(source, name, path)
    say("ready")
    wait_for_parent()
    for number in range(int(count)):
        log.append("s", (f"{prefix}-{number}", f"event {number} of {prefix}"))
    log.close()
    say("done")


def stall_in_a_transaction(source: str, name: str, path: str) -> None:
    """Store an event and stop before the commit."""
    log = log_of(source, name, path)

    def work(connection: Any) -> None:
        owner = get_or_create_owner(connection, THREAD, COLLECTION, "s")
        events.append(connection, owner.id, [draft("never", "acknowledged")])
        say("stored, not committed")
        wait_for_parent()

    log.storage.write(work)


def stall_with_a_lease(source: str, name: str, path: str) -> None:
    """Lease all work and stop."""
    log = log_of(source, name, path)
    claim = log.claim("child", now=100.0)
    say([] if claim is None else [event.event_id for _, event, _ in claim.items])
    wait_for_parent()


def stall_in_a_migration(source: str, name: str, path: str, step: str) -> None:
    """Bring the suite's schema up to date and stop inside one of its steps."""

    def stall(number: int) -> int:
        if number == int(step):
            say(f"in step {number}")
            wait_for_parent()
        return number

    suite_of(source, name).open_storage(Path(path), on_connect=with_function(stall)).ensure(SCHEMA)


def migrate(source: str, name: str, path: str) -> None:
    """Bring the suite's schema up to date when the parent says go."""
    storage = suite_of(source, name).open_storage(Path(path), on_connect=with_function(int))
    say("ready")
    wait_for_parent()
    storage.ensure(SCHEMA)
    storage.close()
    say("done")


def with_function(stall: Any) -> Any:
    """Return an `on_connect` that gives each connection the function the steps call."""

    def connected(connection: Any) -> None:
        connection.create_scalar_function("stall", stall, 1)

    return connected
