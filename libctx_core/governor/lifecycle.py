"""The life of a turn: store, then build; commit; protect; wait."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import apsw

from libctx_core.errors import FreshnessTimeout, InvalidInputError
from libctx_core.errors.access import Operation
from libctx_core.governor.builder import Question
from libctx_core.governor.drafts import EventFields, EventOptions
from libctx_core.governor.envelope import GovernedPrompt
from libctx_core.governor.indexer import Done
from libctx_core.governor.session import Saying, ThreadSession
from libctx_core.governor.status import ThreadStatus, read_status
from libctx_core.models import Content, ContextEvent
from libctx_core.store import outbox


class Lifecycle(ThreadSession):
    """Storing events and building requests."""

    def prepare(
        self,
        user_message: Content,
        *,
        focus: str | None = None,
        system_prompt: str = "",
        tools: Sequence[Mapping[str, Any]] | None = None,
        strict_freshness: bool = False,
        timeout: float = 10.0,
        **fields: Unpack[EventFields],
    ) -> GovernedPrompt:
        """Store the user's turn, then build the bounded request that asks it.

        The event is durable before anything is built; if the build fails, it stays. With
        the id of an event that is stored already, the request is built again as of that
        event; its `answer` is the stored reply, if there is one.

        Args:
            user_message: Text or content blocks.
            focus: What to retrieve for; the user's words by default.
            system_prompt: Text at the head of the request.
            tools: Tool schemas that will be sent along; their tokens are counted.
            strict_freshness: Wait until everything stored is searchable.
            timeout: Seconds to wait for that.
            **fields: What else is known of the event; see `EventFields`.

        Raises:
            BlankContentError: There is nothing in the message.
            EventConflictError: The id is stored with other content; nothing was written.
            TurnTooLargeError: The turn does not fit the budget and may not be cut.
            FreshnessTimeout: Indexing did not get there in time.
            ContextAccessDenied: The scope does not permit it.
        """
        event = self._store([("user", user_message, EventOptions(**fields))], also_read=True)[0]
        self._begin_turn(event.event_id)
        if strict_freshness:
            self._wait_fresh(event.sequence, timeout)
        return self._build(
            Question(focus=focus, system_prompt=system_prompt, tools=tools, through=event.sequence, branch=event.branch)
        )

    def commit(self, content: Content, *, role: str = "assistant", **fields: Unpack[EventFields]) -> ContextEvent:
        """Store what the model, or a tool, returned.

        Args:
            content: Text or content blocks; never refused, repaired where it cannot be stored.
            role: ``assistant`` or ``tool``.
            **fields: What else is known of the event; see `EventFields`. ``reply_to`` is by
                default the user event this task prepared last.

        Raises:
            EventConflictError: The id is stored with other content; nothing was written.
            ContextAccessDenied: The scope does not permit it.
        """
        if fields.get("reply_to") is None and role == "assistant":
            fields["reply_to"] = self._current_turn()
        return self.record(role, content, **fields)

    def record(self, role: str, content: Content, **fields: Unpack[EventFields]) -> ContextEvent:
        """Store one event of any role.

        Args:
            role: ``system``, ``developer``, ``user``, ``assistant`` or ``tool``.
            content: Text or content blocks.
            **fields: What else is known of the event; see `EventFields`.

        Raises:
            UnknownRoleError: There is no such role.
            EventConflictError: The id is stored with other content; nothing was written.
            ContextAccessDenied: The scope does not permit it.
        """
        return self._store([(role, content, EventOptions(**fields))])[0]

    def record_many(self, events: Iterable[Mapping[str, Any]]) -> list[ContextEvent]:
        """Store many events in one transaction: all or none.

        Args:
            events: Mappings with ``role`` and ``content``, and any of `EventFields`.
        """
        items: list[Saying] = []
        for number, event in enumerate(events):
            fields = {name: value for name, value in event.items() if name not in ("role", "content")}
            try:
                items.append((event["role"], event["content"], EventOptions(**fields)))
            except (KeyError, TypeError) as error:
                raise InvalidInputError(f"events[{number}]", "needs role, content and known fields only") from error
        return self._store(items) if items else []

    def protect(
        self,
        content: Content,
        *,
        role: str = "system",
        **fields: Unpack[EventFields],
    ) -> ContextEvent:
        """Store a decision, constraint or plan that has priority in every request.

        Args:
            content: What it says.
            role: ``system`` by default: it stands at the head of the request.
            **fields: What else is known of the event; see `EventFields`. ``importance`` is 1 by
                default, ``label`` a name for it.
        """
        fields.setdefault("importance", 1.0)
        fields["protected"] = True
        return self.record(role, content, **fields)

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

        Raises:
            TurnTooLargeError: The running turn does not fit the budget and may not be cut.
        """
        if type(reserve_tokens) is not int or reserve_tokens < 0:
            raise InvalidInputError("reserve_tokens", "must be a whole number of tokens, 0 or more")
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

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until every event stored so far is searchable; False when time ran out."""
        with self._snapshot(Operation.READ) as (connection, owner):
            if owner is None:
                return True
            recorded = outbox.watermarks(connection, owner.id).recorded_through
        done = Done(self._runtime.database, owner.id, recorded)
        return done() if self._runtime.indexer is None else self._runtime.indexer.wait(done, timeout)

    def status(self) -> ThreadStatus:
        """Return watermarks, quarantined events and what the indexer last complained about."""
        with self._snapshot(Operation.READ) as (connection, owner):
            error = None if self._runtime.indexer is None else self._runtime.indexer.last_error
            return read_status(connection, self.key, None if owner is None else owner.id, error)

    def retry_failed(self, event_id: str) -> bool:
        """Return a quarantined event to the queue; False if it is not quarantined."""
        with self._snapshot(Operation.WRITE) as (connection, owner):
            event = self._event(connection, owner, event_id)

        def store(connection: apsw.Connection) -> bool:
            owner = self._find(connection)
            self._require(Operation.WRITE, owner)
            return owner is not None and outbox.retry(connection, owner.id, event.uid)

        found = self._runtime.database.write(store)
        self._wake()
        return found

    def _wait_fresh(self, sequence: int, timeout: float) -> None:
        with self._snapshot(Operation.READ) as (_connection, owner):
            thread = None if owner is None else owner.id
        indexer = self._runtime.indexer
        if indexer is not None and indexer.wait(Done(self._runtime.database, thread, sequence), timeout):
            return
        marks = self.status().watermarks
        raise FreshnessTimeout(marks.recorded_through, marks.indexed_through, timeout)
