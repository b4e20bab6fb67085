"""Lines of JSON back into a library: ids, times, revisions, tombstones and enrolment included."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import apsw

from libctx_core.cli.dump import BOOK_FORMAT, THREAD_FORMAT
from libctx_core.errors import InvalidInputError
from libctx_core.governor.drafts import EventOptions, count_content, draft_event
from libctx_core.governor.transfer import FORMAT, arguments_of
from libctx_core.library import LibraryView
from libctx_core.models import ContextEvent, ThreadKey, normalise_content
from libctx_core.store import events as log
from libctx_core.store.events import EventDraft
from libctx_core.store.index_records import find_slot
from libctx_core.store.owners import COLLECTION, THREAD, OwnerRow, create_owner, find_owner
from libctx_core.store.records import RecordInput, embedded_text

MAX_BATCH = 500
"""Lines that share a transaction."""

_REDACTED = "[redacted]"

Line = Mapping[str, Any]


@dataclass(slots=True)
class Restored:
    """What an import did.

    Attributes:
        threads: Threads met.
        events: Events stored.
        books: Books stored.
        known: Events and books the library had already, unchanged.
    """

    threads: int = 0
    events: int = 0
    books: int = 0
    known: int = 0


def read_lines(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Parse an export line by line.

    Raises:
        InvalidInputError: A line is no part of an export; the error names the line.
    """
    needed = {
        THREAD_FORMAT: ("collection", "session_id"),
        FORMAT: ("collection", "session_id", "event_id", "role", "content", "sequence", "created_at"),
        BOOK_FORMAT: ("collection", "shelf", "record"),
    }
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise InvalidInputError(f"line {number}", "is not JSON") from error
        if not isinstance(value, dict) or value.get("format") not in needed:
            raise InvalidInputError(f"line {number}", f"has no format of {', '.join(needed)}")
        missing = [name for name in needed[value["format"]] if name not in value]
        if missing:
            raise InvalidInputError(f"line {number}", f"lacks {', '.join(missing)}")
        yield value


def restore(library: LibraryView, lines: Iterable[Line]) -> Iterator[Restored]:
    """Store what the lines hold, and yield the same counts again after each batch.

    Events and books the library has already are left as they are, so a broken import is
    simply run again.

    Raises:
        EventConflictError: An event id is stored with other content.
        InvalidInputError: A line cannot be used.
    """
    done = Restored()
    for batch in _batches(lines):
        if batch[0]["format"] == THREAD_FORMAT:
            _restore_thread(library, batch[0], done)
        elif batch[0]["format"] == FORMAT:
            _restore_events(library, batch, done)
        else:
            _restore_books(library, batch, done)
        yield done
    if library.runtime.indexer is not None:
        library.runtime.indexer.wake()


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Group neighbouring lines that go to one owner object."""
    batch: list[Line] = []
    for line in lines:
        if batch and (len(batch) == MAX_BATCH or _place(line) != _place(batch[0])):
            yield batch
            batch = []
        batch.append(line)
    if batch:
        yield batch


def _place(line: Line) -> tuple[Any, ...]:
    return line["format"], line["collection"], line.get("session_id"), line.get("shelf")


# -- threads ----------------------------------------------------------------------


def _restore_thread(library: LibraryView, line: Line, done: Restored) -> None:
    library.authority.require_admin("import")
    library.database.write(lambda connection: _thread(connection, line))
    done.threads += 1


def _thread(connection: apsw.Connection, line: Line) -> OwnerRow:
    return _owner(connection, THREAD, line, line["session_id"], user=line.get("owner"))


def _owner(
    connection: apsw.Connection, kind: str, line: Line, key: str, *, user: str | None = None, team: str | None = None
) -> OwnerRow:
    return find_owner(connection, kind, line["collection"], key) or create_owner(
        connection,
        kind,
        line["collection"],
        key,
        user=user,
        team=team,
        resource_id=line.get("resource_id"),
        boundary_id=line.get("boundary_id"),
    )


def _restore_events(library: LibraryView, batch: list[Line], done: Restored) -> None:
    library.authority.require_admin("import")
    drafts = [_draft(library, line) for line in batch]

    def store(connection: apsw.Connection) -> int:
        thread = _thread(connection, batch[0])
        before = _last_sequence(connection, thread.id)
        for line, event in zip(batch, log.append(connection, thread.id, drafts), strict=True):
            _bring_up_to_date(library, connection, thread.id, event, line)
        return _last_sequence(connection, thread.id) - before

    stored = library.database.write(store)
    done.events += stored
    done.known += len(batch) - stored


def _last_sequence(connection: apsw.Connection, thread: int) -> int:
    head = log.thread_head(connection, thread)
    return 0 if head is None else head.last_sequence


def _draft(library: LibraryView, line: Line) -> EventDraft:
    """Return the event as it was first said."""
    arguments = arguments_of(line)
    role, content = arguments.pop("role"), arguments.pop("content")
    if line.get("redacted"):
        content = _REDACTED
    elif line.get("revisions"):
        content = line["revisions"][0]
    draft = draft_event(
        ThreadKey(line["collection"], line["session_id"]),
        role,
        content,
        EventOptions(**arguments),
        plugins=library.plugins,
        counter=library.counter,
        now=float(line["created_at"]),
    )
    return replace(draft, repaired=draft.repaired or bool(line.get("repaired")))


def _bring_up_to_date(
    library: LibraryView, connection: apsw.Connection, thread: int, event: ContextEvent, line: Line
) -> None:
    """Repeat on a stored event the amendments and the redaction of the exported one."""
    if line.get("redacted"):
        if not event.redacted:
            log.redact(connection, thread, event)
        return
    contents = [*line.get("revisions", ()), line["content"]][1:]
    for content in contents[event.revision :]:
        normal = normalise_content(event.role, content)
        log.amend(
            connection,
            thread,
            event,
            content=normal.stored,
            is_blocks=not isinstance(normal.value, str),
            tokens=count_content(event.role, normal, event.speaker, library.counter),
            counter=library.counter.name,
            native=line.get("native"),
            at=float(line["created_at"]),
        )


# -- shelves ----------------------------------------------------------------------


def _restore_books(library: LibraryView, batch: list[Line], done: Restored) -> None:
    library.authority.require_admin("import")
    try:
        records = [RecordInput(**line["record"]) for line in batch]
    except TypeError as error:
        raise InvalidInputError("record", "holds a field that books do not have, or lacks one") from error
    embedder = library.embedder
    vectors = None if embedder is None else embedder.embed_documents([embedded_text(record) for record in records])

    def store(connection: apsw.Connection) -> int:
        owner = _owner(connection, COLLECTION, batch[0], batch[0]["shelf"], team=batch[0].get("team"))
        fresh = sum(find_slot(connection, owner.id, record.key) is None for record in records)
        profile = "" if embedder is None else embedder.profile_id
        library.index.add(connection, owner.id, records, vectors, profile=profile)
        return fresh

    stored = library.database.write(store)
    done.books += stored
    done.known += len(batch) - stored
