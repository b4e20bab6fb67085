"""What every operation of a governor stands on: checks first, one snapshot, one write path."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias

import apsw

from libctx_core.access.authority import Authority
from libctx_core.access.metadata import ResourceMetadata, metadata_for
from libctx_core.access.policy import EnforcementMode
from libctx_core.errors import EventNotFoundError, StoreReadOnlyError
from libctx_core.errors.access import Operation
from libctx_core.governor.builder import Builder, Question
from libctx_core.governor.drafts import EventOptions, draft_event
from libctx_core.governor.envelope import GovernedPrompt
from libctx_core.governor.protection import apply_policies
from libctx_core.governor.runtime import Runtime
from libctx_core.models import Content, ContextEvent, ThreadKey, check_identifier
from libctx_core.store import events as log
from libctx_core.store.access import metadata_state
from libctx_core.store.owners import THREAD, OwnerRow, create_owner, find_owner, owner_by_id
from libctx_core.tokens import TokenCounter

Saying: TypeAlias = tuple[str, Content, EventOptions]
"""A role, what it says, and what else is known of it."""

_prepared: ContextVar[tuple[int, ThreadKey, str] | None] = ContextVar("libctx_prepared", default=None)
"""The user event the running task prepared last, so that concurrent turns find their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a governor is opened with besides its thread.

    Attributes:
        user: The user the thread belongs to.
        resource: Access metadata the thread is enrolled with when it is created.
        policies: Plugins that may propose protections.
    """

    user: str | None = None
    resource: ResourceMetadata | None = None
    policies: tuple[str, ...] = ()


class ThreadSession:
    """One thread under one authority."""

    def __init__(self, runtime: Runtime, authority: Authority, builder: Builder, settings: Settings) -> None:
        self._runtime = runtime
        self._authority = authority
        self._builder = builder
        self._settings = settings
        self._owner_id: int | None = None
        self._last_turn: str | None = None

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key.collection!r}, {self.key.session_id!r}, {self.token_budget} tokens)"

    # -- turns ----------------------------------------------------------------

    def _begin_turn(self, event_id: str) -> None:
        _prepared.set((id(self._runtime), self.key, event_id))
        self._last_turn = event_id

    def _current_turn(self) -> str | None:
        """Return the turn this task prepared last, else the one this governor prepared last."""
        prepared = _prepared.get()
        if prepared is not None and prepared[:2] == (id(self._runtime), self.key):
            return prepared[2]
        return self._last_turn

    # -- reading --------------------------------------------------------------

    @contextmanager
    def _snapshot(self, operation: Operation) -> Iterator[tuple[apsw.Connection, OwnerRow | None]]:
        """Lend a reader on one snapshot, if the scope permits the operation on the thread."""
        with self._runtime.database.read() as connection:
            owner = self._find(connection)
            self._require(operation, owner)
            yield connection, owner

    def _find(self, connection: apsw.Connection) -> OwnerRow | None:
        if self._owner_id is not None:
            row = owner_by_id(connection, self._owner_id)
            if row is not None:
                return row
        row = find_owner(connection, THREAD, self.key.collection, self.key.session_id)
        # an id learnt inside a transaction that is rolled back is harmless: it is looked up again
        self._owner_id = None if row is None else row.id
        return row

    def _event(self, connection: apsw.Connection, owner: OwnerRow | None, event_id: str) -> ContextEvent:
        check_identifier("event_id", event_id)
        event = None if owner is None else log.find(connection, owner.id, event_id)
        if event is None:
            raise EventNotFoundError(event_id)
        return event

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

    # -- deciding -------------------------------------------------------------

    def _require(self, operation: Operation, owner: OwnerRow | None) -> None:
        """Check an operation on the thread; one that does not exist is judged as it would be enrolled.

        So a thread that may not be read and one that is not there answer alike.
        """
        scope = self._authority.scope
        metadata = metadata_state(owner)
        if owner is None and scope is not None and scope.enforcement_mode is EnforcementMode.REQUIRE_ENROLLMENT:
            metadata = self._proposed()
        self._authority.require(operation, THREAD, self._name, metadata)

    @property
    def _name(self) -> str:
        return f"{self.key.collection}/{self.key.session_id}"

    def _proposed(self) -> ResourceMetadata:
        return self._settings.resource or metadata_for(THREAD, self.key.collection, self.key.session_id)

    # -- writing --------------------------------------------------------------

    def _store(self, items: Sequence[Saying], *, also_read: bool = False) -> list[ContextEvent]:
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
            "libctx.event.recorded", {"gen_ai.conversation.id": self.key.session_id, "libctx.events": len(stored)}
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
            connection,
            THREAD,
            self.key.collection,
            self.key.session_id,
            user=self._settings.user,
            resource_id=None if proposed is None else proposed.resource_id,
            boundary_id=None if proposed is None else proposed.boundary_id,
        )
        if also_read:
            self._require(Operation.READ, owner)
        return owner

    def protect_event(self, event_id: str) -> ContextEvent:
        """Give a stored event priority in every request.

        Raises:
            EventNotFoundError: There is none, or it was redacted.
        """
        return self._set_protected(event_id, value=True)

    def _set_protected(self, event_id: str, *, value: bool) -> ContextEvent:
        def store(connection: apsw.Connection) -> ContextEvent:
            owner = self._find(connection)
            self._require(Operation.WRITE, owner)
            event = self._event(connection, owner, event_id)
            if owner is None or event.redacted:
                raise EventNotFoundError(event_id)
            return log.set_protected(connection, owner.id, event, value=value)

        return self._runtime.database.write(store)

    def _wake(self) -> None:
        if self._runtime.indexer is not None:
            self._runtime.indexer.wake()
