"""`LibraryChatStore`: a library's threads behind both of LlamaIndex's chat-store interfaces."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Self, TypeVar

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.storage.chat_store.base import BaseChatStore
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus

from libctx_core import ContextEvent
from libctx_core.access import Scope
from libctx_core.concurrency import run_sync
from libctx_core.errors import EventNotFoundError
from llama_index_libctx.either_way import Settled, asked_by_coroutine
from llama_index_libctx.kvstore import KEY_VALUES, KeyValueView
from llama_index_libctx.library import MEMORY, LibraryLease, PathOrLibrary, lease
from llama_index_libctx.ordered import OrderedCalls
from llama_index_libctx.reopening import reopening_state
from llama_index_libctx.sessions import Session, message_of, session_names

T = TypeVar("T")

_ARCHIVED = "llama_index/archived"
"""Collection of the key-value pairs that say up to which event, by its library-wide id, a key is archived."""


class LibraryChatStore(BaseChatStore, AsyncDBChatStore):
    """Chat messages as durable events of a library; each key is a thread.

    It is a `BaseChatStore` for `ChatMemoryBuffer` and its like, and an `AsyncDBChatStore`
    for `Memory`. The two interfaces share names: called from a coroutine function, such a
    method returns a coroutine that does the work off the event loop; called from a plain
    function it does the work and returns the result, which may be awaited too.

    Deleting removes a message's text from the file. Archived messages stay in the thread
    and remain searchable.

    Args:
        path: The library's file, an open library, or ``":memory:"``.
        collection: Namespace of the threads; the library's by default.
        scope: Access scope that every call is held to.
    """

    path: str = Field(default=MEMORY, description="File of the library.")
    collection: str | None = Field(default=None, description="Namespace of the threads.")

    _lease: LibraryLease = PrivateAttr()
    _scope: Scope | None = PrivateAttr(default=None)
    _calls: OrderedCalls = PrivateAttr(default_factory=OrderedCalls)

    def __init__(
        self, path: PathOrLibrary = MEMORY, collection: str | None = None, *, scope: Scope | None = None
    ) -> None:
        shared = lease(path)
        super().__init__(path=shared.path, collection=collection)
        self._lease = shared
        self._scope = scope
        shared.database.ensure(KEY_VALUES)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the store is serialised."""
        return "LibraryChatStore"

    # -- reading --------------------------------------------------------------

    def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> Any:
        """Return the messages of a key in order: those of a status, or all of them for None."""

        def read() -> list[ChatMessage]:
            start = offset or 0
            events = self._events(key, status)[start : None if limit is None else start + limit]
            return [message_of(event) for event in events]

        return self._either_way(asked_by_coroutine(), read)

    def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> Any:
        """Return a coroutine for the number of messages of a key with a status, or of all for None."""
        return run_sync(lambda: len(self._events(key, status)))

    def get_keys(self) -> Any:
        """Return the keys that hold messages, by name."""
        return self._either_way(asked_by_coroutine(), self._keys)

    def _keys(self) -> list[str]:
        view = self._lease.view(self._scope)
        return session_names(view, view.namespace if self.collection is None else self.collection)

    # -- writing --------------------------------------------------------------

    def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> Any:
        """Store a message at the end."""
        return self._either_way(asked_by_coroutine(), lambda: self._add(key, [message], status)) or Settled()

    def add_messages(self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE) -> Any:
        """Store messages at the end, all or none."""
        return self._either_way(asked_by_coroutine(), lambda: self._add(key, messages, status)) or Settled()

    def set_messages(self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE) -> Any:
        """Let a key hold exactly these messages, all at once."""

        def store() -> None:
            session = self._session(key)
            if self._events(key, MessageStatus.ARCHIVED):
                session.replace([], keep_old=False)
            session.replace(messages, keep_old=False)
            if status == MessageStatus.ARCHIVED:
                self._archive(key, len(messages))

        return self._either_way(asked_by_coroutine(), store) or Settled()

    def _add(self, key: str, messages: Sequence[ChatMessage], status: MessageStatus) -> None:
        self._session(key).append(messages)
        if status == MessageStatus.ARCHIVED:
            self._archive(key, len(self._events(key, MessageStatus.ACTIVE)))

    # -- deleting and archiving -----------------------------------------------

    def delete_messages(self, key: str, status: MessageStatus | None = None) -> Any:
        """Delete the messages of a key with a status, or all of them for None, and return them."""

        def delete() -> list[ChatMessage]:
            events = self._events(key, status)
            if status is None:
                self._session(key).delete()
            else:
                self._redact(key, events)
            return [message_of(event) for event in events]

        return self._either_way(asked_by_coroutine(), delete)

    def delete_message(self, key: str, idx: int) -> Any:
        """Delete the active message at a place, counted from 0, and return it; None if there is none."""
        return self._either_way(asked_by_coroutine(), lambda: self._delete_at(key, idx))

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Delete the last active message and return it; None if there is none."""
        return self._delete_at(key, len(self._events(key, MessageStatus.ACTIVE)) - 1)

    def delete_oldest_messages(self, key: str, n: int) -> Any:
        """Delete the oldest active messages and return them."""

        def delete() -> list[ChatMessage]:
            events = self._events(key, MessageStatus.ACTIVE)[:n]
            self._redact(key, events)
            return [message_of(event) for event in events]

        return self._either_way(asked_by_coroutine(), delete)

    def archive_oldest_messages(self, key: str, n: int) -> Any:
        """Archive the oldest active messages and return them."""
        return self._either_way(asked_by_coroutine(), lambda: self._archive(key, n))

    def _delete_at(self, key: str, place: int) -> ChatMessage | None:
        events = self._events(key, MessageStatus.ACTIVE)
        if not 0 <= place < len(events):
            return None
        self._redact(key, [events[place]])
        return message_of(events[place])

    def _archive(self, key: str, count: int) -> list[ChatMessage]:
        events = self._events(key, MessageStatus.ACTIVE)[:count]
        if events:
            mark = {"through": events[-1].uid}
            self._lease.database.write(
                lambda connection: KeyValueView(connection).put(self._mark(key), mark, _ARCHIVED)
            )
        return [message_of(event) for event in events]

    def _redact(self, key: str, events: Sequence[ContextEvent]) -> None:
        governor = self._session(key).governor
        for event in events:
            try:
                governor.redact(event.event_id)
            except EventNotFoundError:
                continue  # somebody else deleted it first

    # -- async twins of the synchronous interface -------------------------------

    async def aset_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Let a key hold exactly these messages, off the event loop."""
        await self.set_messages(key, messages)

    async def aget_messages(self, key: str) -> list[ChatMessage]:
        """Return the active messages of a key, off the event loop."""
        messages: list[ChatMessage] = await self.get_messages(key)
        return messages

    async def async_add_message(self, key: str, message: ChatMessage) -> None:
        """Store a message at the end, off the event loop."""
        await self.add_message(key, message)

    async def adelete_messages(self, key: str) -> list[ChatMessage] | None:
        """Delete all messages of a key, off the event loop."""
        messages: list[ChatMessage] = await self.delete_messages(key)
        return messages

    async def adelete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Delete the active message at a place, off the event loop."""
        message: ChatMessage | None = await self.delete_message(key, idx)
        return message

    async def adelete_last_message(self, key: str) -> ChatMessage | None:
        """Delete the last active message, off the event loop."""
        return await self._calls.run(self.delete_last_message, key)

    async def aget_keys(self) -> list[str]:
        """Return the keys that hold messages, off the event loop."""
        keys: list[str] = await self.get_keys()
        return keys

    # -- inside ---------------------------------------------------------------

    def _either_way(self, in_coroutine: bool, work: Callable[[], Any]) -> Coroutine[Any, Any, Any] | Any:
        if in_coroutine:
            return self._calls.run(work)
        result = work()
        return Settled(result) if isinstance(result, list) else result

    def _session(self, key: str) -> Session:
        return Session(self._lease.view(self._scope), key, collection=self.collection)

    def _events(self, key: str, status: MessageStatus | None) -> list[ContextEvent]:
        with self._lease.database.read() as connection:
            mark = KeyValueView(connection).get(self._mark(key), _ARCHIVED)
        through = 0 if mark is None else int(mark["through"])
        return [
            event
            for event in self._session(key).events()
            if status is None or (event.uid <= through) == (status == MessageStatus.ARCHIVED)
        ]

    def _mark(self, key: str) -> str:
        return f"{self.collection or self._lease.library.namespace}/{key}"

    def __getstate__(self) -> dict[str, Any]:
        """Return what opens the store again elsewhere; see `reopening_state`."""
        return reopening_state(self, self._scope)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # a copy goes on using the same open file
        return self.model_copy()
