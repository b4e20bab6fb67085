"""A conversation that can be replaced as a whole: a session name and the thread it stands for."""

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import apsw
from llama_index.core.base.llms.types import ChatMessage

from libctx_core import ContextEvent, ContextGovernor, LibraryView
from libctx_core.access import Operation
from libctx_core.errors import ThreadNotFoundError
from libctx_core.models import new_id
from libctx_core.store.access import metadata_state
from libctx_core.store.owners import THREAD, find_owner
from llama_index_libctx.kvstore import KEY_VALUES, KeyValueView
from llama_index_libctx.messages import content_of, native_of, restore, role_of

_POINTERS: Final = "llama_index/sessions"
"""Collection of the key-value pairs that say which thread a session stands for."""

_REPLACEMENT: Final = re.compile(r"~s_[0-9a-f]{32}$")
"""Ends the name of a thread that took a session over."""


def event_fields(message: ChatMessage, **further: Any) -> dict[str, Any]:
    """Return a message as `ContextGovernor.record_many` takes it."""
    name = message.additional_kwargs.get("name")
    role = role_of(message)
    speaker = name if isinstance(name, str) and name and role in ("user", "assistant") else None
    return {
        "role": role,
        "content": content_of(message),
        "native": native_of(message),
        "speaker": speaker,
        **further,
    }


def message_of(event: ContextEvent) -> ChatMessage:
    """Return a new message equal to the one an event stores."""
    return restore(event.role, event.content, event.native)


class Session:
    """The thread a session name stands for at the moment.

    A session is a thread of its own name until its messages are replaced; then it stands
    for a new thread, and the old one remains as it was, or is deleted. The name points to
    the new thread only once that is stored, so nobody sees half a replacement.

    Args:
        library: The library, under its scope.
        session_id: Name of the session.
        collection: Its namespace; the library's by default.
        options: Further arguments of `LibraryView.open_context_governor`.
    """

    def __init__(self, library: LibraryView, session_id: str, *, collection: str | None = None, **options: Any) -> None:
        self._library = library
        self._options = options
        self._lock = threading.Lock()
        self._governor: ContextGovernor | None = None
        self.session_id = session_id
        self.collection = library.namespace if collection is None else collection
        self._library.database.ensure(KEY_VALUES)
        self._open(session_id)

    @property
    def governor(self) -> ContextGovernor:
        """The governor of the thread the session stands for now."""
        with self._library.database.read() as connection:
            thread = self._thread(connection)
        return self._open(thread)

    def _open(self, thread: str) -> ContextGovernor:
        with self._lock:
            if self._governor is None or self._governor.key.session_id != thread:
                self._governor = self._library.open_context_governor(
                    thread, collection=self.collection, **self._options
                )
            return self._governor

    def _thread(self, connection: apsw.Connection) -> str:
        pointer = KeyValueView(connection).get(self._pointer_key, _POINTERS)
        return self.session_id if pointer is None else str(pointer["thread"])

    @property
    def _pointer_key(self) -> str:
        return f"{self.collection}/{self.session_id}"

    # -- reading --------------------------------------------------------------

    def events(self) -> list[ContextEvent]:
        """Return the events of the session in order, redacted ones left out."""
        return [event for event in self.governor.history() if not event.redacted]

    def messages(self) -> list[ChatMessage]:
        """Return new copies of all messages of the session in order."""
        return [message_of(event) for event in self.events()]

    # -- changing -------------------------------------------------------------

    def append(self, messages: Sequence[ChatMessage]) -> list[ContextEvent]:
        """Store messages at the end, all or none; nothing for no messages."""
        return self.governor.record_many([event_fields(message) for message in messages])

    def replace(self, messages: Sequence[ChatMessage], *, keep_old: bool) -> None:
        """Let the session hold exactly these messages.

        What the session holds already at the beginning is not stored again; a message
        that changed makes a new thread.

        Args:
            messages: The messages.
            keep_old: Whether the old thread remains in the library, or is deleted.
        """
        stored = self.messages()
        if list(messages[: len(stored)]) == stored:
            self.append(messages[len(stored) :])
            return
        self._require_write()
        thread = f"{self.session_id}~{new_id('s')}"
        if messages:
            self._library.open_context_governor(thread, collection=self.collection, **self._options).record_many(
                [event_fields(message) for message in messages]
            )
        old = self._library.database.write(lambda connection: self._point_to(connection, thread))
        if not keep_old:
            self._delete(old)

    def start_over(self) -> None:
        """Let the session be empty; what it held remains in the library."""
        self.replace([], keep_old=True)

    def delete(self) -> None:
        """Delete the session's thread and everything derived from it."""
        self._delete(self.governor.key.session_id)

    def _point_to(self, connection: apsw.Connection, thread: str) -> str:
        old = self._thread(connection)
        KeyValueView(connection).put(self._pointer_key, {"thread": thread}, _POINTERS)
        return old

    def _delete(self, thread: str) -> None:
        try:
            self._library.delete_thread(thread, collection=self.collection)
        except ThreadNotFoundError:
            return  # it never held a message

    def _require_write(self) -> None:
        with self._library.database.read() as connection:
            thread = self._thread(connection)
            owner = find_owner(connection, THREAD, self.collection, thread)
        if owner is not None:
            self._library.authority.require(
                Operation.WRITE, THREAD, f"{self.collection}/{thread}", metadata_state(owner)
            )


def session_names(library: LibraryView, collection: str) -> list[str]:
    """Return the sessions of a namespace that hold messages and may be listed, by name."""
    with library.database.read() as connection:
        pointers: Mapping[str, dict[str, Any]] = KeyValueView(connection).get_all(_POINTERS)
    threads = {thread.key.session_id for thread in library.threads(collection)}
    prefix = f"{collection}/"
    moved = {name.removeprefix(prefix): pair["thread"] for name, pair in pointers.items() if name.startswith(prefix)}
    unmoved = {thread for thread in threads if thread not in moved and not _REPLACEMENT.search(thread)}
    return sorted(unmoved | {name for name, thread in moved.items() if thread in threads})
