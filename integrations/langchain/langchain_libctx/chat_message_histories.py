"""`LibraryChatMessageHistory`: a thread of the library as LangChain's message history."""

import inspect
import logging
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Self

from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import BaseMessage
from langchain_core.runnables.config import var_child_runnable_config

from langchain_libctx.messages import event_fields, message_from_event, to_langchain, usable_id
from langchain_libctx.opening import LibrarySource, open_library
from langchain_libctx.sessions import Governors, SessionId
from libctx_core.access.metadata import ResourceMetadata
from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.errors import EventConflictError, EventNotFoundError, StoreError, ThreadNotFoundError
from libctx_core.governor import ContextGovernor
from libctx_core.library import LibraryView
from libctx_core.models import ContextEvent

logger = logging.getLogger(__name__)


class LibraryChatMessageHistory(BaseChatMessageHistory):
    """A chat history whose messages are durable events of a library.

    Adding is one transaction and never adds a message twice: a message whose id is
    stored already changes nothing, or amends the stored one if it says something else.
    Reading returns the whole log, or, with a `token_budget`, the bounded view a governor
    would send. `RunnableWithMessageHistory` gets the right messages to store whoever else
    writes meanwhile and however the view moves; `factory` returns a function for it.

    Args:
        library: An open library or view, or a path that this object then owns.
        session_id: The thread, or a callable that names it per call.
        collection: Its namespace; the library's by default.
        owner: The user it belongs to.
        scope: Held for every call.
        resource: Access metadata for a thread that is created under a scope.
        token_budget: Bounds what `messages` returns; None returns everything.
        reserve_tokens: Taken off the budget for what the rest of the prompt needs.
        **options: Further arguments of `open_context_governor`.
    """

    def __init__(
        self,
        library: LibrarySource,
        session_id: SessionId,
        *,
        collection: str | None = None,
        owner: str | None = None,
        scope: Scope | None = None,
        resource: ResourceMetadata | Callable[[str], ResourceMetadata] | None = None,
        token_budget: int | None = None,
        reserve_tokens: int = 0,
        **options: Any,
    ) -> None:
        view, self._owned = open_library(library, scope)
        self._governors = Governors(
            view,
            session_id,
            resource=resource,
            collection=collection,
            owner=owner,
            token_budget=token_budget,
            **options,
        )
        self._bounded = token_budget is not None
        self._reserve = reserve_tokens
        self._unsaved: list[tuple[ContextGovernor, list[dict[str, Any]]]] = []
        self._lock = threading.Lock()

    @classmethod
    def factory(cls, library: LibraryView, **options: Any) -> "Callable[[str], LibraryChatMessageHistory]":
        """Return a ``get_session_history`` for `RunnableWithMessageHistory`.

        Args:
            library: An open library or view.
            **options: Arguments of this class but `session_id`.
        """

        def get_session_history(session_id: str) -> LibraryChatMessageHistory:
            return cls(library, session_id, **options)

        return get_session_history

    @property
    def governor(self) -> ContextGovernor:
        """The governor of the session that this call belongs to."""
        return self._governors.current()

    # -- reading --------------------------------------------------------------

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, oldest first; a fresh list of fresh messages.

        Raises:
            StoreError: Messages that an earlier call could not store still cannot be stored.
        """
        stripped = _stripped_by(inspect.currentframe())
        return self._read(self.governor) if stripped is None else self._stored_part(self.governor, stripped)

    def _inside_runnable(self) -> bool:
        """Tell whether `RunnableWithMessageHistory` is at work, whose listeners swallow errors."""
        config = var_child_runnable_config.get()
        return config is not None and config.get("configurable", {}).get("message_history") is self

    def _read(self, governor: ContextGovernor) -> list[BaseMessage]:
        self._retry_unsaved()
        if self._bounded:
            return to_langchain(governor.build_prompt(upcoming=True, reserve_tokens=self._reserve))
        return [message_from_event(event) for event in governor.history() if not event.redacted]

    async def aget_messages(self) -> list[BaseMessage]:
        """See `messages`; one thread hop."""
        stripped = _stripped_by(inspect.currentframe())
        if stripped is None:
            return await run_sync(self._read, self.governor)
        return await run_sync(self._stored_part, self.governor, stripped)

    def _stored_part(self, governor: ContextGovernor, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        """Return the leading messages of a finished call that came from here, not from its input."""
        for place in range(len(messages), 0, -1):
            name = usable_id(messages[place - 1].id)
            if name is not None and _is_stored(governor, name):
                return list(messages[:place])
        return []

    # -- writing --------------------------------------------------------------

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages in one transaction; those stored already are left alone or amended.

        Raises:
            StoreError: They could not be stored. Inside `RunnableWithMessageHistory`, whose
                listeners swallow this error, they are kept and stored before the next read
                or write, which raises if that fails again.
            InvalidInputError: One of them cannot be stored at all.
        """
        governor = self.governor
        fields = [event_fields(message) for message in messages]
        self._retry_unsaved()
        try:
            store_messages(governor, fields)
        except StoreError:
            if self._inside_runnable():
                with self._lock:
                    self._unsaved.append((governor, fields))
                logger.exception("messages of a chat history could not be stored; they are kept for the next call")
            raise

    def _retry_unsaved(self) -> None:
        with self._lock:
            waiting, self._unsaved = self._unsaved, []
        for done, (governor, fields) in enumerate(waiting):
            try:
                store_messages(governor, fields)
            except StoreError:
                with self._lock:
                    self._unsaved = [*waiting[done:], *self._unsaved]
                raise

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """See `add_messages`; one thread hop."""
        await run_sync(self.add_messages, messages)

    def add_message(self, message: BaseMessage) -> None:
        """Store one message."""
        self.add_messages([message])

    def clear(self) -> None:
        """Delete the thread and everything derived from it; nothing of it is found afterwards."""
        with self._lock:
            self._unsaved.clear()
        try:
            self.governor.delete()
        except ThreadNotFoundError:
            return

    async def aclear(self) -> None:
        """See `clear`; one thread hop."""
        await run_sync(self.clear)

    def close(self) -> None:
        """Close the library if this object opened it."""
        if self._owned is not None:
            self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # a copy of a chain shares its history; the file cannot be copied by copying the object
        return self


