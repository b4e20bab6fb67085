"""The worker that makes durable events searchable: claims, embeds, indexes, in batches."""

import logging
import random
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import apsw

from libctx_core.errors import InvalidInputError, LibctxError, StoreClosedError, StoreError
from libctx_core.governor import workers
from libctx_core.models import ContextEvent, caption_of
from libctx_core.ports import Embedder
from libctx_core.store import Database, outbox
from libctx_core.store import events as log
from libctx_core.store.outbox import Claim
from libctx_core.store.records import RecordInput, embedded_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from libctx_core.search.index import SearchIndex

logger = logging.getLogger(__name__)

BATCH = 256
"""Events leased and committed together."""

LEASE = 30.0
"""Seconds after which another process may take over an owner that cannot be proven dead."""

IDLE_POLL = 0.5
"""Seconds between looks at the outbox when nobody calls: work of a killed process is found by then."""

CLOSE_PATIENCE = 5.0
"""Seconds `close` waits for the batch at hand; an embedder that hangs is left behind."""

MAX_ATTEMPTS = 5
SETTLE = 0.02
"""Seconds between an event and its indexing, unless somebody waits for it: whoever stored the
event most likely builds a request next, and both at once only take turns."""

BACKOFF = 0.2
"""Seconds before the first retry; doubles with each attempt, with jitter."""


class Indexer:
    """Indexes events behind the caller's back and says how far it got.

    One thread per open library. Work is leased from the outbox by owner, expiry and
    token, so several processes share it; what an obsolete token completes is refused.

    Args:
        database: The library file.
        index: Write door of search.
        embedder: Makes vectors; None indexes words only.
        chore: Further derived work, done when the outbox is empty; returns how much it did.
    """

    def __init__(
        self,
        database: Database,
        index: "SearchIndex",
        embedder: Embedder | None,
        chore: Callable[[], int] | None = None,
    ) -> None:
        self._database = database
        self._search = index
        self._embedder = embedder
        self._chore = chore
        self._owner = workers.enlist()
        self._condition = threading.Condition()
        self._working = threading.Lock()
        self._beyond = 0
        self._progress = 0
        self._wanted = False
        self._waiting = 0
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._counts: list[tuple[dict[int, int], str]] = []
        self.last_error: str | None = None

    # -- being called ---------------------------------------------------------

    def wake(self) -> None:
        """Say that there is work; returns at once."""
        with self._condition:
            self._wanted = True
            if self._thread is None and not self._stopping:
                self._thread = threading.Thread(target=self._run, name="libctx-indexer", daemon=True)
                self._thread.start()
            self._condition.notify_all()

    def keep_counts(self, counts: dict[int, int], counter: str) -> None:
        """Store token counts of a second counter when the indexer next writes."""
        with self._condition:
            self._counts.append((counts, counter))
        self.wake()

    def wait(self, done: "Done", timeout: float) -> bool:
        """Wait until `done` says so; it is asked after each batch. False when time ran out."""
        deadline = time.monotonic() + timeout
        with self._condition:
            self._waiting += 1
        try:
            self.wake()
            return self._wait_until(done, deadline)
        finally:
            with self._condition:
                self._waiting -= 1

    def _wait_until(self, done: "Done", deadline: float) -> bool:
        while True:
            seen = self._progress
            if done():
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            with self._condition:
                # another process may finish the work without telling this one
                self._condition.wait_for(partial(self._moved_on, seen), min(left, IDLE_POLL))

    def _moved_on(self, since: int) -> bool:
        return self._progress != since

    def close(self) -> None:
        """Finish the batch at hand, or the one just asked for, and stop.

        The rest stays in the outbox, free for the next worker.
        """
        with self._condition:
            self._stopping = True
            self._condition.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(CLOSE_PATIENCE)
            if thread.is_alive():
                logger.warning("closing while the embedder is at work; its batch stays in the outbox")
        workers.dismiss(self._owner)
        try:
            self._database.write(partial(outbox.release, owner=self._owner), durable=False)
        except StoreError as error:
            logger.warning("leases of this worker stay until they expire: %s", describe(error))

    # -- working --------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._condition:
                if not self._wanted and not self._stopping:
                    self._condition.wait(IDLE_POLL)
                if self._wanted:
                    self._condition.wait_for(lambda: self._stopping or self._waiting, SETTLE)
                if self._stopping and not self._wanted:
                    return
                self._wanted = False
            try:
                while self.step() and not self._stopping:
                    self._report()
                if self._chore is not None and not self._stopping:
                    self._chore()
            except StoreClosedError:
                return
            except Exception as error:  # noqa: BLE001 - the worker outlives whatever a part of it raises
                self._complain(describe(error))
                with self._condition:
                    self._condition.wait_for(lambda: self._stopping, BACKOFF)
            self._report()

    def _complain(self, trouble: str) -> None:
        if trouble != self.last_error:
            logger.warning("indexing paused: %s", trouble)
        self.last_error = trouble

    def _report(self) -> None:
        """Let those who wait look again."""
        with self._condition:
            self._progress += 1
            self._condition.notify_all()

    def step(self) -> int:
        """Index one batch on this thread; return how many events were taken."""
        with self._working:
            self._write_counts()
            with self._database.read() as connection:
                if outbox.is_clear(connection):
                    self.last_error = None
                    return 0
            claim = self._database.write(self._claim, durable=False)
            if claim is None:
                return 0
            self.last_error = None
            groups: dict[int, list[tuple[ContextEvent, int]]] = defaultdict(list)
            for thread, event, attempts in claim.items:
                groups[thread].append((event, attempts))
            for thread, members in groups.items():
                self._index_thread(claim, thread, members)
                self._beyond = thread
            return len(claim.items)

    def _claim(self, connection: apsw.Connection) -> Claim | None:
        owners = outbox.claim_owners(connection)
        dead = [owner for owner in owners if owner != self._owner and workers.is_dead(owner)]
        return outbox.claim(
            connection,
            owner=self._owner,
            token=uuid.uuid4().hex,
            now=time.time(),
            lease=LEASE,
            limit=BATCH,
            dead=dead,
            beyond=self._beyond,
        )

    def _write_counts(self) -> None:
        with self._condition:
            counts, self._counts = self._counts, []
        for values, counter in counts:
            self._database.write(partial(log.store_tokens, counts=values, counter=counter), durable=False)

    def _index_thread(self, claim: Claim, thread: int, members: Sequence[tuple[ContextEvent, int]]) -> None:
        """Index the events of one thread together; if that fails, one by one."""
        try:
            self._index(claim, thread, [event for event, _ in members])
        except StoreError:
            # nobody's fault in the batch: a full disk, a busy or a closed file
            raise
        except Exception as error:  # noqa: BLE001 - an embedder or a plugin may raise anything
            if len(members) == 1:
                self._give_back(claim, thread, members[0], error)
                return
            for member in members:
                self._index_thread(claim, thread, [member])

    def _index(self, claim: Claim, thread: int, events: Sequence[ContextEvent]) -> None:
        shown = [event for event in events if is_searchable(event)]
        records = [record_of(event) for event in shown]
        vectors = self._embed(records)
        profile = self._embedder.profile_id if self._embedder is not None else ""

        def store(connection: apsw.Connection) -> None:
            # what was amended, redacted or taken over meanwhile has lost the token
            fresh = [
                place
                for place, event in enumerate(shown)
                if outbox.is_held(connection, claim.token, thread, event.sequence)
            ]
            changed = {place: slot for place in fresh if (slot := slot_of_event(connection, thread, shown[place]))}
            for place, slot in changed.items():
                vector = None if vectors is None else vectors[place]
                self._search.update(connection, slot, records[place], vector, profile=profile)
            new = [place for place in fresh if place not in changed]
            self._search.add(
                connection,
                thread,
                [records[place] for place in new],
                None if vectors is None else vectors[new],
                profile=profile,
            )
            outbox.complete(connection, claim.token, thread, [event.sequence for event in events])

        self._database.write(store, durable=False)

    def _embed(self, records: Sequence[RecordInput]) -> "NDArray[np.float32] | None":
        if self._embedder is None or not records:
            return None
        return checked_rows(self._embedder.embed_documents([embedded_text(record) for record in records]), len(records))

    def _give_back(self, claim: Claim, thread: int, member: tuple[ContextEvent, int], error: Exception) -> None:
        event, attempts = member
        self.last_error = describe(error)
        now = time.time()

        def store(connection: apsw.Connection) -> None:
            if attempts + 1 >= MAX_ATTEMPTS:
                outbox.quarantine(connection, claim.token, thread, event.sequence, error=describe(error), at=now)
            else:
                wait = BACKOFF * 2**attempts * (0.5 + random.random())  # noqa: S311 - jitter, not a secret
                outbox.postpone(connection, claim.token, thread, event.sequence, not_before=now + wait)

        self._database.write(store, durable=False)


