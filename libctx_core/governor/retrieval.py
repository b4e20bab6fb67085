"""What a desk may draw on, and what it found there."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import apsw

from libctx_core.access.authority import Authority
from libctx_core.errors.access import Operation
from libctx_core.governor.runtime import Runtime
from libctx_core.models import Hit, ThreadKey
from libctx_core.search.request import RecordHit, SearchRequest
from libctx_core.store.owners import COLLECTION, MEMORY, SOURCE, THREAD, OwnerRow, find_owner, owner_by_id

Reach = Literal["thread", "owner", "collection"]

SHELF = "shelf"
"""Key of the one shelf of a collection."""

TEAM = "team"
"""Key of the shelf of a team; its collection is the team's name."""

MIN_RELEVANCE = 0.5
"""Relevance an item needs to be put on the desk of a turn that asks for something."""

FIRST_SHARE = 0.01
"""Share of it that suffices for the best few items."""

STATEMENT_RELEVANCE = 0.999
"""The same for a turn that asks for nothing: only what is hardly ever wrong may join small talk."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Where a governor's retrieval may look.

    Attributes:
        key: Its own thread.
        user: Owner of the thread, for ``reach="owner"``.
        reach: ``thread`` for the thread and the collection's shelf, ``owner`` for the same
            user's other threads too, ``collection`` for every thread of the collection.
        teams: Teams whose shelves are read too.
        memories: Whether the collection's memories and sources are read too.
    """

    key: ThreadKey
    user: str | None = None
    reach: Reach = "thread"
    teams: tuple[str, ...] = ()
    memories: bool = True


def readable_owners(
    connection: apsw.Connection, runtime: Runtime, authority: Authority, reading: Reading
) -> tuple[int, ...]:
    """Return the owner objects a desk may search, decided before anything is ranked."""
    collection = reading.key.collection
    places = [
        (THREAD, collection, reading.key.session_id),
        (COLLECTION, collection, SHELF),
        *((COLLECTION, team, TEAM) for team in reading.teams),
    ]
    rows = [find_owner(connection, *place) for place in places]
    wanted = [row.id for row in rows if row is not None]
    if reading.memories:
        wanted += _ids(connection, "kind IN (?, ?) AND collection = ?", (MEMORY, SOURCE, collection))
    if reading.reach == "owner" and reading.user is not None:
        wanted += _ids(connection, "kind = ? AND user = ?", (THREAD, reading.user))
    elif reading.reach == "collection":
        wanted += _ids(connection, "kind = ? AND collection = ?", (THREAD, collection))
    selection = authority.selection(Operation.READ, THREAD)
    return runtime.permitted.narrow(connection, dict.fromkeys(wanted), selection, authority.guard)


def all_readable_owners(connection: apsw.Connection, runtime: Runtime, authority: Authority) -> tuple[int, ...] | None:
    """Return every owner object that may be searched, None for the whole library."""
    return runtime.permitted.ids(connection, authority.selection(Operation.READ, COLLECTION), authority.guard)


def _ids(connection: apsw.Connection, condition: str, values: tuple[str, ...]) -> list[int]:
    found = connection.execute(f"SELECT id FROM owner WHERE {condition}", values)  # noqa: S608 - constant conditions
    return [owner for (owner,) in found]


def search(
    connection: apsw.Connection,
    runtime: Runtime,
    text: str,
    owners: Sequence[int] | None,
    *,
    k: int,
    exclude: Collection[int] = (),
    min_relevance: float = 0.0,
    few: int = 0,
    few_relevance: float = 0.0,
    neighbours: int = 0,
    dedupe: bool = False,
    explain: bool = False,
) -> list[RecordHit]:
    """Ask the library's one search engine."""
    request = SearchRequest(
        text=text,
        owners=owners,
        k=k,
        exclude=exclude,
        min_relevance=min_relevance,
        few=few,
        few_relevance=few_relevance,
        neighbours=neighbours,
        dedupe=dedupe,
        explain=explain,
        now=runtime.clock(),
    )
    return runtime.searcher.search_in(connection, request)


def slots_of(connection: apsw.Connection, thread: int, event_ids: Collection[str]) -> set[int]:
    """Return the slots of a thread's events, so that they can be left out of a search."""
    rows = connection.execute(
        "SELECT slot FROM carray(?) AS named CROSS JOIN record ON record.owner = ? AND record.key = named.value",
        (apsw.carray(tuple(event_ids) or ("",)), thread),
    )
    return {row[0] for row in rows}


def hits_of(connection: apsw.Connection, found: Sequence[RecordHit]) -> list[Hit]:
    """Turn found records into hits with their citation."""
    owners: dict[int, OwnerRow | None] = {}
    result = []
    for record in found:
        if record.owner not in owners:
            owners[record.owner] = owner_by_id(connection, record.owner)
        row = owners[record.owner]
        if row is not None:
            result.append(_hit(connection, record, row))
    return result


def _hit(connection: apsw.Connection, record: RecordHit, row: OwnerRow) -> Hit:
    is_event = row.kind == THREAD
    uid = None
    if is_event:
        uid = connection.execute("SELECT uid FROM event WHERE thread = ? AND event_id = ?", (row.id, record.key)).get
    return Hit(
        record_id=f"e{uid}" if uid is not None else f"r{record.slot}",
        event_id=record.key if is_event else None,
        text=record.text,
        score=record.score,
        relevance=record.relevance,
        signals=record.signals,
        matched_by=record.matched_by,
        kind=record.kind,
        thread=ThreadKey(row.collection, row.key) if is_event else None,
        sequence=record.sequence,
        role=record.role,
        speaker=record.speaker,
        occurred_at=record.occurred_at,
        citation=_citation(record, row),
        metadata=None if record.metadata is None else json.loads(record.metadata),
    )


def _citation(record: RecordHit, row: OwnerRow) -> str:
    if row.kind == THREAD:
        return f"{row.collection}/{row.key}#{record.sequence}"
    place = record.ref or record.key
    return f"{row.collection}/{place}" if row.kind == COLLECTION else f"{row.collection}/{row.key}#{place}"