def _stripped_by(frame: FrameType | None) -> Sequence[BaseMessage] | None:
    """Return the messages of a finished call, if `RunnableWithMessageHistory` is about to strip its history.

    That class reads the history a second time after the model answered, only to count how
    many messages to cut from the front. By then the history may have grown or paged, and
    the count would cut the user's turn off; so it gets exactly what this call began with.
    """
    asking = None if frame is None else frame.f_back
    if asking is None or asking.f_code.co_name not in ("_exit_history", "_aexit_history"):
        return None
    messages = asking.f_locals.get("input_messages")
    return messages if isinstance(messages, list) else None


def _is_stored(governor: ContextGovernor, event_id: str) -> bool:
    try:
        governor.open_event(event_id)
    except EventNotFoundError:
        return False
    return True


def store_messages(governor: ContextGovernor, fields: Sequence[dict[str, Any]]) -> list[ContextEvent]:
    """Record messages by id in one transaction; a stored one that says something else is amended."""
    if not fields:
        return []
    try:
        return governor.record_many(fields)
    except EventConflictError:
        return [_record_or_amend(governor, field) for field in fields]


def _record_or_amend(governor: ContextGovernor, field: dict[str, Any]) -> ContextEvent:
    try:
        return governor.record_many([field])[0]
    except EventConflictError as conflict:
        if conflict.stored_role != field["role"]:
            raise
        return governor.amend(field["event_id"], field["content"], native=field.get("native"))
