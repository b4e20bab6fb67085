"""Every hook: its name, its arguments, what it returns, and how it is called.

Implementations are plain functions; an ``async`` one is refused when its plugin loads. They
take the arguments they need, by name. Hooks are handed batches, never one candidate at a time.

How a hook is called decides what an exception in it does:

* *collected*: once, while the plugin loads. An exception fails that plugin alone.
* *strict*: every implementation; an exception reaches the caller as `PluginError`.
* *first*: implementations in turn until one returns something other than None; strict.
* *deny-only*: every implementation; a denial or an exception denies, nothing can grant.
* *notify*: every implementation; an exception is recorded as a fault and goes no further.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from libctx_core.models import ContextEvent
from libctx_core.plugins.markers import hookspec
from libctx_core.ports import (
    AccessQuestion,
    DeskRequest,
    Embedder,
    IncomingEvent,
    Observation,
    ProtectionProposal,
    TextCounter,
    ToolSpec,
)

if TYPE_CHECKING:
    import apsw

    from libctx_core.artifacts import Artifact
    from libctx_core.search.neighbours import VectorSearch
    from libctx_core.sources.adapters import SourceAdapter

Factory = Callable[..., Any]
"""Builds a part when it is first needed; heavy imports belong inside it."""


class StorageFactory(Protocol):
    """Opens the store behind a library."""

    def __call__(
        self,
        path: str,
        /,
        *,
        durability: Literal["full", "normal"],
        read_only: bool,
        on_connect: "Callable[[apsw.Connection], None] | None",
    ) -> Any:
        """Open `path`, whatever the backend takes that to mean, and return the store."""
        ...


# -- collected: what a plugin brings ----------------------------------------------


@hookspec
def register_storage_backends() -> Mapping[str, StorageFactory]:
    """Bring storage backends, by name: they open what `libctx_core.store.Database` is. Collected.

    ``LibraryOfContext(path, storage="name")`` asks for one.
    """
    raise NotImplementedError


@hookspec
def register_vector_indexes() -> "Mapping[str, Callable[[], VectorSearch]]":
    """Bring vector indexes, by name: factories that take nothing and return a `VectorSearch`. Collected.

    Each must pass the suite in `libctx_core.testing.vectors`.
    """
    raise NotImplementedError


@hookspec
def register_embedders() -> Mapping[str, Callable[[], Embedder]]:
    """Bring embedders, by name: factories that take nothing and return an `Embedder`. Collected.

    Each must pass the suite in `libctx_core.testing.embedders`.
    """
    raise NotImplementedError


@hookspec
def register_tokenizers() -> Mapping[str, Callable[[], TextCounter]]:
    """Bring token counters, by name: factories that take nothing and return a `TextCounter`. Collected.

    Each must pass the suite in `libctx_core.testing.counters`.
    """
    raise NotImplementedError


@hookspec
def register_source_adapters() -> "Mapping[str, Callable[[], SourceAdapter[Any, Any, Any]]]":
    """Bring source adapters, by name: factories that take nothing and return a `SourceAdapter`. Collected.

    Each must pass the suite in `libctx_core.testing.sources`.
    """
    raise NotImplementedError


@hookspec
def register_rerankers() -> Mapping[str, Factory]:
    """Bring rerankers, by name: factories that take nothing and return a `MemoryReranker`. Collected.

    ``library.memory.search(..., reranker="name")`` asks for one. Each must pass the suite in
    `libctx_core.testing.rerankers`.
    """
    raise NotImplementedError


@hookspec
def register_extractors() -> Mapping[str, Factory]:
    """Bring extractors, by name: factories that take nothing and return a `CandidatePipeline`. Collected.

    ``library.memory.service(pipeline="name")`` asks for one.
    """
    raise NotImplementedError


@hookspec
def register_artifact_families() -> "Iterable[type[Artifact[Any]]]":
    """Bring artifact families: subclasses of `Artifact`, each with its ``family``. Collected.

    ``library.artifacts()`` keeps artifacts of them; two classes of one family are a conflict.
    """
    raise NotImplementedError


@hookspec
def register_tools() -> Iterable[ToolSpec]:
    """Bring functions that a model may call. Collected; two tools of one name are a conflict.

    ``library.plugins.tools()`` lists them; adapters offer them where they are asked to.
    """
    raise NotImplementedError


@hookspec
def register_resource_kinds() -> Iterable[str]:
    """Bring resource kinds for access metadata, in capitals and underscores. Collected; repeats are harmless."""
    raise NotImplementedError


# -- strict -----------------------------------------------------------------------


@hookspec
def sqlite_connect(connection: "apsw.Connection") -> None:
    """Prepare each new SQLite connection: functions, collations, extensions. Strict.

    Args:
        connection: The connection, before any statement of the library ran on it.
    """


@hookspec
def sanitize_event(event: IncomingEvent) -> IncomingEvent | None:
    """Rewrite or refuse an event before anything of it is stored. Strict, chained.

    Implementations run in turn, each on what the one before returned.

    Args:
        event: The event.

    Returns:
        The event to store instead (`dataclasses.replace` it), or None to leave it as it is.
        Thread and role cannot be changed.

    Raises:
        LibctxError: To refuse it. Any other exception refuses it too, as `PluginError`.
    """


# -- first result -----------------------------------------------------------------


@hookspec
def select_context(request: DeskRequest) -> Sequence[str] | None:
    """Choose what goes on the reading desk. First.

    Args:
        request: The focus, the tokens left, and the candidates, best first.

    Returns:
        Record ids among the candidates, most wanted first, or None to leave the choice to
        others. The governor packs them into the budget in this order.
    """


@hookspec
def resolve_containment(pairs: Sequence[tuple[str, str]]) -> Collection[tuple[str, str]] | None:
    """Say which resources lie inside which boundaries. First.

    Args:
        pairs: ``(resource_id, boundary_id)`` in question.

    Returns:
        The pairs that hold, or None to leave it to others. With no answer none hold.
    """


# -- deny-only --------------------------------------------------------------------


@hookspec
def check_access(question: AccessQuestion) -> Collection[str] | None:
    """Deny access that the scope itself would allow. Deny-only.

    Asked once per principal, operation and resource; answers are kept until the plugin
    calls ``library.authority.guard.forget()``.

    Args:
        question: Principal, operation and the resources the scope allows.

    Returns:
        The resource ids to deny, or None for no objection. An exception, or an answer that
        names anything else, denies them all, and is not kept.
    """


# -- notify -----------------------------------------------------------------------


@hookspec
def propose_protections(events: Sequence[ContextEvent]) -> Iterable[ProtectionProposal] | None:
    """Propose events that should stay in every prompt. Notify; only policies a governor opted into are asked.

    Args:
        events: New events of one thread, in order.

    Returns:
        Proposals for events among these, each with reason, evidence and release condition.
    """


@hookspec
def on_event(observations: Sequence[Observation]) -> None:
    """Observe what happened, after it was committed, and what was denied. Notify.

    Args:
        observations: In order. They carry ids, counts and times, never texts.
    """


@hookspec
def library_opened(library: Any) -> None:
    """Learn that a library is open. Notify; a plugin registered later is told at once.

    Args:
        library: The `LibraryOfContext`.
    """


@hookspec
def library_closing(library: Any) -> None:
    """Learn that a library is about to close; it still works. Notify.

    Args:
        library: The `LibraryOfContext`.
    """
