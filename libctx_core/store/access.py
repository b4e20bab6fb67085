"""Enrolment on owner rows, and the owners a scope permits, computed in SQL.

The three metadata columns lie on the owner's own row, so whoever creates or deletes an
owner enrols or forgets it in the same transaction.
"""

import json
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import apsw

from libctx_core.access.filters import OwnerFilter
from libctx_core.access.guards import Guard
from libctx_core.access.metadata import SCHEMA_VERSION, MetadataState, ResourceMetadata
from libctx_core.access.selectors import Matcher
from libctx_core.errors import ResourceExistsError
from libctx_core.errors.access import DenialReason
from libctx_core.store.migrations import Component
from libctx_core.store.owners import OwnerRow, create_owner, find_owner

ACCESS = Component(
    "access",
    (
        """
        CREATE TABLE access_clock(id INTEGER PRIMARY KEY CHECK(id = 0), changes INTEGER NOT NULL) STRICT;
        INSERT INTO access_clock VALUES(0, 0);
        CREATE TRIGGER owner_reenrolled AFTER UPDATE OF kind, resource_id, boundary_id, metadata_version ON owner
        BEGIN UPDATE access_clock SET changes = changes + 1; END;
        CREATE TRIGGER owner_removed AFTER DELETE ON owner
        BEGIN UPDATE access_clock SET changes = changes + 1; END;
        """,
    ),
)

MAX_CACHED_SELECTIONS: Final = 64
"""Permitted sets kept; the least recently used is dropped."""


def metadata_state(row: OwnerRow | None) -> MetadataState:
    """Return what an owner row says about its enrolment."""
    if row is None:
        return None
    return state_of_columns(row.kind, row.resource_id, row.boundary_id, row.metadata_version)


@lru_cache(maxsize=4096)
def state_of_columns(kind: str, resource_id: str | None, boundary_id: str | None, version: int | None) -> MetadataState:
    """Return the metadata that the three columns of an owner of `kind` hold; anything odd is invalid."""
    if resource_id is None:
        return None if boundary_id is None and version is None else DenialReason.INVALID_METADATA
    try:
        return ResourceMetadata(kind, resource_id, boundary_id, 0 if version is None else version)
    except ValueError:
        return DenialReason.INVALID_METADATA


def enrol_owner(
    connection: apsw.Connection, collection: str, key: str, metadata: ResourceMetadata, *, unique: bool = False
) -> None:
    """Write the enrolment of an owner, creating its row if it has none; runs in a write transaction.

    Args:
        connection: The writer.
        collection: Collection of the owner.
        key: Its key; its kind is the metadata's.
        metadata: The enrolment.
        unique: Refuse a resource id under which another owner is enrolled.

    Raises:
        ResourceExistsError: The resource id is taken and `unique` is set.
    """
    kind = metadata.resource_kind
    row = find_owner(connection, kind, collection, key)
    if unique:
        for (other,) in connection.execute("SELECT id FROM owner WHERE resource_id = ?", (metadata.resource_id,)):
            if row is None or other != row.id:
                raise ResourceExistsError(kind, key)
    if row is None:
        create_owner(
            connection,
            kind,
            collection,
            key,
            resource_id=metadata.resource_id,
            boundary_id=metadata.boundary_id,
        )
        return
    connection.execute(
        "UPDATE owner SET resource_id = ?, boundary_id = ?, metadata_version = ? WHERE id = ?",
        (metadata.resource_id, metadata.boundary_id, metadata.schema_version, row.id),
    )


def unenrol_owner(connection: apsw.Connection, kind: str, collection: str, key: str) -> bool:
    """Remove an owner's enrolment; return whether it had one. The owner becomes legacy-shared."""
    row = find_owner(connection, kind, collection, key)
    if row is None or metadata_state(row) is None:
        return False
    connection.execute(
        "UPDATE owner SET resource_id = NULL, boundary_id = NULL, metadata_version = NULL WHERE id = ?", (row.id,)
    )
    return True


@dataclass(frozen=True, slots=True)
class _Answer:
    changes: int
    newest: int
    ids: tuple[int, ...]
    members: frozenset[int]


