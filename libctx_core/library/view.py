"""The operations of a library under one authority."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from libctx_core.access.authority import Authority
from libctx_core.access.metadata import ResourceMetadata
from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.errors import InvalidInputError
from libctx_core.governor.budget import resolve_budgets
from libctx_core.governor.builder import Builder, Overflow
from libctx_core.governor.governor import ContextGovernor
from libctx_core.governor.indexer import Done
from libctx_core.governor.memories import open_memories
from libctx_core.governor.reading_desk import ReadingDesk
from libctx_core.governor.retrieval import MIN_RELEVANCE, Reach, Reading
from libctx_core.governor.runtime import Runtime
from libctx_core.governor.session import Settings
from libctx_core.governor.shelf import Shelf
from libctx_core.governor.statistics import LibraryStatistics, ThreadInfo, list_threads, read_statistics
from libctx_core.models import Hit, ThreadKey, check_identifier
from libctx_core.plugins import Plugins
from libctx_core.ports import Embedder, TextCounter
from libctx_core.store.database import Database
from libctx_core.tokens import TokenCounter

if TYPE_CHECKING:
    from libctx_core.artifacts import Artifact, ArtifactShelf
    from libctx_core.bank import ContextBank
    from libctx_core.memory.memories import Memories
    from libctx_core.search.index import SearchIndex

DEFAULT_ENCODING = "o200k_base"
"""Counts where neither a model nor a tokenizer is named; exact for OpenAI's current models."""

DEFAULT_TOKEN_BUDGET = 8_000
"""Tokens of a request where neither a budget nor a model's window is given."""

Access = Literal["open", "required"]


