"""What the rooms ask of exchangeable parts: structural types and plain values, no behaviour."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@runtime_checkable
class Embedder(Protocol):
    """Turns text into vectors of one fixed profile.

    Attributes:
        profile_id: Identity of model, table and settings. Vectors of two profiles
            are never compared, so anything that changes a vector must change it.
        dimension: Length of every vector.
    """

    profile_id: str
    dimension: int

    def embed_documents(self, texts: Sequence[str], /) -> "NDArray[np.float32]":
        """Return one row per text, shape ``(len(texts), dimension)``, each of unit length or zero."""
        ...

    def embed_query(self, text: str, /) -> "NDArray[np.float32]":
        """Return the vector of a question, shape ``(dimension,)``, of unit length or zero."""
        ...


@runtime_checkable
class TextCounter(Protocol):
    """Counts the tokens of plain text."""

    @property
    def name(self) -> str:
        """Stable name under which counts are stored."""
        ...

    @property
    def exact(self) -> bool:
        """Whether counts equal the model's own; otherwise they never fall below it."""
        ...

    def count(self, text: str, /) -> int:
        """Return the number of tokens in `text`; never raises for any string."""
        ...


# -- what the rooms and the hooks hand each other ---------------------------------


@dataclass(frozen=True, slots=True)
class IncomingEvent:
    """An event on its way into the log, before anything of it is stored.

    Attributes:
        collection: Collection of its thread.
        session_id: Session of its thread.
        role: One of system, developer, user, assistant, tool.
        content: Text, or a list of content blocks.
        speaker: Who spoke, where roles are not enough.
        metadata: What the caller attached.
    """

    collection: str
    session_id: str
    role: str
    content: str | list[dict[str, Any]]
    speaker: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProtectionProposal:
    """One event a policy wants to keep in every prompt.

    Attributes:
        event_id: The event.
        reason: Why it should stay, in one sentence.
        evidence: The words of the event that the policy went by.
        release_when: When the protection should end, in one sentence.
        policy: Name of the plugin that proposed it; filled in by the manager.
    """

    event_id: str
    reason: str
    evidence: str
    release_when: str
    policy: str = ""


@dataclass(frozen=True, slots=True)
class DeskCandidate:
    """One record that retrieval offers for the reading desk.

    Attributes:
        record_id: Its id.
        text: Its text.
        token_count: Tokens it would take whole.
        score: Relevance, higher is better.
    """

    record_id: str
    text: str
    token_count: int
    score: float


@dataclass(frozen=True, slots=True)
class DeskRequest:
    """A choice to be made for one envelope.

    Attributes:
        collection: Collection of the thread.
        session_id: Session of the thread.
        focus: What the desk should be about.
        token_budget: Tokens left for the desk.
        candidates: What may be chosen, best first.
    """

    collection: str
    session_id: str
    focus: str
    token_budget: int
    candidates: tuple[DeskCandidate, ...]


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """Identity of one protected resource, without anything of its content.

    Attributes:
        kind: Resource kind, e.g. ``"THREAD"``.
        resource_id: Its id.
        boundary_id: The boundary it lies in, if any.
    """

    kind: str
    resource_id: str
    boundary_id: str | None = None


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """May this principal do this with these resources?

    Attributes:
        principal: Id of the principal.
        operation: READ, WRITE, CREATE, DELETE, ENUMERATE or DELEGATE.
        resources: What the scope itself would allow; only these can be denied.
    """

    principal: str
    operation: str
    resources: tuple[ResourceRef, ...]


@dataclass(frozen=True, slots=True)
class Observation:
    """Something that happened, told after it was committed.

    Attributes:
        name: What happened, e.g. ``"libctx.event.recorded"``.
        attributes: Facts about it, named as OpenTelemetry names them for generative
            AI where it has a name (``gen_ai.conversation.id``, ``gen_ai.operation.name``,
            ``gen_ai.usage.input_tokens``); never the text of an event.
    """

    name: str
    attributes: Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function that a model may call.

    Attributes:
        name: Name the model sees.
        description: What it does, for the model.
        parameters: JSON Schema of its arguments, an object schema.
        function: Called with the governor first, then the arguments by name.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    function: Callable[..., Any]
