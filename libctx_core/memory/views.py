"""What the library's own memory operations return, and how it is shown."""

from typing import Any

from libctx_core.artifacts.values import ArtifactRef
from libctx_core.display import Html, preview, table_html, table_text
from libctx_core.memory.values import (
    EntryContext,
    MemoryChange,
    MemoryCitation,
    MemoryEntryState,
    MemoryEntryVersion,
)
from libctx_core.sources.base import Value
from libctx_core.sources.values import SourceRef

_SIGNS = {"add": "+", "revise": "~", "deactivate": "-", "reactivate": "↺"}


class EntryView(Value):
    """An entry as it stands in the newest revision.

    Attributes:
        citation: The anchor of its current version.
        kind: What it is; empty once purged.
        text: What it says; empty once purged.
        state: ``active`` or ``inactive``.
        state_version: Rises with every change of it; pass it as `expected_version`.
        version: Which version of the entry it is, from 1.
        purged: Whether its text was deleted.
        tags: Its labels.
        context: Where it was said.
        sources: Sources it stands on.
    """

    citation: MemoryCitation
    kind: str
    text: str
    state: MemoryEntryState
    state_version: int
    version: int
    purged: bool = False
    tags: tuple[str, ...] = ()
    context: EntryContext = EntryContext()
    sources: tuple[SourceRef, ...] = ()

    @property
    def entry_id(self) -> str:
        """Id of the entry."""
        return self.citation.entry_id


class Remembered(Value):
    """What became of entries that were to be remembered.

    Attributes:
        memory_ref: The newest revision afterwards; None if nothing is remembered at all.
        citations: Where each entry ended, in the order they were given; one that was
            known already is cited too.
        written: Entries that were added or revised.
    """

    memory_ref: ArtifactRef | None
    citations: tuple[MemoryCitation, ...]
    written: int


class MemoryStatus(Value):
    """The size of a memory and how far search is behind.

    Attributes:
        memory_ref: The newest revision, or None.
        entries: Entries in its manifest.
        active: Entries that count.
        pending: Entries of the library that wait for the index.
    """

    memory_ref: ArtifactRef | None
    entries: int
    active: int
    pending: int


class RevisionDiff(Value):
    """What changed between two revisions, entry by entry.

    Attributes:
        artifact_id: The memory.
        before: Revision it starts behind.
        after: Revision it ends at.
        redacted: Revisions whose reasons were purged.
        lines: Every change, in order, with what the entry said before and after.
    """

    artifact_id: str
    before: int
    after: int
    redacted: tuple[int, ...]
    lines: tuple["DiffLine", ...]

    def to_records(self) -> list[dict[str, Any]]:
        """Return one dict per change."""
        return [
            {
                "revision": line.revision,
                "change": f"{_SIGNS[line.change.op]} {line.change.op}",
                "entry": line.change.entry_id,
                "before": line.before,
                "after": line.after,
                "reason": line.change.reason or "",
            }
            for line in self.lines
        ]

    def _summary(self) -> str:
        counts = " ".join(f"{sign}{sum(line.change.op == op for line in self.lines)}" for op, sign in _SIGNS.items())
        marked = f" · reasons purged in r{', r'.join(map(str, self.redacted))}" if self.redacted else ""
        return f"memory/{preview(self.artifact_id, 40)} r{self.before}..r{self.after}: {counts}{marked}"

    def __str__(self) -> str:
        return table_text(self._summary(), self.to_records())

    def __repr__(self) -> str:
        return self._summary()

    def _repr_html_(self) -> Html:
        return table_html(self._summary(), self.to_records())


class DiffLine(Value):
    """One change with the words around it.

    Attributes:
        revision: The revision that made it.
        change: The change.
        before: What the entry said before; empty if nothing, or purged.
        after: What it says after; empty if nothing, or purged.
    """

    revision: int
    change: MemoryChange
    before: str
    after: str


def citation_of(version: MemoryEntryVersion, ref: ArtifactRef) -> MemoryCitation:
    """Return the anchor of a version in a revision."""
    return MemoryCitation(memory_ref=ref, entry_id=version.entry_id, entry_version_id=version.entry_version_id)
