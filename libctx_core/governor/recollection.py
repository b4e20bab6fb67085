"""Bringing back, changing and removing what a thread holds."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import apsw

from libctx_core.errors import EventNotFoundError, InvalidInputError, ThreadNotFoundError
from libctx_core.errors.access import Operation
from libctx_core.governor import drafts, retrieval
from libctx_core.governor.indexer import record_of, slot_of_event
from libctx_core.governor.memories import remember_events
from libctx_core.governor.redaction import RedactionReceipt, delete_thread, redact_event
from libctx_core.governor.session import ThreadSession
from libctx_core.governor.transfer import event_record
from libctx_core.models import Block, Content, ContextEvent, Hit, normalise_content
from libctx_core.store import events as log
from libctx_core.store.owners import OwnerRow

if TYPE_CHECKING:
    from libctx_core.memory.views import Remembered

_PAGE = 512
_EVERYTHING = 2**62


class Recollection(ThreadSession):
    """Reading the whole log, whatever the last request showed of it."""

    def recall(
        self, query: str, k: int = 10, *, reach: retrieval.Reach | None = None, explain: bool = False
    ) -> list[Hit]:
        """Find what was said, whether or not it is in the request; stores nothing.

        Args:
            query: Any text.
            k: Hits wanted.
            reach: Where to look; by default where the desk looks.
            explain: Give each signal's part of the score.
        """
        if type(k) is not int or k < 1:
            raise InvalidInputError("k", "must be a whole number above 0")
        reading = self._builder.reading if reach is None else replace(self._builder.reading, reach=reach)
        with self._snapshot(Operation.READ) as (connection, _owner):
            owners = retrieval.readable_owners(connection, self._runtime, self._authority, reading)
            found = retrieval.search(connection, self._runtime, query, owners, k=k, explain=explain)
            return retrieval.hits_of(connection, found)

    def open_event(self, event_id: str) -> ContextEvent:
        """Return a stored event whole, by its id or by the recall id a request shows.

        Raises:
            EventNotFoundError: There is none that may be read.
        """
        with self._snapshot(Operation.READ) as (connection, owner):
            event = None if owner is None else log.find(connection, owner.id, event_id)
            return event or self._by_recall_id(connection, event_id)

    def _by_recall_id(self, connection: apsw.Connection, recall_id: str) -> ContextEvent:
        number = recall_id.removeprefix("e")
        if number != recall_id and number.isascii() and number.isdigit() and len(number) < 19:
            found = log.by_uid(connection, int(number))
            readable = retrieval.readable_owners(connection, self._runtime, self._authority, self._builder.reading)
            if found is not None and found[0] in readable:
                return found[1]
        raise EventNotFoundError(recall_id)

    def history(self, limit: int | None = None, before: str | int | None = None) -> Iterator[ContextEvent]:
        """Yield the thread's events in order, byte for byte as stored.

        Args:
            limit: Only the last so many.
            before: Only those before this event (id or sequence).
        """
        with self._snapshot(Operation.READ) as (connection, owner):
            if owner is None:
                return
            ceiling = _EVERYTHING if before is None else before
            if isinstance(ceiling, str):
                ceiling = self._event(connection, owner, ceiling).sequence
            if limit is not None:
                page = list(reversed(log.newest(connection, owner.id, through=ceiling - 1, limit=limit)))
        if limit is not None:
            yield from page
            return
        at = 0
        while True:
            with self._snapshot(Operation.READ) as (connection, _owner):
                page = [event for event in log.after(connection, owner.id, at, _PAGE) if event.sequence < ceiling]
            yield from page
            if len(page) < _PAGE:
                return
            at = page[-1].sequence

    def amend(self, event_id: str, content: Content, *, native: object = None) -> ContextEvent:
        """Replace what an event says; what it said stays as a revision.

        Raises:
            EventNotFoundError: There is no such event, or it was redacted.
        """
        with self._snapshot(Operation.WRITE) as (connection, owner):
            event = self._event(connection, owner, event_id)
        normal = normalise_content(event.role, content)
        tokens = drafts.count_content(event.role, normal, event.speaker, self.counter)
        own_form = drafts.native_json(native)

        def store(connection: apsw.Connection) -> ContextEvent:
            owner = self._find(connection)
            self._require(Operation.WRITE, owner)
            current = self._event(connection, owner, event_id)
            if owner is None or current.redacted:
                raise EventNotFoundError(event_id)
            log.amend(
                connection,
                owner.id,
                current,
                content=normal.stored,
                is_blocks=not isinstance(normal.value, str),
                tokens=tokens,
                counter=self.counter.name,
                native=own_form,
                at=self._runtime.clock(),
            )
            amended = self._event(connection, owner, event_id)
            slot = slot_of_event(connection, owner.id, amended)
            if slot is not None:
                # the old words are gone at once; the new vector follows when the event is indexed again
                self._runtime.index.update(connection, slot, record_of(amended), None)
            return amended

        amended = self._runtime.database.write(store)
        self._wake()
        return amended

    def revisions(self, event_id: str) -> list[str | list[Block]]:
        """Return what an event said before it was amended, oldest first."""
        with self._snapshot(Operation.READ) as (connection, owner):
            return log.revisions(connection, self._event(connection, owner, event_id).uid)

    def redact(self, event_id: str, *, cascade: bool = False) -> RedactionReceipt:
        """Remove an event's words from the file: log, revisions, index, vectors and caches.

        Its place in the sequence stays as a tombstone.

        Args:
            event_id: The event.
            cascade: Also remove memory entries derived from it; otherwise they are listed.

        Returns:
            What was removed, and what cannot be reached from here.
        """
        with self._snapshot(Operation.DELETE) as (connection, owner):
            event = self._event(connection, owner, event_id)
        receipt = redact_event(self._runtime, self._authority, self._deletable, event, cascade=cascade)
        self._runtime.observe("libctx.event.redacted", {"gen_ai.conversation.id": self.key.session_id})
        return receipt

    def remember(self, event_ids: Iterable[str], *, kind: str = "working_note", memory: str = "memory") -> "Remembered":
        """Turn events into memory entries of the collection that cite them.

        Args:
            event_ids: Events of this thread.
            kind: Kind of the entries.
            memory: Id of the memory.

        Raises:
            EventNotFoundError: There is no such event.
            ContextAccessDenied: The scope may not read the thread, or not write the memory.
        """
        with self._snapshot(Operation.READ) as (connection, owner):
            events = [self._event(connection, owner, event_id) for event_id in event_ids]
        remembered = remember_events(
            self._runtime,
            self._authority,
            self.key.collection,
            events,
            session=self.key.session_id,
            kind=kind,
            memory=memory,
        )
        self._wake()
        return remembered

    def export(self) -> Iterator[dict[str, Any]]:
        """Yield the thread as JSON objects, one per event, losslessly."""
        for event in self.history():
            yield event_record(self.key, event, self.revisions(event.event_id) if event.revision else [])

    def delete(self) -> None:
        """Delete the thread and everything derived from it.

        Raises:
            ThreadNotFoundError: There is no such thread.
        """
        with self._runtime.database.read() as connection:
            self._deletable(connection)
        delete_thread(self._runtime, self._deletable)
        self._owner_id = None

    def _deletable(self, connection: apsw.Connection) -> OwnerRow:
        owner = self._find(connection)
        self._require(Operation.DELETE, owner)
        if owner is None:
            raise ThreadNotFoundError(self.key.collection, self.key.session_id)
        return owner
