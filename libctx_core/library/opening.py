"""Opening a library: the one place where its rooms are wired together."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Literal, Self

from libctx_core.access.authority import Authority
from libctx_core.access.context import AdminToken, ContextAccess
from libctx_core.access.context import access as default_access
from libctx_core.access.policy import UnscopedPolicy
from libctx_core.concurrency import run_sync
from libctx_core.errors import OptionalDependencyError
from libctx_core.governor.indexer import Indexer
from libctx_core.governor.memories import index_memories
from libctx_core.governor.runtime import Runtime
from libctx_core.library.view import LibraryView
from libctx_core.models import check_identifier
from libctx_core.plugins import Plugins
from libctx_core.plugins.built_in import DEFAULT_EMBEDDER, DEFAULT_STORAGE, DEFAULT_VECTOR_INDEX
from libctx_core.ports import Embedder, TextCounter
from libctx_core.store.access import ACCESS
from libctx_core.store.database import Database, Durability
from libctx_core.store.events_schema import EVENTS
from libctx_core.store.owners import OWNERS
from libctx_core.tokens import TokenCounter

DEFAULT_ENCODING = "o200k_base"
"""Counts where neither a model nor a tokenizer is named; exact for OpenAI's current models."""

DEFAULT_TOKEN_BUDGET = 8_000
"""Tokens of a request where neither a budget nor a model's window is given."""

Access = Literal["open", "required"]


class LibraryOfContext(LibraryView):
    """One embedded library; open it once per process and share it.

    Args:
        path: The file, created for its owner only, or ``":memory:"``.
        namespace: The default collection.
        redis_url: A shared hot cache; needs the package libctx-redis. Empty means none.
        embedder: An embedder, the name of one a plugin registers, or False for none; the
            packaged static table by default.
        durability: ``"full"``: an acknowledged event survives power loss. ``"normal"``: it
            survives a killed process.
        read_only: Never create, migrate or write; nothing is indexed.
        plugins: Names of plugins and plugin objects; None loads what is installed.
        access: ``"required"`` refuses unscoped use everywhere.
        context_access: Where scopes come from.
        model: Chooses the default token counter.
        tokenizer: The default token counter; beats `model`.
        vector_index: Name of a registered vector index: ``"numpy"`` keeps matrices in memory,
            ``"sqlite-vec"`` computes distances inside SQLite.
        storage: Name of a registered storage backend, which opens `path`.

    Raises:
        StoreError: The file cannot be used; its leaf says why.
        PluginError: A selected plugin cannot be used.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        namespace: str = "default",
        redis_url: str = "",
        embedder: Embedder | str | Literal[False] | None = None,
        durability: Durability = "full",
        read_only: bool = False,
        plugins: Sequence[str | object] | None = None,
        access: Access = "open",
        context_access: ContextAccess = default_access,
        model: str | None = None,
        tokenizer: str | TextCounter | Callable[[str], int] | None = None,
        vector_index: str = DEFAULT_VECTOR_INDEX,
        storage: str = DEFAULT_STORAGE,
    ) -> None:
        from libctx_core.search.index import SearchIndex
        from libctx_core.search.searcher import Searcher

        if redis_url:
            raise OptionalDependencyError("redis_url", "libctx-redis")
        check_identifier("namespace", namespace)
        loaded = Plugins.load(plugins)
        hook = loaded.sqlite_connect if loaded.implements("sqlite_connect") else None
        database: Database = loaded.storage_backend(storage)(
            os.fspath(path), durability=durability, read_only=read_only, on_connect=hook
        )
        try:
            for component in (OWNERS, ACCESS, EVENTS):
                database.ensure(component)
            chosen = _embedder(loaded, embedder)
            vectors = loaded.vector_index(vector_index)()
            context_access.kinds.register(*loaded.resource_kinds())
            authority = Authority(
                context_access,
                unscoped_policy=UnscopedPolicy.DENY if access == "required" else None,
                guard=loaded.objections if loaded.implements("check_access") else None,
                observer=loaded.on_access,
            )
            index = SearchIndex(database)
            runtime = Runtime(database, index, Searcher(database, chosen, vectors=vectors), chosen, loaded, authority)
            if not read_only:
                runtime.indexer = Indexer(database, index, chosen, chore=partial(_tidy, runtime))
        except BaseException:
            database.close()
            raise
        super().__init__(runtime, authority, namespace=namespace, counter=TokenCounter.for_encoding(DEFAULT_ENCODING))
        if model is not None or tokenizer is not None:
            self._counter = self.token_counter(model=model, tokenizer=tokenizer)
        if runtime.indexer is not None:
            # a killed process may have left work behind
            runtime.indexer.wake()
        context_access.listen(loaded)
        loaded.library_opened(self)

    @property
    def path(self) -> str:
        """The library file."""
        return self.database.path

    def backup(self, target: str | os.PathLike[str], *, token: AdminToken | None = None) -> None:
        """Copy the library to a new file, consistent while others write.

        Args:
            target: The new file.
            token: The host's proof (`ContextAccess.take_admin_token`), which a library with
                ``access="required"`` asks for.

        Raises:
            StorePathError: The target exists, or cannot be created.
            ScopeActiveError: A scope is in force.
        """
        self._authority.require_admin("backup", token)
        self.database.backup(target)

    def vacuum(self, *, token: AdminToken | None = None) -> None:
        """Return free pages to the file system; `token` as in `backup`."""
        self._authority.require_admin("vacuum", token)
        self.database.vacuum()

    def reindex(self, progress: Callable[[int, int], None] | None = None, *, token: AdminToken | None = None) -> int:
        """Embed and index everything again, with the embedder at hand; return the number of records.

        Args:
            progress: Called with records done and records in all.
            token: The host's proof, as in `backup`.
        """
        from libctx_core.governor.reindexing import Reindexing

        self._authority.require_admin("reindex", token)
        return Reindexing(self._runtime, progress).run()

    def close(self) -> None:
        """Finish what is being written and close the file; calling it again does nothing.

        Nor does calling it in a process that was forked later: whoever opened it closes it.
        """
        if self.database.is_inherited:
            return
        self._authority.access.unlisten(self.plugins)
        self.plugins.library_closing(self)
        if self._runtime.indexer is not None:
            self._runtime.indexer.close()
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await run_sync(self.close)

    def __repr__(self) -> str:
        return f"LibraryOfContext({self.path!r}, namespace={self.namespace!r})"


def _tidy(runtime: Runtime) -> int:
    """Do what can wait until no event has to be indexed; return how many memory entries were handled."""
    handled = index_memories(runtime)
    # codes that a question had to derive from a large owner's vectors: the next process reads them
    runtime.searcher.save()
    return handled


def _embedder(plugins: Plugins, choice: Embedder | str | Literal[False] | None) -> Embedder | None:
    if choice is False:
        return None
    if choice is None:
        return plugins.embedder(DEFAULT_EMBEDDER)
    return plugins.embedder(choice) if isinstance(choice, str) else choice
