"""Where the governor meets the memory family; loaded when it is first needed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from libctx_core.access.authority import Authority
from libctx_core.governor.runtime import Runtime
from libctx_core.models import ContextEvent

if TYPE_CHECKING:
    import apsw

    from libctx_core.memory.memories import Memories
    from libctx_core.memory.views import Remembered


def open_memories(runtime: Runtime, authority: Authority, collection: str) -> "Memories":
    """Return the memories of a collection under an authority."""
    from libctx_core.memory.memories import Memories
    from libctx_core.sources.guard import AuthorityGuard

    return Memories(
        runtime.database,
        runtime.index,
        runtime.searcher,
        runtime.embedder,
        AuthorityGuard(authority),
        collection=collection,
        plugins=runtime.plugins,
    )


def has_memories(connection: "apsw.Connection") -> bool:
    """Tell whether the file holds the memory family's tables; asked before the family is loaded."""
    return bool(connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'memory_pending'").get)


def index_memories(runtime: Runtime) -> int:
    """Make waiting memory entries searchable; return how many were handled."""
    with runtime.database.read() as connection:
        if not has_memories(connection) or connection.execute("SELECT 1 FROM memory_pending LIMIT 1").get is None:
            return 0
    from libctx_core.memory.indexing import MemoryIndexer

    return MemoryIndexer(runtime.database, runtime.index, runtime.embedder).catch_up_all(limit=1_000)


def remember_events(
    runtime: Runtime,
    authority: Authority,
    collection: str,
    events: Sequence[ContextEvent],
    *,
    session: str,
    kind: str,
    memory: str,
) -> "Remembered":
    """Turn events into entries that cite them."""
    from libctx_core.memory.events import event_proposals

    proposals = list(event_proposals(events, session=session, kind=kind))
    return open_memories(runtime, authority, collection).remember_many(proposals, memory=memory)


def follow_redaction(
    runtime: Runtime, authority: Authority, collection: str, event: ContextEvent, *, cascade: bool
) -> tuple[str, ...]:
    """Return the memory entries that cite an event, purged if asked."""
    with runtime.database.read() as connection:
        if not has_memories(connection):
            return ()
    from libctx_core.memory.events import event_ref

    memories = open_memories(runtime, authority, collection)
    reference = event_ref(event)
    derived = memories.derived_from([reference])
    if cascade and derived:
        memories.purge_derived([reference])
    return tuple(f"{memory}/{entry}" for memory, entries in derived.items() for entry in entries)
