"""The outbox of memory search: entries whose record must be brought in line with their head."""

import json
from collections.abc import Sequence
from typing import NamedTuple

import apsw


class PendingRow(NamedTuple):
    """An entry as the index should have it.

    Attributes:
        entry: Row id of the entry.
        owner: Id of the memory's owner object.
        entry_id: Public id of the entry.
        version: Row id of its current version.
        version_id: Public id of that version.
        active: 1 if it is to be found.
        slot: Its record, or None.
        kind: What it is; None once purged.
        text: What it says; None once purged.
        context: JSON object of where it was said, or None.
    """

    entry: int
    owner: int
    entry_id: str
    version: int
    version_id: str
    active: int
    slot: int | None
    kind: str | None
    text: str | None
    context: str | None


def has_pending(connection: apsw.Connection, owner: int) -> bool:
    """Tell whether entries of a memory wait for the index."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM memory_pending WHERE owner = ?)", (owner,)).get)


def owners_with_pending(connection: apsw.Connection) -> list[int]:
    """Return the memories with entries that wait for the index."""
    return [owner for (owner,) in connection.execute("SELECT DISTINCT owner FROM memory_pending")]


def count_pending(connection: apsw.Connection) -> int:
    """Return how many entries of the library wait for the index."""
    return int(connection.execute("SELECT count(*) FROM memory_pending").get or 0)


def read_pending(connection: apsw.Connection, owner: int, limit: int) -> list[PendingRow]:
    """Return entries of a memory that wait for the index, in the order they were added."""
    return [
        PendingRow(*row)
        for row in connection.execute(
            "SELECT e.id, e.owner, e.entry_id, e.version, v.version_id, e.active, e.slot, v.kind, v.text, e.context"
            " FROM memory_pending p JOIN memory_entry e ON e.id = p.entry JOIN memory_version v ON v.id = e.version"
            " WHERE p.owner = ? ORDER BY p.entry LIMIT ?",
            (owner, limit),
        )
    ]


def still_pending(connection: apsw.Connection, row: PendingRow) -> bool:
    """Tell whether an entry is as it was read and still waits."""
    found = connection.execute(
        "SELECT 1 FROM memory_pending p JOIN memory_entry e ON e.id = p.entry"
        " WHERE p.entry = ? AND e.version = ? AND e.active = ? AND e.slot IS ?",
        (row.entry, row.version, row.active, row.slot),
    ).get
    return bool(found)


def settle(connection: apsw.Connection, placed: Sequence[tuple[int | None, int]]) -> None:
    """Note the slots of entries whose records are in line.

    Args:
        connection: The writer.
        placed: Slot (None for no record) and row id of each entry.
    """
    connection.executemany("UPDATE memory_entry SET slot = ? WHERE id = ?", placed)
    connection.executemany("DELETE FROM memory_pending WHERE entry = ?", [(entry,) for _, entry in placed])


def entry_slots(connection: apsw.Connection, owner: int, kinds: Sequence[str], tags: Sequence[str]) -> list[int]:
    """Return the records of a memory's active entries of one of the kinds, with all of the tags.

    Args:
        connection: Any connection.
        owner: Id of the memory's owner object.
        kinds: Kinds wanted; none means all.
        tags: Tags an entry must have.
    """
    found = connection.execute(
        "SELECT e.slot, v.kind, e.tags FROM memory_entry e JOIN memory_version v ON v.id = e.version"
        " WHERE e.owner = ?1 AND e.active = 1 AND e.slot IS NOT NULL"
        " AND (SELECT count(*) FROM json_each(?2) wanted WHERE wanted.value IN"
        " (SELECT value FROM json_each(coalesce(e.tags, '[]')))) = json_array_length(?2)",
        (owner, _json_list(tags)),
    )
    wanted = frozenset(kinds)
    return [slot for slot, kind, _ in found if not wanted or kind in wanted]


def slots_of_entries(connection: apsw.Connection, entries: Sequence[int]) -> list[int]:
    """Return the records of these entries."""
    found = [
        connection.execute("SELECT slot FROM memory_entry WHERE id = ? AND slot IS NOT NULL", (entry,)).get
        for entry in entries
    ]
    return [int(slot) for slot in found if isinstance(slot, int)]


def _json_list(items: Sequence[str]) -> str:
    return json.dumps(list(items), ensure_ascii=False)


def queue_everything(connection: apsw.Connection, owner: int) -> int:
    """Note that all records of a memory must be made again; return how many entries that are."""
    connection.execute(
        "INSERT OR IGNORE INTO memory_pending SELECT id, owner FROM memory_entry WHERE owner = ? AND active = 1",
        (owner,),
    )
    connection.execute("UPDATE memory_entry SET slot = NULL WHERE owner = ?", (owner,))
    return int(connection.execute("SELECT count(*) FROM memory_pending WHERE owner = ?", (owner,)).get or 0)
