"""Letting a model propose entries: it can add and revise with evidence, and nothing else."""

from typing import Literal, Protocol, TypeAlias

from pydantic import JsonValue

from libctx_core.artifacts.values import AnyArtifact
from libctx_core.errors import InvalidInferenceOutputError, InvalidInputError, InvalidMemoryEvidenceError
from libctx_core.memory.evidence import DefaultMemoryEvidenceProjector, MemoryEvidenceProjector
from libctx_core.memory.inference import GenerationResult, StructuredGenerator
from libctx_core.memory.prompts import EXTRACTION_POLICIES, MemoryExtractionProfile
from libctx_core.memory.values import KnownMemoryEntryKind, MemoryEntryInput, MemoryEntryVersion
from libctx_core.ports import TextCounter
from libctx_core.sources.base import Value
from libctx_core.sources.values import Source
from libctx_core.tokens import TokenCounter

MemoryExtractionIntent: TypeAlias = Literal["add", "revise"]
MemoryEvidenceType: TypeAlias = Literal["source", "artifact"]

OPERATION = "memory-extract"
DEFAULT_TOKEN_BUDGET = 16_000
"""Tokens that evidence and entries may take together in the prompt of one extraction."""


class MemoryCandidateRequest(Value):
    """What a pipeline may draw on.

    Attributes:
        sources: Stored sources.
        artifacts: Stored artifacts.
        current_entries: Active entries that have to do with them, most relevant first.
    """

    sources: tuple[Source, ...]
    artifacts: tuple[AnyArtifact, ...]
    current_entries: tuple[MemoryEntryVersion, ...]


class CandidatePipeline(Protocol):
    """Proposes entries; what it returns is untrusted and checked like any input."""

    async def extract(self, request: MemoryCandidateRequest, /) -> tuple[MemoryEntryInput, ...]:
        """Return proposals."""
        ...


class MemoryExtractionEvidence(Value):
    """A piece of evidence as a model sees it.

    Attributes:
        evidence_id: Its id within this request.
        evidence_type: ``source`` or ``artifact``.
        content: What the projector shows of it.
    """

    evidence_id: str
    evidence_type: MemoryEvidenceType
    content: JsonValue


class MemoryExtractionCurrentEntry(Value):
    """An active entry as a model sees it."""

    entry_id: str
    kind: str
    text: str


class MemoryExtractionInput(Value):
    """What a model sees.

    Attributes:
        evidence: All evidence of the operation.
        current_entries: Entries that have to do with it, as many as the budget holds.
    """

    evidence: tuple[MemoryExtractionEvidence, ...]
    current_entries: tuple[MemoryExtractionCurrentEntry, ...]


class MemoryExtractionCandidate(Value):
    """What a model proposes.

    Attributes:
        intent: ``add`` or ``revise``.
        kind: One of the known kinds.
        text: What it says.
        evidence_ids: Evidence it stands on, by the ids of the request.
        entry_id: Entry it revises.
        reason: Why.
    """

    intent: MemoryExtractionIntent
    kind: KnownMemoryEntryKind
    text: str
    evidence_ids: tuple[str, ...]
    entry_id: str | None = None
    reason: str | None = None


class MemoryExtractionOutput(Value):
    """A model's answer; no candidates mean that nothing is to be remembered."""

    candidates: tuple[MemoryExtractionCandidate, ...] = ()


class _Material:
    """Evidence by the ids a model uses for it."""

    def __init__(self, request: MemoryCandidateRequest, projector: MemoryEvidenceProjector) -> None:
        self.sources = {f"source:{at}": source for at, source in enumerate(request.sources)}
        self.artifacts = {f"artifact:{at}": artifact for at, artifact in enumerate(request.artifacts)}
        self.shown = tuple(
            [
                MemoryExtractionEvidence(
                    evidence_id=key, evidence_type="source", content=projector.project_source(source)
                )
                for key, source in self.sources.items()
            ]
            + [
                MemoryExtractionEvidence(
                    evidence_id=key, evidence_type="artifact", content=projector.project_artifact(artifact)
                )
                for key, artifact in self.artifacts.items()
            ]
        )

    def select(self, candidate: MemoryExtractionCandidate) -> tuple[tuple[Source, ...], tuple[AnyArtifact, ...]]:
        """Return the evidence a candidate cites."""
        if not candidate.evidence_ids:
            raise InvalidInferenceOutputError(OPERATION, "a candidate cites no evidence")
        cited = dict.fromkeys(candidate.evidence_ids)
        if not all(key in self.sources or key in self.artifacts for key in cited):
            raise InvalidInferenceOutputError(OPERATION, "a candidate cites evidence that was not given")
        return (
            tuple(self.sources[key] for key in cited if key in self.sources),
            tuple(self.artifacts[key] for key in cited if key in self.artifacts),
        )


