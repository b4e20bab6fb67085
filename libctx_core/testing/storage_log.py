"""What the storage suite asks of a backend, and the event log it drives through it."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from libctx_core.models import ContextEvent, Role, Watermarks
from libctx_core.store import events, outbox
from libctx_core.store.events import EventDraft
from libctx_core.store.events_schema import EVENTS
from libctx_core.store.migrations import Component
from libctx_core.store.outbox import Claim, QuarantinedEvent
from libctx_core.store.owners import OWNERS, THREAD, find_owner, get_or_create_owner

T = TypeVar("T")

COLLECTION = "suite"
COUNTER = "characters"


class Storage(Protocol):
    """The store behind a library, as `register_storage_backends` brings it; `Database` is one."""

    def read(self) -> AbstractContextManager[Any]:
        """Lend a connection on which all statements see one snapshot."""
        ...

    def write(self, work: Callable[[Any], T], *, durable: bool = True) -> T:
        """Run `work(connection)` in one transaction and return its result once it is committed."""
        ...

    def ensure(self, component: Component) -> None:
        """Bring one component's tables up to date, each step in a transaction of its own."""
        ...

    def close(self) -> None:
        """Finish queued writes and let go of the file."""
        ...


def draft(event_id: str, content: str, *, role: Role = "user", fresh: bool = False) -> EventDraft:
    """Return an event as the governor hands it to the store; a token is a character."""
    return EventDraft(
        event_id=event_id,
        fresh=fresh,
        identity=hashlib.sha256(f"{role}\n{content}".encode()).digest(),
        role=role,
        content=content,
        is_blocks=False,
        metadata=None,
        importance=0.5,
        protected=False,
        tokens=len(content),
        counter=COUNTER,
        created_at=1.0,
    )


class EventLog:
    """Threads, events and outbox of one store; time is an argument, so no test has to wait.

    A backend whose connections do not take the library's statements gives the suite a
    class of its own with these methods.

    Args:
        storage: An open store.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        storage.ensure(OWNERS)
        storage.ensure(EVENTS)

    def thread(self, session: str) -> int:
        """Return the id of a thread, creating it where it is missing."""
        return self.storage.write(lambda c: get_or_create_owner(c, THREAD, COLLECTION, session).id)

    # -- events ---------------------------------------------------------------

    def append(self, session: str, *items: tuple[str, str], role: Role = "user") -> list[ContextEvent]:
        """Store events, given as id and text, in one transaction."""
        drafts = [draft(event_id, content, role=role) for event_id, content in items]

        def work(connection: Any) -> list[ContextEvent]:
            owner = get_or_create_owner(connection, THREAD, COLLECTION, session)
            return events.append(connection, owner.id, drafts)

        return self.storage.write(work)

    def events(self, session: str) -> list[ContextEvent]:
        """Return the events of a thread, in order."""
        with self.storage.read() as connection:
            owner = find_owner(connection, THREAD, COLLECTION, session)
            return [] if owner is None else events.after(connection, owner.id, 0, 2**31)

    def amend(self, session: str, event_id: str, content: str) -> None:
        """Replace what an event says."""

        def work(connection: Any, thread: int, event: ContextEvent) -> None:
            events.amend(
                connection, thread, event, content=content, is_blocks=False, tokens=len(content), counter=COUNTER,
                native=None, at=2.0,
            )  # fmt: skip

        self._change(session, event_id, work)

    def redact(self, session: str, event_id: str) -> None:
        """Remove an event's words."""
        self._change(session, event_id, events.redact)

    def _change(self, session: str, event_id: str, work: Callable[[Any, int, ContextEvent], None]) -> None:
        thread = self.thread(session)

        def change(connection: Any) -> None:
            event = events.find(connection, thread, event_id)
            assert event is not None, event_id
            work(connection, thread, event)

        self.storage.write(change)

    def delete(self, session: str) -> None:
        """Delete a thread and everything that hangs on it."""
        thread = self.thread(session)
        self.storage.write(lambda c: c.execute("DELETE FROM owner WHERE id = ?", (thread,)))

    # -- outbox ---------------------------------------------------------------

    def claim(
        self,
        owner: str,
        *,
        now: float = 0.0,
        lease: float = 30.0,
        limit: int = 256,
        dead: Sequence[str] = (),
        beyond: int = 0,
        token: str | None = None,
    ) -> Claim | None:
        """Lease free work; the token is made up from owner and time where none is given."""
        chosen = f"{owner}@{now}" if token is None else token
        return self.storage.write(
            lambda c: outbox.claim(
                c, owner=owner, token=chosen, now=now, lease=lease, limit=limit, dead=dead, beyond=beyond
            )
        )

    def owners(self) -> list[str]:
        """Return who holds leases."""
        with self.storage.read() as connection:
            return outbox.claim_owners(connection)

    def complete(self, claim: Claim, *event_ids: str) -> None:
        """Report events of a claim as indexed; all of them where none is named."""

        def work(connection: Any) -> None:
            for thread, sequence in self._places(claim, event_ids):
                outbox.complete(connection, claim.token, thread, [sequence])

        self.storage.write(work)

    def postpone(self, claim: Claim, event_id: str, *, not_before: float) -> None:
        """Report a failed attempt."""
        ((thread, sequence),) = self._places(claim, [event_id])
        self.storage.write(lambda c: outbox.postpone(c, claim.token, thread, sequence, not_before=not_before))

    def quarantine(self, claim: Claim, event_id: str, *, error: str) -> None:
        """Report the last failed attempt."""
        ((thread, sequence),) = self._places(claim, [event_id])
        self.storage.write(lambda c: outbox.quarantine(c, claim.token, thread, sequence, error=error, at=3.0))

    @staticmethod
    def _places(claim: Claim, event_ids: Iterable[str]) -> list[tuple[int, int]]:
        wanted = set(event_ids)
        return [(thread, event.sequence) for thread, event, _ in claim.items if not wanted or event.event_id in wanted]

    def retry(self, session: str, event_id: str) -> bool:
        """Return a quarantined event to the queue."""
        thread = self.thread(session)

        def work(connection: Any) -> bool:
            event = events.find(connection, thread, event_id)
            assert event is not None, event_id
            return outbox.retry(connection, thread, event.uid)

        return self.storage.write(work)

    def watermarks(self, session: str) -> Watermarks:
        """Return how far a thread is durable and searchable."""
        thread = self.thread(session)
        with self.storage.read() as connection:
            return outbox.watermarks(connection, thread)

    def pending(self) -> int:
        """Return how many events wait in all threads."""
        with self.storage.read() as connection:
            return outbox.pending(connection)

    def quarantined(self) -> list[QuarantinedEvent]:
        """Return what is set aside in all threads."""
        with self.storage.read() as connection:
            return outbox.quarantined(connection)

    def close(self) -> None:
        """Close the store."""
        self.storage.close()


class StorageTests:
    """Base of the suite's parts: how a store is opened."""

    def open_storage(self, path: Path, **options: Any) -> Storage:
        """Open a store at `path`; the keywords are those of a `StorageFactory`, each optional."""
        raise NotImplementedError

    def open_log(self, path: Path) -> EventLog:
        """Open the event log of the store at `path`."""
        return EventLog(self.open_storage(path))


def ids_of(claim: Claim | None) -> list[str]:
    """Return the event ids of a claim, none for no claim."""
    return [] if claim is None else [event.event_id for _, event, _ in claim.items]