class LibraryView:
    """The operations of a library under one authority.

    `LibraryOfContext` is the view of the library's owner; `scoped` gives one that holds
    a scope for every call.
    """

    def __init__(self, runtime: Runtime, authority: Authority, *, namespace: str, counter: TokenCounter) -> None:
        self._runtime = runtime
        self._authority = authority
        self._counter = counter
        self._shelf = Shelf(runtime, authority)
        self.namespace = namespace

    # -- parts ----------------------------------------------------------------

    @property
    def database(self) -> Database:
        """The library file, for adapters that keep tables of their own in it."""
        return self._runtime.database

    @property
    def index(self) -> "SearchIndex":
        """The write door of search."""
        return self._runtime.index

    @property
    def runtime(self) -> Runtime:
        """What all doors of the library share."""
        return self._runtime

    @property
    def embedder(self) -> Embedder | None:
        """Makes the library's vectors."""
        return self._runtime.embedder

    @property
    def plugins(self) -> Plugins:
        """The loaded plugins."""
        return self._runtime.plugins

    @property
    def authority(self) -> Authority:
        """Decides who may do what through this view."""
        return self._authority

    @property
    def counter(self) -> TokenCounter:
        """Counts tokens where a governor does not say otherwise."""
        return self._counter

    def scoped(self, scope: Scope) -> "LibraryView":
        """Return the same library held under a scope, whatever the context variables say."""
        return LibraryView(self._runtime, self._authority.bound(scope), namespace=self.namespace, counter=self._counter)

    # -- threads --------------------------------------------------------------

    def open_context_governor(
        self,
        session_id: str,
        *,
        collection: str | None = None,
        owner: str | None = None,
        scope: Scope | None = None,
        resource: ResourceMetadata | None = None,
        model: str | None = None,
        tokenizer: str | TextCounter | Callable[[str], int] | None = None,
        token_budget: int | None = None,
        recent_token_budget: int | None = None,
        protected_token_budget: int | None = None,
        desk_token_budget: int | None = None,
        max_output_tokens: int = 0,
        context_window: int | None = None,
        overflow: Overflow = "error",
        reach: Reach = "thread",
        teams: Sequence[str] = (),
        policies: Sequence[str] = (),
        min_relevance: float = MIN_RELEVANCE,
    ) -> ContextGovernor:
        """Open the governor of one thread; light, and safe to open as often as you like.

        Args:
            session_id: The thread.
            collection: Its namespace; the library's by default.
            owner: The user it belongs to.
            scope: Held for every call of this governor.
            resource: Access metadata to enrol the thread with when it is created.
            model: Chooses the token counter.
            tokenizer: An encoding, a tokenizer a plugin registers, or a counter; beats `model`.
            token_budget: Tokens of one request, system prompt and tools included.
            recent_token_budget: Ceiling of recent events; default 80 % of the budget.
            protected_token_budget: Ceiling of protected events; default 15 %.
            desk_token_budget: Ceiling of retrieved items; default 50 %.
            max_output_tokens: Taken off the budget for the reply.
            context_window: The model's input window; a larger budget is refused.
            overflow: What happens to a turn that alone exceeds the budget: ``"error"``, or
                cut its text: ``"truncate_top"``, ``"truncate_middle"``, ``"truncate_bottom"``.
            reach: Whose threads the desk draws on besides the collection's shelf.
            teams: Teams whose shelves the desk draws on; routing values, not rights.
            policies: Plugins that may propose protections; none by default.
            min_relevance: Relevance (0 to 1) an item needs to be put on the desk.

        Raises:
            InvalidIdentifierError: An id cannot name anything.
            InvalidBudgetError: A budget is not positive or does not fit.
        """
        budget = token_budget
        if budget is None:
            budget = DEFAULT_TOKEN_BUDGET if context_window is None else context_window
        key = ThreadKey(
            check_identifier("collection", self.namespace if collection is None else collection),
            check_identifier("session_id", session_id),
        )
        user = None if owner is None else check_identifier("owner", owner)
        if overflow not in ("error", "truncate_top", "truncate_middle", "truncate_bottom"):
            raise InvalidInputError("overflow", "must be error, truncate_top, truncate_middle or truncate_bottom")
        if reach not in ("thread", "owner", "collection"):
            raise InvalidInputError("reach", "must be thread, owner or collection")
        authority = self._authority.bound(scope)
        builder = Builder(
            runtime=self._runtime,
            authority=authority,
            reading=Reading(key, user, reach, tuple(check_identifier("teams", team) for team in teams)),
            budgets=resolve_budgets(
                budget,
                recent=recent_token_budget,
                protected=protected_token_budget,
                desk=desk_token_budget,
                max_output_tokens=max_output_tokens,
                window=context_window,
            ),
            counter=self.token_counter(model=model, tokenizer=tokenizer),
            overflow=overflow,
            min_relevance=min_relevance,
        )
        settings = Settings(user=user, resource=resource, policies=tuple(policies))
        return ContextGovernor(self._runtime, authority, builder, settings)

    def token_counter(
        self, *, model: str | None = None, tokenizer: str | TextCounter | Callable[[str], int] | None = None
    ) -> TokenCounter:
        """Return the counter of a tokenizer, of a model, or the library's own."""
        if isinstance(tokenizer, TokenCounter):
            return tokenizer
        if isinstance(tokenizer, str):
            if tokenizer in self._runtime.plugins.names("register_tokenizers"):
                return TokenCounter(self._runtime.plugins.tokenizer(tokenizer))
            return TokenCounter.for_encoding(tokenizer)
        if tokenizer is not None:
            return TokenCounter(tokenizer)
        return self._counter if model is None else TokenCounter.for_model(model)

    def threads(self, collection: str | None = None) -> list[ThreadInfo]:
        """Return the threads of a collection, or of the library, that may be listed."""
        with self.database.read() as connection:
            return list_threads(connection, self._authority, collection)

    def delete_thread(self, session_id: str, *, collection: str | None = None) -> None:
        """Delete a thread and everything derived from it.

        Raises:
            ThreadNotFoundError: There is no such thread.
            ContextAccessDenied: The scope does not permit it.
        """
        self.open_context_governor(session_id, collection=collection).delete()

    # -- shelf ----------------------------------------------------------------

    def shelve(self, text: str, *, collection: str | None = None, **options: Any) -> str:
        """Put a book on the shelf of a collection, or of a ``team=``; return its record id.

        Options are those of `Shelf.shelve`: ``book_id, title, team, metadata, occurred_at, expires_at``.
        """
        return self._shelf.shelve(text, collection=collection or self.namespace, **options)

    def shelve_document(self, text: str, *, collection: str | None = None, **options: Any) -> list[str]:
        """Cut a document at its own seams and shelve the pieces; return their record ids.

        Options are those of `Shelf.shelve_document`.
        """
        return self._shelf.shelve_document(text, collection=collection or self.namespace, **options)

    def consult(
        self,
        query: str,
        k: int = 10,
        *,
        collection: str | None = None,
        session_id: str | None = None,
        owner: str | None = None,
        reach: Reach = "thread",
        teams: Sequence[str] = (),
        everything: bool = False,
        explain: bool = False,
    ) -> list[Hit]:
        """Find the best records of a collection's shelf, and of the threads that `reach` names.

        Args:
            query: Any text.
            k: Hits wanted.
            collection: The library's by default.
            session_id: Look into this thread too.
            owner: The user, for ``reach="owner"``.
            reach: ``thread``, ``owner`` or ``collection``.
            teams: Teams whose shelves are read too.
            everything: Look into all that may be read.
            explain: Give each signal's part of the score.
        """
        key = ThreadKey(self.namespace if collection is None else collection, session_id or "")
        reading = Reading(key, owner, reach, tuple(teams))
        return self._shelf.consult(query, k, reading, everything=everything, explain=explain)

    def promote(self, session_id: str, event_id: str, *, collection: str | None = None, team: str | None = None) -> str:
        """Copy an event to the collection's shelf, or a team's, so that other threads can find it."""
        return self._shelf.promote(ThreadKey(collection or self.namespace, session_id), event_id, team=team)

    def forget(self, record_id: str) -> None:
        """Remove a book or a chunk.

        Raises:
            RecordNotFoundError: There is none that may be seen.
        """
        self._shelf.forget(record_id)

    def open_reading_desk(
        self,
        session_id: str | None = None,
        *,
        collection: str | None = None,
        token_budget: int = 2_000,
        k: int = 32,
        min_relevance: float = MIN_RELEVANCE,
        **reading: Any,
    ) -> ReadingDesk:
        """Open a desk that retrieves for one subject after another."""

        def retrieve(subject: str) -> list[Hit]:
            hits = self.consult(subject, k, collection=collection, session_id=session_id, **reading)
            return [hit for hit in hits if hit.relevance >= min_relevance]

        return ReadingDesk(retrieve, self._counter, token_budget)

    # -- memories -------------------------------------------------------------

    @property
    def memory(self) -> "Memories":
        """The memories of the library's own collection: remember, revise, forget, search, changes, expand."""
        return self.memories(self.namespace)

    def memories(self, collection: str) -> "Memories":
        """Return the memories of a collection."""
        return open_memories(self._runtime, self._authority, check_identifier("collection", collection))

    # -- artifacts ------------------------------------------------------------

    def artifacts(self, *families: "type[Artifact[Any]]", collection: str | None = None) -> "ArtifactShelf":
        """Return the artifacts of a collection.

        Args:
            families: Artifact classes, besides those that plugins bring.
            collection: The library's own by default.
        """
        from libctx_core.artifacts import ArtifactShelf
        from libctx_core.sources.guard import AuthorityGuard

        return ArtifactShelf(
            self.database,
            self.namespace if collection is None else collection,
            (*self.plugins.artifact_families(), *families),
            guard=AuthorityGuard(self._authority),
        )

    # -- bank -----------------------------------------------------------------

    def bank(self, collection: str = "bank") -> "ContextBank":
        """Return the context bank of a collection: pages, lorebooks, todo lists, and the tools over them.

        All views of the library share its pages, locks and cache; each keeps its own scope.
        """
        from libctx_core.bank import ContextBank
        from libctx_core.store.bank import BankStore

        name = check_identifier("collection", collection)
        with self._runtime.lock:
            shared = self._runtime.banks.get(name)
            if shared is None:
                shared = self._runtime.banks[name] = ContextBank(
                    BankStore(self.database, name), self._runtime.authority
                )
        scope = self._authority.handle
        return shared if scope is None else shared.scoped(scope)

    # -- the whole ------------------------------------------------------------

    def stats(self) -> LibraryStatistics:
        """Count what may be seen."""
        with self.database.read() as connection:
            return read_statistics(connection, self._authority, self.database)

    def flush(self, timeout: float = 30.0) -> bool:
        """Wait until everything stored is searchable; False when time ran out."""
        done = Done(self.database, None, 0)
        if self._runtime.indexer is None:
            return done()
        return self._runtime.indexer.wait(done, timeout)

    # -- async twins ----------------------------------------------------------

    async def ashelve(self, text: str, **options: Any) -> str:
        """Do what `shelve` does."""
        return await run_sync(partial(self.shelve, text, **options))

    async def ashelve_document(self, text: str, **options: Any) -> list[str]:
        """Do what `shelve_document` does."""
        return await run_sync(partial(self.shelve_document, text, **options))

    async def aconsult(self, query: str, k: int = 10, **options: Any) -> list[Hit]:
        """Do what `consult` does."""
        return await run_sync(partial(self.consult, query, k, **options))

    async def apromote(self, session_id: str, event_id: str, **options: Any) -> str:
        """Do what `promote` does."""
        return await run_sync(partial(self.promote, session_id, event_id, **options))

    async def aforget(self, record_id: str) -> None:
        """Do what `forget` does."""
        await run_sync(self.forget, record_id)

    async def athreads(self, collection: str | None = None) -> list[ThreadInfo]:
        """Do what `threads` does."""
        return await run_sync(self.threads, collection)

    async def adelete_thread(self, session_id: str, *, collection: str | None = None) -> None:
        """Do what `delete_thread` does."""
        await run_sync(partial(self.delete_thread, session_id, collection=collection))

    async def aflush(self, timeout: float = 30.0) -> bool:
        """Do what `flush` does."""
        return await run_sync(self.flush, timeout)
