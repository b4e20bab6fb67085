"""The public governor: every operation with its async twin."""

from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from libctx_core.concurrency import run_sync
from libctx_core.governor.envelope import GovernedPrompt
from libctx_core.governor.lifecycle import Lifecycle
from libctx_core.governor.recollection import Recollection
from libctx_core.governor.redaction import RedactionReceipt
from libctx_core.governor.status import ThreadStatus
from libctx_core.models import Content, ContextEvent, Hit

if TYPE_CHECKING:
    from libctx_core.memory.views import Remembered


class ContextGovernor(Lifecycle, Recollection):
    """Controls the boundary around each model call of one thread.

    `prepare` before the call, send only `messages`, `commit` after it. Open one with
    `LibraryOfContext.open_context_governor`; it is light, thread-safe, and may be opened
    as often as you like. Every method has an ``a…`` twin that makes one thread hop and
    never blocks the event loop; a cancelled twin still finishes what it stores.
    """

    async def aprepare(self, user_message: Content, **options: Any) -> GovernedPrompt:
        """Do what `prepare` does."""
        prompt = await run_sync(partial(self.prepare, user_message, **options))
        if prompt.event_id is not None:
            # the worker's context is a copy: say it in the caller's
            self._begin_turn(prompt.event_id)
        return prompt

    async def acommit(self, content: Content, **options: Any) -> ContextEvent:
        """Do what `commit` does."""
        return await run_sync(partial(self.commit, content, **options))

    async def arecord(self, role: str, content: Content, **options: Any) -> ContextEvent:
        """Do what `record` does."""
        return await run_sync(partial(self.record, role, content, **options))

    async def arecord_many(self, events: Iterable[Mapping[str, Any]]) -> list[ContextEvent]:
        """Do what `record_many` does."""
        return await run_sync(self.record_many, events)

    async def aprotect(self, content: Content, **options: Any) -> ContextEvent:
        """Do what `protect` does."""
        return await run_sync(partial(self.protect, content, **options))

    async def aprotect_event(self, event_id: str) -> ContextEvent:
        """Do what `protect_event` does."""
        return await run_sync(self.protect_event, event_id)

    async def arelease(self, event_id: str) -> bool:
        """Do what `release` does."""
        return await run_sync(self.release, event_id)

    async def abuild_prompt(self, **options: Any) -> GovernedPrompt:
        """Do what `build_prompt` does."""
        return await run_sync(partial(self.build_prompt, **options))

    async def aflush(self, timeout: float = 10.0) -> bool:
        """Do what `flush` does."""
        return await run_sync(self.flush, timeout)

    async def astatus(self) -> ThreadStatus:
        """Do what `status` does."""
        return await run_sync(self.status)

    async def aretry_failed(self, event_id: str) -> bool:
        """Do what `retry_failed` does."""
        return await run_sync(self.retry_failed, event_id)

    async def arecall(self, query: str, k: int = 10, **options: Any) -> list[Hit]:
        """Do what `recall` does."""
        return await run_sync(partial(self.recall, query, k, **options))

    async def aopen_event(self, event_id: str) -> ContextEvent:
        """Do what `open_event` does."""
        return await run_sync(self.open_event, event_id)

    async def ahistory(self, limit: int | None = None, before: str | int | None = None) -> AsyncIterator[ContextEvent]:
        """Do what `history` does."""
        for event in await run_sync(lambda: list(self.history(limit, before))):
            yield event

    async def aamend(self, event_id: str, content: Content, *, native: object = None) -> ContextEvent:
        """Do what `amend` does."""
        return await run_sync(partial(self.amend, event_id, content, native=native))

    async def arevisions(self, event_id: str) -> list[str | list[dict[str, Any]]]:
        """Do what `revisions` does."""
        return await run_sync(self.revisions, event_id)

    async def aredact(self, event_id: str, *, cascade: bool = False) -> RedactionReceipt:
        """Do what `redact` does."""
        return await run_sync(partial(self.redact, event_id, cascade=cascade))

    async def aremember(self, event_ids: Iterable[str], **options: Any) -> "Remembered":
        """Do what `remember` does."""
        return await run_sync(partial(self.remember, event_ids, **options))

    async def aexport(self) -> AsyncIterator[dict[str, Any]]:
        """Do what `export` does."""
        for record in await run_sync(lambda: list(self.export())):
            yield record

    async def adelete(self) -> None:
        """Do what `delete` does."""
        await run_sync(self.delete)
