"""Drawing memory from new sources, window by window, with a cursor that moves with what it caused."""

from typing import NamedTuple

import apsw

from libctx_core.concurrency import run_sync
from libctx_core.errors import ArtifactNotFoundError
from libctx_core.memory.service import MemoryService
from libctx_core.memory.values import Memory
from libctx_core.sources.shelf import SourceShelf
from libctx_core.triggers import CursorStore, SourceHighWatermark, SourceWindowTrigger
from libctx_core.triggers.policy import DEFAULT_SOURCE_WINDOW_LIMIT


class WindowResult(NamedTuple):
    """What processing one window did.

    Attributes:
        through: Journal position that is processed.
        sources: Sources the window held.
        memory: The newest revision, or None if nothing is remembered yet.
    """

    through: int
    sources: int
    memory: Memory | None


class SourceWindows:
    """Walks the journal of a collection and lets a service extract from each window.

    The model runs outside any transaction. The revision and the cursor are then stored
    in one: after a crash a window is either processed or not, and two workers on one
    binding cannot both process it.

    Args:
        service: The service, with a candidate pipeline, over the library's own memories.
        shelf: The sources.
        cursors: Where the cursor is kept.
        memory: Id of the memory; the one the service starts, if it does not exist.
        binding: Name of the cursor.
    """

    def __init__(
        self,
        service: MemoryService,
        shelf: SourceShelf,
        cursors: CursorStore,
        *,
        memory: str = "memory",
        binding: str = SourceWindowTrigger.name,
    ) -> None:
        self._service = service
        self._shelf = shelf
        self._cursors = cursors
        self._memory = memory
        self._binding = binding
        self._trigger = SourceWindowTrigger()

    async def run_once(self, *, limit: int = DEFAULT_SOURCE_WINDOW_LIMIT) -> WindowResult | None:
        """Process the next window; None if the journal holds nothing new.

        Args:
            limit: Journal positions one window may span.

        Raises:
            RevisionConflictError: The memory moved meanwhile; nothing was written.
            GenerationConflictError: Another worker processed the window; nothing was written.
        """
        stored = await self._cursors.aread(self._binding)
        signal = SourceHighWatermark(sequence=await run_sync(self._shelf.position), limit=limit)
        transition = self._trigger.activate(signal, stored.cursor)
        if not transition.actions:
            return None
        window = transition.actions[0]
        entries = await self._shelf.aentries(after=window.after, limit=window.through - window.after)
        sources = [entry.source for entry in entries if entry.position <= window.through]
        try:
            memory: Memory | None = await self._service.head(self._memory)
        except ArtifactNotFoundError:
            memory = None

        def advance(connection: apsw.Connection) -> None:
            self._cursors.move_in(connection, self._binding, transition.state, generation=stored.generation)

        plan = None
        if sources:
            plan = await self._service.plan_remember(memory=memory, sources=sources, mode="extract")
        if plan is None:
            await self._cursors.amove(self._binding, transition.state, generation=stored.generation)
        else:
            memory = await self._service.apply(plan, join=advance)
        return WindowResult(window.through, len(sources), memory)
