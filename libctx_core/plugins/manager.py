"""The plugins of one library, behind typed methods."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from libctx_core import display
from libctx_core.access.audit import AccessEvent
from libctx_core.errors import LibctxError, PluginError
from libctx_core.models import ContextEvent
from libctx_core.plugins.loader import Loader, name_of
from libctx_core.plugins.specs import StorageFactory
from libctx_core.plugins.status import Fault, PluginStatus
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

    from libctx_core.access.selectors import Boundary, Resource
    from libctx_core.artifacts import Artifact
    from libctx_core.search.neighbours import VectorSearch
    from libctx_core.sources.adapters import SourceAdapter


_AT_OPENING = ("check_access", "sqlite_connect")
"""Hooks a library asks for when it opens; one that came later would be left out without a word."""


class Plugins:
    """What is loaded for one library: parts by explicit name, and its hooks.

    Build it with `Plugins.load`. Names of parts may be qualified, ``plugin:name``.
    """

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._calls = loader.calls
        self._contributions = loader.contributions
        self._library: Any = None

    @classmethod
    def load(
        cls, selection: Sequence[str | object] | None = None, *, environment: Mapping[str, str] | None = None
    ) -> "Plugins":
        """Load the built-ins and what was selected.

        Args:
            selection: Names of installed plugins and plugin objects. All must load: name
                here the plugins that you rely on. None loads what ``LIBCTX_PLUGINS``
                lists, or else everything installed; what fails is then only recorded in
                `statuses`.
            environment: Read instead of `os.environ`.

        Raises:
            PluginNotFoundError: A selected name is not installed.
            PluginConflictError: Two packages install a selected name.
            PluginError: A selected plugin cannot be used.
        """
        loader = Loader()
        loader.load(selection, os.environ if environment is None else environment)
        return cls(loader)

    def register(self, plugin: object, name: str | None = None) -> None:
        """Add one plugin; if the library is open, the plugin is told so.

        Raises:
            PluginConflictError: Another plugin has the name.
            PluginError: It cannot be used, or implements a hook that an open library no
                longer asks: hand it to `LibraryOfContext` instead.
        """
        chosen = name_of(plugin) if name is None else name
        self._loader.admit(plugin, chosen, "given", refused=() if self._library is None else _AT_OPENING)
        if self._library is not None:
            self._calls.notify("library_opened", only=(chosen,), library=self._library)

    @property
    def statuses(self) -> tuple[PluginStatus, ...]:
        """Every plugin met, loaded or not, sorted by name."""
        return tuple(self._loader.statuses[name] for name in sorted(self._loader.statuses))

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The latest exceptions that were isolated, oldest first."""
        return tuple(self._calls.faults)

    def to_records(self) -> list[dict[str, Any]]:
        """Return one mapping per plugin, for data frames."""
        return [asdict(status) for status in self.statuses]

    def __str__(self) -> str:
        return display.table_text("plugins", self.to_records())

    def _repr_html_(self) -> str:
        return display.table_html("plugins", self.to_records())

    def implements(self, hook: str) -> bool:
        """Whether any loaded plugin implements a hook; lets a hot path skip preparing its arguments."""
        return bool(self._calls.implementations(hook))

    # -- named parts ----------------------------------------------------------

    def names(self, hook: str) -> tuple[str, ...]:
        """Return the names that a ``register_…`` hook brought, sorted."""
        return self._contributions.factories[hook].names()

    def storage_backend(self, name: str) -> StorageFactory:
        """Return what opens a store."""
        return self._contributions.factories["register_storage_backends"].find(name).value

    def vector_index(self, name: str) -> "Callable[[], VectorSearch]":
        """Return the factory of a vector index."""
        return self._contributions.factories["register_vector_indexes"].find(name).value

    def embedder(self, name: str) -> Embedder:
        """Build an embedder."""
        embedder: Embedder = self._build("register_embedders", name, Embedder)
        return embedder

    def tokenizer(self, name: str) -> TextCounter:
        """Build a token counter."""
        counter: TextCounter = self._build("register_tokenizers", name, TextCounter)
        return counter

    def source_adapter(self, name: str) -> "SourceAdapter[Any, Any, Any]":
        """Build a source adapter."""
        adapter: SourceAdapter[Any, Any, Any] = self._build("register_source_adapters", name)
        return adapter

    def reranker(self, name: str) -> Any:
        """Build a reranker."""
        return self._build("register_rerankers", name)

    def extractor(self, name: str) -> Any:
        """Build an extractor."""
        return self._build("register_extractors", name)

    def artifact_families(self) -> "tuple[type[Artifact[Any]], ...]":
        """Return the artifact classes, sorted by family.

        Raises:
            PluginConflictError: Two plugins bring one family.
        """
        return tuple(part.value for part in self._contributions.families.parts())

    def tools(self) -> tuple[ToolSpec, ...]:
        """Return the functions a model may call, sorted by name.

        Raises:
            PluginConflictError: Two plugins bring a tool of one name.
        """
        return tuple(part.value for part in self._contributions.tools.parts())

    def resource_kinds(self) -> frozenset[str]:
        """Return the resource kinds that plugins added."""
        return frozenset(kind for kind, owners in self._contributions.resource_kinds.items() if owners)

    def _build(self, hook: str, name: str, port: Any = object) -> Any:
        part = self._contributions.factories[hook].find(name)
        kind = self._contributions.factories[hook].kind
        try:
            built = part.value()
        except LibctxError:
            raise
        except Exception as error:
            raise PluginError(part.owner, f"{kind} {name!r} cannot be built: {type(error).__name__}") from error
        if not isinstance(built, port):
            raise PluginError(part.owner, f"{kind} {name!r} is a {type(built).__name__}, which is no {port.__name__}")
        return built

    # -- hooks ----------------------------------------------------------------

    def sqlite_connect(self, connection: "apsw.Connection") -> None:
        """Let plugins prepare a new connection. Strict."""
        self._calls.strict("sqlite_connect", connection=connection)

    def sanitize_event(self, event: IncomingEvent) -> IncomingEvent:
        """Return the event to store instead. Strict, chained.

        Raises:
            LibctxError: A plugin refuses the event, or failed.
        """
        for implementation in self._calls.implementations("sanitize_event"):
            answer = self._calls.call(implementation, "sanitize_event", {"event": event})
            if answer is None:
                continue
            if not isinstance(answer, IncomingEvent) or _identity(answer) != _identity(event):
                raise PluginError(
                    implementation.plugin_name,
                    "sanitize_event must return an IncomingEvent of the same thread and role",
                )
            event = answer
        return event

    def select_context(self, request: DeskRequest) -> tuple[str, ...] | None:
        """Return the record ids to put on the desk, most wanted first, or None for no opinion. First."""
        answer = self._calls.first("select_context", request=request)
        if answer is None:
            return None
        plugin, chosen = answer
        offered = {candidate.record_id for candidate in request.candidates}
        if not isinstance(chosen, Sequence) or not _are_ids(chosen) or not offered.issuperset(chosen):
            raise PluginError(plugin, "select_context must return record ids of the candidates, in order")
        return tuple(dict.fromkeys(chosen))

    def resolve_containment(self, pairs: Sequence[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Return those of the ``(resource_id, boundary_id)`` pairs that hold. First."""
        answer = self._calls.first("resolve_containment", pairs=tuple(pairs))
        if answer is None:
            return frozenset()
        return frozenset(pair for pair in pairs if pair in answer[1])

    def is_resource_in_boundary(self, resource: "Resource", boundary: "Boundary", /) -> bool:
        """Answer as a containment resolver, so that ``library.plugins`` can be handed over as one."""
        pair = (resource.id, boundary.id)
        return pair in self.resolve_containment([pair])

    def check_access(self, question: AccessQuestion) -> frozenset[str]:
        """Return the resource ids that plugins deny, out of those asked about. Deny-only."""
        try:
            return self.objections(question)
        except LibctxError:
            return frozenset(resource.resource_id for resource in question.resources)

    def objections(self, question: AccessQuestion) -> frozenset[str]:
        """Do what `check_access` does, for whoever remembers answers and must not remember a fault.

        Raises:
            LibctxError: A plugin failed, which is recorded; the caller denies everything asked about.
        """
        asked = frozenset(resource.resource_id for resource in question.resources)
        denied: frozenset[str] = frozenset()
        for implementation in self._calls.implementations("check_access"):
            try:
                answer = self._calls.call(implementation, "check_access", {"question": question})
                denied |= _denials(implementation.plugin_name, answer, asked)
            except LibctxError as error:
                self._calls.record(implementation.plugin_name, "check_access", error.__cause__ or error)
                raise
        return denied

    def propose_protections(
        self, events: Sequence[ContextEvent], *, policies: Collection[str]
    ) -> tuple[ProtectionProposal, ...]:
        """Ask the policies a governor opted into; each proposal names its policy. Notify.

        Args:
            events: New events of one thread, in order.
            policies: Names of the plugins to ask.
        """
        known = {event.event_id for event in events}
        proposals: list[ProtectionProposal] = []
        for policy, answer in self._calls.notify("propose_protections", only=policies, events=tuple(events)):
            try:
                proposals.extend(_proposals(policy, answer, known))
            except Exception as error:  # noqa: BLE001 - a policy's generator may raise anything; it is recorded
                self._calls.record(policy, "propose_protections", error)
        return tuple(proposals)

    def on_event(self, observations: Sequence[Observation]) -> None:
        """Tell observers what happened. Notify."""
        self._calls.notify("on_event", observations=tuple(observations))

    def on_access(self, event: AccessEvent) -> None:
        """Tell observers of a denial or an irregularity, as ``libctx.access.denied`` and so on. Notify."""
        if self.implements("on_event"):
            attributes = {f"libctx.{name}": value for name, value in event.attributes().items()}
            self.on_event([Observation(f"libctx.{event.name}", attributes)])

    def library_opened(self, library: Any) -> None:
        """Tell plugins that the library is open, those registered later included. Notify."""
        self._library = library
        self._calls.notify("library_opened", library=library)

    def library_closing(self, library: Any) -> None:
        """Tell plugins that the library is about to close. Notify."""
        self._library = None
        self._calls.notify("library_closing", library=library)


def _identity(event: IncomingEvent) -> tuple[str, str, str]:
    return event.collection, event.session_id, event.role


def _are_ids(answer: Collection[object]) -> bool:
    return not isinstance(answer, str) and all(isinstance(item, str) for item in answer)


def _denials(plugin: str, answer: object, asked: frozenset[str]) -> frozenset[str]:
    if answer is None:
        return frozenset()
    if not isinstance(answer, Collection) or not _are_ids(answer) or not asked.issuperset(answer):
        raise PluginError(plugin, "check_access must return resource ids out of those asked about")
    return frozenset(answer)


def _proposals(policy: str, answer: Iterable[object], known: Collection[str]) -> list[ProtectionProposal]:
    proposals = []
    for proposal in answer:
        if not isinstance(proposal, ProtectionProposal) or proposal.event_id not in known:
            raise PluginError(policy, "propose_protections must return proposals for the events it was given")
        if not (proposal.reason.strip() and proposal.evidence.strip() and proposal.release_when.strip()):
            raise PluginError(policy, "a proposal needs a reason, evidence and a release condition")
        proposals.append(replace(proposal, policy=policy))
    return proposals