class PermittedOwners:
    """Which owner rows a selection permits, remembered until enrolments change.

    New owners are looked at alone; a changed or removed enrolment, in this process or in
    another, is noticed through a counter that triggers keep in the file.
    """

    def __init__(self) -> None:
        self._answers: dict[tuple[OwnerFilter, int], _Answer] = {}
        self._lock = threading.Lock()

    def ids(
        self, connection: apsw.Connection, selection: OwnerFilter, guard: Guard | None = None
    ) -> tuple[int, ...] | None:
        """Return the permitted owner ids in rising order, None for all of them.

        Args:
            connection: The snapshot that will be searched.
            selection: What the scope permits (`Authority.selection`).
            guard: The veto of plugins (`Authority.guard`), applied to enrolled owners.
        """
        return None if selection.unrestricted else self._answer(connection, selection, guard).ids

    def narrow(
        self,
        connection: apsw.Connection,
        owners: Iterable[int],
        selection: OwnerFilter,
        guard: Guard | None = None,
    ) -> tuple[int, ...]:
        """Return those of `owners` that are permitted, in the order given."""
        if selection.unrestricted:
            return tuple(owners)
        members = self._answer(connection, selection, guard).members
        return tuple([owner for owner in owners if owner in members])

    def _answer(self, connection: apsw.Connection, selection: OwnerFilter, guard: Guard | None) -> _Answer:
        state: Any = connection.execute(
            "SELECT changes, (SELECT coalesce(max(id), 0) FROM owner) FROM access_clock"
        ).fetchall()[0]
        changes, newest = state
        key = (selection, -1 if guard is None else guard.generation)
        with self._lock:
            known = self._answers.pop(key, None)
            if known is not None:
                self._answers[key] = known
        if known is not None and known.changes == changes and known.newest == newest:
            return known
        if known is not None and known.changes == changes and known.newest < newest:
            found = known.members | _select(connection, selection, guard, after=known.newest)
        else:
            found = frozenset(_select(connection, selection, guard, after=0))
        answer = _Answer(changes, newest, tuple(sorted(found)), found)
        with self._lock:
            self._answers[key] = answer
            while len(self._answers) > MAX_CACHED_SELECTIONS:
                self._answers.pop(next(iter(self._answers)))
        return answer


def _select(connection: apsw.Connection, selection: OwnerFilter, guard: Guard | None, *, after: int) -> set[int]:
    """Return the permitted owners with an id above `after`."""
    first, *others = [_matching(connection, layer, after) for layer in selection.layers]
    enrolled = first.intersection(*others)
    if guard is not None and enrolled and selection.principal is not None:
        enrolled = _without_vetoed(connection, enrolled, selection, selection.principal, guard)
    if selection.unenrolled:
        enrolled |= _ids(
            connection,
            "SELECT id FROM owner WHERE id > ? AND resource_id IS NULL AND boundary_id IS NULL"
            " AND metadata_version IS NULL",
            (after,),
        )
    return enrolled


def _matching(connection: apsw.Connection, layer: Matcher, after: int) -> set[int]:
    """Return the owners one layer covers, found through the indexes of both ids."""
    pairs = sorted(layer.contained)
    by_resource = json.dumps(sorted(layer.resources | {resource for resource, _ in pairs}))
    found: set[int] = set()
    for owner, resource, boundary in connection.execute(
        "SELECT id, resource_id, boundary_id FROM owner"
        " WHERE resource_id IN (SELECT value FROM json_each(?)) AND id > ? AND metadata_version = ?",
        (by_resource, after, SCHEMA_VERSION),
    ):
        if layer.matches(resource, boundary):
            found.add(owner)
    return found | _ids(
        connection,
        "SELECT id FROM owner WHERE boundary_id IN (SELECT value FROM json_each(?)) AND id > ?"
        " AND metadata_version = ? AND resource_id IS NOT NULL",
        (json.dumps(sorted(layer.boundaries)), after, SCHEMA_VERSION),
    )


def _without_vetoed(
    connection: apsw.Connection, owners: set[int], selection: OwnerFilter, principal: str, guard: Guard
) -> set[int]:
    rows: Any = connection.execute(
        "SELECT id, kind, resource_id, boundary_id FROM owner WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(sorted(owners)),),
    ).fetchall()
    known = {owner: ResourceMetadata(kind, resource, boundary) for owner, kind, resource, boundary in rows}
    vetoed = guard.denied(principal, selection.operation, set(known.values()))
    return {owner for owner, metadata in known.items() if metadata not in vetoed}


def _ids(connection: apsw.Connection, statement: str, bindings: Sequence[object]) -> set[int]:
    return {int(owner) for (owner,) in connection.execute(statement, tuple(bindings))}