class LLMMemoryCandidatePipeline:
    """Asks a model for candidates and maps them back to exact values.

    Args:
        generator: The model, set up with `extraction_instructions` or its own.
        evidence_projector: Says what the model sees of evidence.
        profile: What kind of evidence it gets; names the policy of its instructions.
        token_budget: Tokens that evidence and entries may take together.
        counter: Counts them.

    Attributes:
        evidence_projector: Says what the model sees of evidence.
        policy_id: Name of the policy of the instructions.
    """

    def __init__(
        self,
        generator: StructuredGenerator[MemoryExtractionInput, MemoryExtractionOutput],
        *,
        evidence_projector: MemoryEvidenceProjector | None = None,
        profile: MemoryExtractionProfile = MemoryExtractionProfile.CODING,
        token_budget: int = DEFAULT_TOKEN_BUDGET,
        counter: TextCounter | None = None,
    ) -> None:
        self._generator = generator
        self.evidence_projector: MemoryEvidenceProjector = evidence_projector or DefaultMemoryEvidenceProjector()
        self.policy_id = EXTRACTION_POLICIES[profile]
        self._token_budget = token_budget
        self._counter: TextCounter = counter or TokenCounter.for_model()

    async def extract(self, request: MemoryCandidateRequest, /) -> tuple[MemoryEntryInput, ...]:
        """Return what the model proposes; `MemoryService` checks it further.

        Raises:
            InvalidMemoryEvidenceError: The evidence alone exceeds the token budget (``projection``).
            InvalidInferenceOutputError: A candidate breaks a rule; none is used.
        """
        material = _Material(request, self.evidence_projector)
        shown = self._within_budget(material.shown, request.current_entries)
        result = await self._generator.generate(
            MemoryExtractionInput(
                evidence=material.shown,
                current_entries=tuple(
                    MemoryExtractionCurrentEntry(entry_id=entry.entry_id, kind=entry.kind, text=entry.text)
                    for entry in shown.values()
                ),
            )
        )
        revised: set[str] = set()
        found = []
        for candidate in _checked_output(result).candidates:
            sources, artifacts = material.select(candidate)
            found.append(
                MemoryEntryInput(
                    entry=_target(candidate, shown, revised),
                    kind=candidate.kind,
                    text=candidate.text,
                    sources=sources,
                    artifacts=artifacts,
                    reason=candidate.reason,
                )
            )
        return tuple(found)

    def _within_budget(
        self, evidence: tuple[MemoryExtractionEvidence, ...], entries: tuple[MemoryEntryVersion, ...]
    ) -> dict[str, MemoryEntryVersion]:
        """Return the first entries that fit beside the evidence, by entry id."""
        used = sum(self._counter.count(piece.model_dump_json()) for piece in evidence)
        if used > self._token_budget:
            raise InvalidMemoryEvidenceError(
                "projection", f"the evidence takes {used} tokens, the budget is {self._token_budget}; give less at once"
            )
        shown: dict[str, MemoryEntryVersion] = {}
        for entry in entries:
            used += self._counter.count(entry.text) + self._counter.count(f"{entry.entry_id} {entry.kind}")
            if used > self._token_budget:
                break
            shown[entry.entry_id] = entry
        return shown


def _checked_output(result: GenerationResult[MemoryExtractionOutput]) -> MemoryExtractionOutput:
    """Return a generator's output in its schema, whatever it really returned."""
    output: object = result.output
    try:
        if isinstance(output, MemoryExtractionOutput):
            return MemoryExtractionOutput.model_validate(output.model_dump())
        return MemoryExtractionOutput.model_validate(output)
    except InvalidInputError as error:
        raise InvalidInferenceOutputError(OPERATION, f"the output is not in its schema ({error})") from error


def _target(
    candidate: MemoryExtractionCandidate, shown: dict[str, MemoryEntryVersion], revised: set[str]
) -> MemoryEntryVersion | None:
    """Return the entry a candidate revises, None for an addition."""
    if candidate.intent == "add":
        if candidate.entry_id is not None:
            raise InvalidInferenceOutputError(OPERATION, "an addition names an entry")
        return None
    if candidate.entry_id is None:
        raise InvalidInferenceOutputError(OPERATION, "a revision names no entry")
    if candidate.entry_id not in shown:
        raise InvalidInferenceOutputError(OPERATION, "a revision names an entry that was not given")
    if candidate.entry_id in revised:
        raise InvalidInferenceOutputError(OPERATION, "an entry is revised twice")
    revised.add(candidate.entry_id)
    return shown[candidate.entry_id]
