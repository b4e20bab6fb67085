"""What every governor of one library shares."""

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from libctx_core.access.authority import Authority
from libctx_core.governor.thread import ThreadStates
from libctx_core.models import Clock, system_clock
from libctx_core.plugins import Plugins
from libctx_core.ports import Embedder, Observation
from libctx_core.store import Database
from libctx_core.store.access import PermittedOwners

if TYPE_CHECKING:
    from libctx_core.bank import ContextBank
    from libctx_core.governor.indexer import Indexer
    from libctx_core.search.index import SearchIndex
    from libctx_core.search.searcher import Searcher


@dataclass(slots=True)
class Runtime:
    """The shared parts of an open library.

    Attributes:
        database: The library file.
        index: Write door of search.
        searcher: Read door of search.
        embedder: Makes vectors; None where the library was opened without.
        plugins: Loaded plugins.
        authority: Decides who may do what.
        indexer: Makes durable events searchable; None in a read-only library.
        permitted: Remembers which owner objects a scope may search.
        states: What is kept of the threads in use.
        banks: Open context banks by collection; their pages are shared by every view.
        lock: Held while a bank is opened.
        clock: Seconds since the epoch.
    """

    database: Database
    index: "SearchIndex"
    searcher: "Searcher"
    embedder: Embedder | None
    plugins: Plugins
    authority: Authority
    indexer: "Indexer | None" = None
    permitted: PermittedOwners = field(default_factory=PermittedOwners)
    states: ThreadStates = field(default_factory=ThreadStates)
    banks: "dict[str, ContextBank]" = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    clock: Clock = system_clock

    def observe(self, name: str, attributes: dict[str, str | int | float | bool]) -> None:
        """Tell observers what happened; never the text of an event."""
        if self.plugins.implements("on_event"):
            self.plugins.on_event((Observation(name, attributes),))
