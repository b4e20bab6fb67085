"""The governor of one thread: store, then build; commit; bring back; change; remove."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import apsw

from libctx_core.access.authority import Authority
from libctx_core.access.metadata import ResourceMetadata
from libctx_core.access.policy import EnforcementMode
from libctx_core.errors import (
    EventNotFoundError,
    FreshnessTimeout,
    InvalidInputError,
    StoreReadOnlyError,
    ThreadNotFoundError,
)
from libctx_core.errors.access import Operation
from libctx_core.governor import drafts, retrieval
from libctx_core.governor.builder import Builder, Question
from libctx_core.governor.drafts import EventOptions, Moment, draft_event
from libctx_core.governor.envelope import GovernedPrompt
from libctx_core.governor.indexer import Done
from libctx_core.governor.protection import apply_policies
from libctx_core.governor.redaction import RedactionReceipt, redact_event
from libctx_core.governor.retrieval import Reading, enrolment
from libctx_core.governor.runtime import Runtime
from libctx_core.governor.status import ThreadStatus, read_status
from libctx_core.models import Content, ContextEvent, Hit, ThreadKey, check_identifier, normalise_content
from libctx_core.store import events as log
from libctx_core.store import outbox
from libctx_core.store.owners import THREAD, OwnerRow, create_owner, find_owner, owner_by_id
from libctx_core.tokens import TokenCounter

_PAGE = 512

_prepared: ContextVar[tuple[int, ThreadKey, str] | None] = ContextVar("libctx_prepared", default=None)
"""The user event the running task prepared last, so that concurrent turns find their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a governor is opened with besides its thread.

    Attributes:
        user: The user the thread belongs to.
        resource: Access metadata the thread is enrolled with when it is created.
        policies: Plugins that may propose protections.
        window: The model's input window, if known.
    """

    user: str | None = None
    resource: ResourceMetadata | None = None
    policies: tuple[str, ...] = ()
    window: int | None = None


class Lifecycle:
    """The synchronous operations of a governor; `ContextGovernor` adds their async twins."""

    def __init__(self, runtime: Runtime, authority: Authority, builder: Builder, settings: Settings) -> None:
        self._runtime = runtime
        self._authority = authority
        self._builder = builder
        self._settings = settings
        self._owner_id: int | None = None
        self._last_turn: str | None = None

    # -- what it is -----------------------------------------------------------

    @property
    def key(self) -> ThreadKey:
        """The thread."""
        return self._builder.reading.key

    @property
    def counter(self) -> TokenCounter:
        """Counts the tokens of its requests."""
        return self._builder.counter

    @property
    def token_budget(self) -> int:
        """Tokens a request may hold."""
        return self._builder.budgets.total

    # -- lifecycle ------------------------------------------------------------

    def prepare(
        self,
        user_message: Content,
        *,
        event_id: str | None = None,
        focus: str | None = None,
        system_prompt: str = "",
        tools: Sequence[Mapping[str, Any]] | None = None,
        strict_freshness: bool = False,
        timeout: float = 10.0,
        speaker: str | None = None,
        occurred_at: Moment | None = None,
        turn_id: str | None = None,
        parent_event_id: str | None = None,
        attachments: Iterable[Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
        importance: float | None = None,
        protected: bool | None = None,
        native: object = None,
    ) -> GovernedPrompt:
        """Store the user's turn, then build the bounded request that asks it.

        The event is durable before anything is built; if the build fails, it stays. With
        the id of an event that is stored already, the request is built again as of that
        event; its `answer` is the stored reply, if there is one.

        Args:
            user_message: Text or content blocks.
            event_id: The caller's id, so that a repeated call stores nothing twice.
            focus: What to retrieve for; the user's words by default.
            system_prompt: Text at the head of the request.
            tools: Tool schemas that will be sent along; their tokens are counted.
            strict_freshness: Wait until everything stored is searchable.
            timeout: Seconds to wait for that.
            speaker: Name of who speaks.
            occurred_at: When it was said; seconds since the epoch or a datetime.
            turn_id: The turn it belongs to.
            parent_event_id: The event it follows, where the thread forks.
            attachments: Further content blocks.
            metadata: The caller's JSON object.
            importance: 0 to 1; ranks protected events.
            protected: Whether it has priority in later requests.
            native: The framework's own form, returned verbatim.

        Raises:
            BlankContentError: There is nothing in the message.
            EventConflictError: The id is stored with other content.
            TurnTooLargeError: The turn does not fit the budget and may not be cut.
            FreshnessTimeout: Indexing did not get there in time.
            ContextAccessDenied: The scope does not permit it.
        """
        options = EventOptions(
            event_id=event_id, speaker=speaker, occurred_at=occurred_at, turn_id=turn_id,
            parent_event_id=parent_event_id, attachments=tuple(attachments), metadata=metadata,
            importance=importance, protected=protected, native=native,
        )  # fmt: skip
        event = self._store([("user", user_message, options)], also_read=True)[0]
        self._begin_turn(event.event_id)
        if strict_freshness:
            self._wait_fresh(event.sequence, timeout)
        return self._build(
            Question(
                focus=focus,
                system_prompt=system_prompt,
                tools=tools,
                through=event.sequence,
                branch=event.branch,
            )
        )

    def commit(
        self,
        content: Content,
        *,
        role: str = "assistant",
        event_id: str | None = None,
        reply_to: str | None = None,
        speaker: str | None = None,
        occurred_at: Moment | None = None,
        turn_id: str | None = None,
        parent_event_id: str | None = None,
        attachments: Iterable[Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
        importance: float | None = None,
        protected: bool | None = None,
        native: object = None,
    ) -> ContextEvent:
        """Store what the model, or a tool, returned.

        Args:
            content: Text or content blocks; never refused, repaired where it cannot be stored.
            role: ``assistant`` or ``tool``.
            event_id: The caller's id.
            reply_to: The user event it answers; by default the one this task prepared last.
            speaker: Name of who speaks.
            occurred_at: When it was said.
            turn_id: The turn it belongs to.
            parent_event_id: The event it follows, where the thread forks.
            attachments: Further content blocks.
            metadata: The caller's JSON object.
            importance: 0 to 1.
            protected: Whether it has priority in later requests.
            native: The framework's own form, returned verbatim.

        Raises:
            EventConflictError: The id is stored with other content.
            ContextAccessDenied: The scope does not permit it.
        """
        if reply_to is None and role == "assistant":
            reply_to = self._current_turn()
        options = EventOptions(
            event_id=event_id, speaker=speaker, occurred_at=occurred_at, turn_id=turn_id, reply_to=reply_to,
            parent_event_id=parent_event_id, attachments=tuple(attachments), metadata=metadata,
            importance=importance, protected=protected, native=native,
        )  # fmt: skip
        return self._store([(role, content, options)])[0]

    def record(
        self,
        role: str,
        content: Content,
        *,
        event_id: str | None = None,
        speaker: str | None = None,
        occurred_at: Moment | None = None,
        turn_id: str | None = None,
        reply_to: str | None = None,
        parent_event_id: str | None = None,
        attachments: Iterable[Mapping[str, Any]] = (),
        metadata: Mapping[str, Any] | None = None,
        importance: float | None = None,
        protected: bool | None = None,
        native: object = None,
    ) -> ContextEvent:
        """Store one event of any role; arguments as in `prepare` and `commit`."""
        options = EventOptions(
            event_id=event_id, speaker=speaker, occurred_at=occurred_at, turn_id=turn_id, reply_to=reply_to,
            parent_event_id=parent_event_id, attachments=tuple(attachments), metadata=metadata,
            importance=importance, protected=protected, native=native,
        )  # fmt: skip
        return self._store([(role, content, options)])[0]

    def record_many(self, events: Iterable[Mapping[str, Any]]) -> list[ContextEvent]:
        """Store many events in one transaction: all or none.

        Args:
            events: Mappings with ``role`` and ``content``, and any argument of `record`.
        """
        items: list[tuple[str, Content, EventOptions]] = []
        for number, event in enumerate(events):
            rest = {name: value for name, value in event.items() if name not in ("role", "content")}
            if "attachments" in rest:
                rest["attachments"] = tuple(rest["attachments"])
            try:
                items.append((event["role"], event["content"], EventOptions(**rest)))
            except (KeyError, TypeError) as error:
                raise InvalidInputError(
                    f"events[{number}]", "needs role and content, and arguments of record()"
                ) from error
        return self._store(items) if items else []

    def protect(
        self,
        content: Content,
        *,
        label: str | None = None,
        role: str = "system",
        event_id: str | None = None,
        importance: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
    ) -> ContextEvent:
        """Store a decision, constraint or plan that has priority in every request.

        Args:
            content: What it says.
            label: A name for it.
            role: ``system`` by default: it stands at the head of the request.
            event_id: The caller's id.
            importance: 0 to 1; ranks it against other protected events.
            metadata: The caller's JSON object.
        """
        options = EventOptions(event_id=event_id, importance=importance, metadata=metadata, protected=True, label=label)
        return self._store([(role, content, options)])[0]

    def protect_event(self, event_id: str) -> ContextEvent:
        """Give a stored event priority in every request."""
        return self._set_protected(event_id, value=True)

    def release(self, event_id: str) -> bool:
        """Remove an event's protection; it stays stored and searchable. False if it had none."""
        with self._snapshot(Operation.WRITE) as (connection, owner):
            event = self._event(connection, owner, event_id)
        if not event.protected:
            return False
        self._set_protected(event_id, value=False)
        return True

    def build_prompt(
        self,
        *,
        focus: str | None = None,
        system_prompt: str = "",
        tools: Sequence[Mapping[str, Any]] | None = None,
        at: str | None = None,
        reserve_tokens: int = 0,
        upcoming: bool = False,
        hide: Iterable[str] = (),
    ) -> GovernedPrompt:
        """Build a request from what is stored; stores nothing.

        Args:
            focus: What to retrieve for; the words of the running turn by default.
            system_prompt: Text at the head of the request.
            tools: Tool schemas that will be sent along.
            at: Build as of this event, on its branch.
            reserve_tokens: Tokens of messages the caller adds itself.
            upcoming: The caller adds the user's turn itself, so that everything stored is history.
            hide: Ids of events to leave out.
        """
        through = branch = None
        if at is not None:
            with self._snapshot(Operation.READ) as (connection, owner):
                event = self._event(connection, owner, at)
            through, branch = event.sequence, event.branch
        return self._build(
            Question(
                focus=focus,
                system_prompt=system_prompt,
                tools=tools,
                through=through,
                branch=branch,
                reserve=reserve_tokens,
                upcoming=upcoming,
                hide=frozenset(hide),
            )
        )

    # -- waiting and looking --------------------------------------------------

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until every event stored so far is searchable; False when time ran out."""
        with self._snapshot(Operation.READ) as (connection, owner):
            if owner is None:
                return True
            recorded = outbox.watermarks(connection, owner.id).recorded_through
        if self._runtime.indexer is None:
            return Done(self._runtime.database, owner.id, recorded)()
        return self._runtime.indexer.wait(Done(self._runtime.database, owner.id, recorded), timeout)

    def status(self) -> ThreadStatus:
        """Return watermarks, quarantined events and what the indexer last complained about."""
        with self._snapshot(Operation.READ) as (connection, owner):
            error = None if self._runtime.indexer is None else self._runtime.indexer.last_error
            return read_status(connection, self.key, None if owner is None else owner.id, error)

    def retry_failed(self, event_id: str) -> bool:
        """Return a quarantined event to the queue; False if it is not quarantined."""
        with self._snapshot(Operation.WRITE) as (connection, owner):
            event = self._event(connection, owner, event_id)
            assert owner is not None, "an event has a thread"
        found = self._runtime.database.write(lambda connection: outbox.retry(connection, owner.id, event.uid))
        self._wake()
        return found

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
            owners = retrieval.readable_owners(connection, self._authority, reading)
            found = retrieval.search(connection, self._runtime, query, owners, k=k, explain=explain)
            return retrieval.hits_of(connection, found)

    def open_event(self, event_id: str) -> ContextEvent:
        """Return a stored event whole, by its id or by the recall id a request shows.

        Raises:
            EventNotFoundError: There is none that may be read.
        """
        with self._snapshot(Operation.READ) as (connection, owner):
            if owner is not None:
                event = log.find(connection, owner.id, event_id)
                if event is not None:
                    return event
            return self._by_recall_id(connection, event_id)

    def _by_recall_id(self, connection: apsw.Connection, recall_id: str) -> ContextEvent:
        number = recall_id.removeprefix("e")
        if number != recall_id and number.isascii() and number.isdigit() and len(number) < 19:
            found = log.by_uid(connection, int(number))
            if found is not None and found[0] in retrieval.readable_owners(
                connection, self._authority, self._builder.reading
            ):
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
            ceiling = before
            if isinstance(before, str):
                ceiling = self._event(connection, owner, before).sequence
            assert not isinstance(ceiling, str)
            if limit is not None:
                page = list(log.history(connection, owner.id, before=ceiling, limit=limit))
                owner_id, last = owner.id, 0
            else:
                page, owner_id, last = [], owner.id, 2**62 if ceiling is None else ceiling - 1
        yield from page
        at = 0
        while limit is None:
            with self._snapshot(Operation.READ) as (connection, _owner):
                page = [event for event in log.after(connection, owner_id, at, _PAGE) if event.sequence <= last]
            yield from page
            if len(page) < _PAGE:
                return
            at = page[-1].sequence

    # -- changing and removing ------------------------------------------------

    def amend(self, event_id: str, content: Content, *, native: object = None) -> ContextEvent:
        """Replace what an event says; what it said stays as a revision.

        Raises:
            EventNotFoundError: There is no such event, or it was redacted.
        """
        with self._snapshot(Operation.WRITE) as (connection, owner):
            event = self._event(connection, owner, event_id)
            assert owner is not None, "an event has a thread"
        if event.redacted:
            raise EventNotFoundError(event_id)
        normal = normalise_content(event.role, content)
        tokens = drafts.count_content(event.role, normal, event.speaker, self.counter)
        own_form = drafts.native_json(native)

        def store(connection: apsw.Connection) -> ContextEvent:
            current = self._event(connection, owner, event_id)
            log.amend(
                connection, owner.id, current, content=normal.stored, is_blocks=not isinstance(normal.value, str),
                tokens=tokens, counter=self.counter.name, native=own_form, at=self._runtime.clock(),
            )  # fmt: skip
            return self._event(connection, owner, event_id)

        amended = self._runtime.database.write(store)
        self._wake()
        return amended

    def revisions(self, event_id: str) -> list[str | list[dict[str, Any]]]:
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
            assert owner is not None, "an event has a thread"
        receipt = redact_event(self._runtime, owner, event, cascade=cascade)
        self._runtime.observe("libctx.event.redacted", {"gen_ai.conversation.id": self.key.session_id})
        return receipt

    def export(self) -> Iterator[dict[str, Any]]:
        """Yield the thread as JSON objects, one per event, losslessly."""
        from libctx_core.governor.transfer import event_record

        for event in self.history():
            with self._snapshot(Operation.READ) as (connection, _owner):
                older = log.revisions(connection, event.uid) if event.revision else []
            yield event_record(self.key, event, older)

    def delete(self) -> None:
        """Delete the thread and everything derived from it.

        Raises:
            ThreadNotFoundError: There is no such thread.
        """
        from libctx_core.governor.redaction import delete_thread

        with self._snapshot(Operation.DELETE) as (_connection, owner):
            if owner is None:
                raise ThreadNotFoundError(self.key.collection, self.key.session_id)
        delete_thread(self._runtime, owner)
        self._owner_id = None

    # -- internals ------------------------------------------------------------

    def _build(self, question: Question) -> GovernedPrompt:
        with self._snapshot(Operation.READ) as (connection, owner):
            prompt = self._builder.build(connection, None if owner is None else owner.id, question)
        self._runtime.observe(
            "libctx.prompt.built",
            {
                "gen_ai.conversation.id": self.key.session_id,
                "gen_ai.usage.input_tokens": prompt.token_count,
                "libctx.token_budget": prompt.token_budget,
                "libctx.paged_out": prompt.paged_out_events,
                "libctx.desk": len(prompt.desk),
                "libctx.omitted_protected": len(prompt.omitted_protected),
            },
        )
        return prompt

    def _begin_turn(self, event_id: str) -> None:
        _prepared.set((id(self._runtime), self.key, event_id))
        self._last_turn = event_id

    def _current_turn(self) -> str | None:
        """Return the turn this task prepared last, else the one this governor prepared last."""
        prepared = _prepared.get()
        if prepared is not None and prepared[:2] == (id(self._runtime), self.key):
            return prepared[2]
        return self._last_turn

    def _store(
        self, items: Sequence[tuple[str, Content, EventOptions]], *, also_read: bool = False
    ) -> list[ContextEvent]:
        now = self._runtime.clock()
        ready = [
            draft_event(self.key, role, content, options, plugins=self._runtime.plugins, counter=self.counter, now=now)
            for role, content, options in items
        ]
        if self._runtime.database.read_only:
            raise StoreReadOnlyError(self._runtime.database.path, "is open read-only")

        def store(connection: apsw.Connection) -> list[ContextEvent]:
            owner = self._owner_for_writing(connection, also_read=also_read)
            return log.append(connection, owner.id, ready)

        stored = self._runtime.database.write(store)
        self._wake()
        if self._settings.policies:
            apply_policies(self, self._runtime, self._settings.policies, stored)
        self._runtime.observe(
            "libctx.event.recorded",
            {"gen_ai.conversation.id": self.key.session_id, "libctx.events": len(stored)},
        )
        return stored

    def _owner_for_writing(self, connection: apsw.Connection, *, also_read: bool) -> OwnerRow:
        """Return the thread's owner row, checked; create and enrol it with its first event."""
        owner = self._find(connection)
        if owner is not None:
            self._require(Operation.WRITE, owner)
            if also_read:
                self._require(Operation.READ, owner)
            return owner
        scoped = self._authority.scope is not None or self._settings.resource is not None
        proposed = self._proposed() if scoped else None
        if proposed is None:
            self._authority.require_write(THREAD, self._name, None)
        else:
            self._authority.require_create(THREAD, self._name, proposed)
        owner = create_owner(
            connection, THREAD, self.key.collection, self.key.session_id, user=self._settings.user,
            resource_id=None if proposed is None else proposed.resource_id,
            boundary_id=None if proposed is None else proposed.boundary_id,
        )  # fmt: skip
        if also_read:
            self._require(Operation.READ, owner)
        return owner

    def _find(self, connection: apsw.Connection) -> OwnerRow | None:
        if self._owner_id is not None:
            row = owner_by_id(connection, self._owner_id)
            if row is not None:
                return row
        row = find_owner(connection, THREAD, self.key.collection, self.key.session_id)
        # an id learnt inside a transaction that is rolled back is harmless: it is looked up again
        self._owner_id = None if row is None else row.id
        return row

    def _require(self, operation: Operation, owner: OwnerRow | None) -> None:
        """Check an operation on the thread; one that does not exist is judged as it would be enrolled.

        So a thread that may not be read and one that is not there answer alike.
        """
        scope = self._authority.scope
        metadata: ResourceMetadata | None
        if owner is not None:
            metadata = enrolment(owner)
        elif scope is not None and scope.enforcement_mode is EnforcementMode.REQUIRE_ENROLLMENT:
            metadata = self._proposed()
        else:
            metadata = None
        self._authority.require(operation, THREAD, self._name, metadata)

    @property
    def _name(self) -> str:
        return f"{self.key.collection}/{self.key.session_id}"

    def _proposed(self) -> ResourceMetadata:
        return self._settings.resource or ResourceMetadata(THREAD, f"thread:{self._name}", self.key.collection)

    def _snapshot(self, operation: Operation) -> "_Snapshot":
        return _Snapshot(self, operation)

    def _event(self, connection: apsw.Connection, owner: OwnerRow | None, event_id: str) -> ContextEvent:
        check_identifier("event_id", event_id)
        event = None if owner is None else log.find(connection, owner.id, event_id)
        if event is None:
            raise EventNotFoundError(event_id)
        return event

    def _set_protected(self, event_id: str, *, value: bool) -> ContextEvent:
        with self._snapshot(Operation.WRITE):
            pass

        def store(connection: apsw.Connection) -> ContextEvent:
            owner = self._find(connection)
            event = self._event(connection, owner, event_id)
            assert owner is not None, "an event has a thread"
            if event.redacted:
                raise EventNotFoundError(event_id)
            return log.set_protected(connection, owner.id, event, value=value)

        return self._runtime.database.write(store)

    def _wait_fresh(self, sequence: int, timeout: float) -> None:
        with self._snapshot(Operation.READ) as (connection, owner):
            assert owner is not None, "an event was stored"
        done = Done(self._runtime.database, owner.id, sequence)
        if self._runtime.indexer is None or not self._runtime.indexer.wait(done, timeout):
            with self._snapshot(Operation.READ) as (connection, _owner):
                marks = outbox.watermarks(connection, owner.id)
            raise FreshnessTimeout(marks.recorded_through, marks.indexed_through, timeout)

    def _wake(self) -> None:
        if self._runtime.indexer is not None:
            self._runtime.indexer.wake()


class _Snapshot:
    """A reader on one snapshot, lent only if the scope permits the operation on the thread."""

    def __init__(self, lifecycle: Lifecycle, operation: Operation) -> None:
        self._lifecycle = lifecycle
        self._operation = operation
        self._reading = lifecycle._runtime.database.read()  # noqa: SLF001 - its own class

    def __enter__(self) -> tuple[apsw.Connection, OwnerRow | None]:
        connection = self._reading.__enter__()
        try:
            owner = self._lifecycle._find(connection)  # noqa: SLF001
            self._lifecycle._require(self._operation, owner)  # noqa: SLF001
        except BaseException as error:
            self._reading.__exit__(type(error), error, error.__traceback__)
            raise
        return connection, owner

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._reading.__exit__(kind, error, trace)
