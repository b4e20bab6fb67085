"""A library as lines of JSON: threads with their events, and the books of shelves."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from libctx_core.governor.statistics import visible_owners
from libctx_core.library import LibraryView
from libctx_core.store.index_records import read_records
from libctx_core.store.owners import COLLECTION, THREAD, OwnerRow
from libctx_core.store.records import owner_and_position

THREAD_FORMAT = "libctx.thread.v1"
BOOK_FORMAT = "libctx.book.v1"

_PAGE = 256


def dump(library: LibraryView, *, collection: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the lines: a thread, then its events in order; the books of each shelf last.

    Args:
        library: The library.
        collection: Only what lies in this collection.
    """
    with library.database.read() as connection:
        owners = visible_owners(connection, library.authority, collection=collection)
    for owner in owners:
        if owner.kind == THREAD:
            yield _owner_line(THREAD_FORMAT, owner) | {"session_id": owner.key, "owner": owner.user}
            yield from library.open_context_governor(owner.key, collection=owner.collection).export()
    for owner in owners:
        if owner.kind == COLLECTION:
            yield from _books(library, owner)


def left_out(library: LibraryView, *, collection: str | None = None) -> dict[str, int]:
    """Count, by kind, the owner objects that `dump` does not write; a backup holds them."""
    with library.database.read() as connection:
        owners = visible_owners(connection, library.authority, collection=collection)
    return dict(Counter(owner.kind for owner in owners if owner.kind not in (THREAD, COLLECTION)))


def as_line(value: dict[str, Any]) -> str:
    """Return one JSON document in one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _books(library: LibraryView, owner: OwnerRow) -> Iterator[dict[str, Any]]:
    head = _owner_line(BOOK_FORMAT, owner) | {"shelf": owner.key, "team": owner.team}
    start = 0
    while True:
        with library.database.read() as connection:
            page = list(read_records(connection, owner.id, start, _PAGE))
        for row in page:
            fields = {name: value for name, value in dataclasses.asdict(row.record).items() if value is not None}
            yield head | {"record": fields}
        if len(page) < _PAGE:
            return
        start = owner_and_position(page[-1].slot)[1] + 1


def _owner_line(kind: str, owner: OwnerRow) -> dict[str, Any]:
    return {
        "format": kind,
        "collection": owner.collection,
        "resource_id": owner.resource_id,
        "boundary_id": owner.boundary_id,
    }