class Done:
    """Answers whether a thread through a sequence, or the whole library, waits for nothing."""

    def __init__(self, database: Database, thread: int | None, sequence: int) -> None:
        self._database = database
        self._thread = thread
        self._sequence = sequence

    def __call__(self) -> bool:
        """Look at the outbox."""
        with self._database.read() as connection:
            return outbox.is_clear(connection, self._thread, self._sequence)


def is_searchable(event: ContextEvent) -> bool:
    """Tell whether an event has words to be found by."""
    return not event.redacted and bool(event.text.strip() or caption_of(event.content))


def record_of(event: ContextEvent) -> RecordInput:
    """Return the searchable record of an event."""
    return RecordInput(
        key=event.event_id,
        kind="event",
        text=event.text,
        caption=caption_of(event.content),
        role=event.role,
        speaker=event.speaker,
        session=session_of(event),
        sequence=event.sequence,
        occurred_at=event.occurred_at,
    )


def slot_of_event(connection: apsw.Connection, thread: int, event: ContextEvent) -> int | None:
    """Return the slot of an event's record, None while it is not indexed."""
    slot: int | None = connection.execute(
        "SELECT slot FROM record WHERE owner = ? AND key = ?", (thread, event.event_id)
    ).get
    return slot


def session_of(event: ContextEvent) -> str | None:
    """Return the sitting an event belongs to, if its metadata names one."""
    value = (event.metadata or {}).get("session")
    return value if isinstance(value, str) else None


def checked_rows(vectors: object, count: int) -> "NDArray[np.float32]":
    """Return what an embedder answered if it is a finite row per text; the index checks their length.

    Raises:
        InvalidInputError: It is not.
    """
    import numpy as np

    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or len(vectors) != count:
        found = getattr(vectors, "shape", type(vectors).__name__)
        raise InvalidInputError("embed_documents", f"answered {found} instead of {count} rows")
    if not np.isfinite(vectors).all():
        raise InvalidInputError("embed_documents", "answered numbers that are not finite")
    return vectors


def describe(error: BaseException) -> str:
    """Return an error's class and, for our own errors, its message; foreign messages may quote the text."""
    if isinstance(error, LibctxError):
        return f"{type(error).__name__}: {error}"
    return type(error).__name__
