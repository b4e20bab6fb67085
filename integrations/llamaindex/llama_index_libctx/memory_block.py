"""`LibraryMemoryBlock`: what a library recalls, as a block of LlamaIndex's own memory."""

import hashlib
from collections.abc import Sequence
from typing import Any, Self

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory import BaseMemoryBlock

from libctx_core import ContextGovernor, Hit
from libctx_core.access import Scope
from libctx_core.concurrency import run_sync
from libctx_core.governor.rendering import item_line
from libctx_core.models import canonical_json
from llama_index_libctx.library import MEMORY, LibraryLease, PathOrLibrary, lease
from llama_index_libctx.messages import content_of
from llama_index_libctx.sessions import event_fields

_DEFAULT_SESSION = "default"

MIN_RELEVANCE = 0.02
"""Relevance a message needs. In short conversations what answers a question reaches 0.05
and more, what has nothing to do with it stays under 0.005; the block is asked on purpose, so
the gate is lower than that of a governed view."""


class LibraryMemoryBlock(BaseMemoryBlock[str]):
    """Stores the messages that leave a `Memory`'s queue and brings back those that matter.

    Each session of the memory is a thread of its own, and recalls nothing of the others.
    What is recalled is escaped, one line per message, the best match first.

    Args:
        path: The library's file, an open library, or ``":memory:"``.
        name: Name of the block in the prompt.
        collection: Namespace of the threads; the library's by default.
        k: How many messages are recalled at most.
        token_limit: Tokens of the block at most.
        min_relevance: Relevance, from 0 to 1, a message needs to be recalled.
        context_messages: How many of the newest messages say what is asked for.
        scope: Access scope that every call is held to.
        fields: Fields of `BaseMemoryBlock`.
    """

    name: str = Field(default="library", description="Name of the block in the prompt.")
    path: str = Field(default=MEMORY, description="File of the library.")
    collection: str | None = Field(default=None, description="Namespace of the threads.")
    k: int = Field(default=8, description="Messages recalled at most.")
    token_limit: int = Field(default=1_000, description="Tokens of the block at most.")
    min_relevance: float = Field(default=MIN_RELEVANCE, description="Relevance a message needs.")
    context_messages: int = Field(default=3, description="Newest messages that say what is asked for.")

    _lease: LibraryLease = PrivateAttr()
    _scope: Scope | None = PrivateAttr(default=None)

    def __init__(self, path: PathOrLibrary = MEMORY, *, scope: Scope | None = None, **fields: Any) -> None:
        shared = lease(path)
        super().__init__(path=shared.path, **fields)
        self._lease = shared
        self._scope = scope

    async def _aget(
        self, messages: list[ChatMessage] | None = None, *, session_id: str | None = None, **block_kwargs: Any
    ) -> str:
        question = "\n".join(
            message.content for message in (messages or [])[-self.context_messages :] if message.content
        )
        return await run_sync(self._recall, question, session_id) if question else ""

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await run_sync(self._store, messages)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Drop the worst matches until at least so many tokens are gone; None if nothing is left."""
        return await run_sync(self._without, content, tokens_to_truncate)

    def _recall(self, question: str, session_id: str | None) -> str:
        governor = self._governor(session_id)
        hits = [hit for hit in governor.recall(question, self.k) if hit.relevance >= self.min_relevance]
        lines, left = [], self.token_limit
        for line in map(_line, hits):
            left -= governor.counter.count(line + "\n")
            if left < 0:
                break
            lines.append(line)
        return "\n".join(lines)

    def _store(self, messages: Sequence[ChatMessage]) -> None:
        by_session: dict[str | None, list[ChatMessage]] = {}
        for message in messages:
            # LlamaIndex writes the session into the message it hands over
            extra = dict(message.additional_kwargs)
            session_id = extra.pop("session_id", None)
            by_session.setdefault(session_id, []).append(message.model_copy(update={"additional_kwargs": extra}))
        for session_id, said in by_session.items():
            events = [event_fields(message) for message in said]
            batch = _digest([content_of(message) for message in said])
            for place, event in enumerate(events):
                event["event_id"] = f"block-{batch}-{place}"
            self._governor(session_id).record_many(events)

    def _without(self, content: str, tokens: int) -> str | None:
        counter = self._lease.library.counter
        target = counter.count(content) - tokens
        # lines of a message's own text are indented
        items = content.split("\n[")
        while items and counter.count("\n[".join(items)) > target:
            items.pop()
        return "\n[".join(items) or None

    def _governor(self, session_id: str | None) -> ContextGovernor:
        return self._lease.view(self._scope).open_context_governor(
            session_id or _DEFAULT_SESSION, collection=self.collection
        )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        # a copy goes on using the same open file
        return self.model_copy()


def _line(hit: Hit) -> str:
    return item_line(hit.record_id, hit.role, hit.speaker, hit.occurred_at, hit.text)


def _digest(contents: Sequence[Any]) -> str:
    return hashlib.sha256(canonical_json(contents).encode("utf-8", "surrogatepass")).hexdigest()[:32]
