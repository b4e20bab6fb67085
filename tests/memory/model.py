"""A memory as it would be with complete manifests: what any sequence of operations must give."""

from dataclasses import dataclass, field

from libctx_core.memory import (
    MemoryChange,
    MemoryContent,
    MemoryManifest,
    MemoryManifestEntry,
    entry_content_hash,
    memory_content_hash,
)
from libctx_core.sources import SourceRef


@dataclass
class ModelEntry:
    versions: list[tuple[str, str, str, tuple[SourceRef, ...]]]
    active: bool = True
    purged: bool = False

    @property
    def current(self) -> tuple[str, str, str, tuple[SourceRef, ...]]:
        return self.versions[-1]

    @property
    def content(self) -> tuple[str, str, frozenset[SourceRef]]:
        _, kind, text, sources = self.current
        return kind, text, frozenset(sources)


@dataclass
class ModelMemory:
    """Every revision in full."""

    entries: dict[str, ModelEntry] = field(default_factory=dict)
    revisions: list[MemoryContent] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)

    def holder(self, kind: str, text: str, sources: frozenset[SourceRef]) -> set[str]:
        """Ids of the active entries with this content."""
        return {key for key, entry in self.entries.items() if entry.active and entry.content == (kind, text, sources)}

    def commit(self, changes: list[MemoryChange]) -> None:
        """Append a revision with a complete manifest, if anything changed."""
        if not changes:
            return
        manifest = MemoryManifest(
            entries=tuple(
                MemoryManifestEntry(
                    entry_id=key,
                    entry_version_id=entry.current[0],
                    entry_content_hash=entry_content_hash(*entry.current[1:]),
                    state="active" if entry.active else "inactive",
                )
                for key, entry in sorted(self.entries.items())
            )
        )
        ordered = tuple(sorted(changes, key=lambda change: change.entry_id))
        content = MemoryContent(manifest=manifest, changes=ordered)
        self.revisions.append(content)
        self.hashes.append(memory_content_hash(content))

    def flip(self, keys: list[str], *, active: bool, reason: str | None) -> None:
        """Change the state of entries."""
        changes = []
        for key in dict.fromkeys(keys):
            entry = self.entries[key]
            if entry.active == active:
                continue
            entry.active = active
            version = entry.current[0]
            changes.append(
                MemoryChange(
                    op="reactivate" if active else "deactivate",
                    entry_id=key,
                    from_entry_version_id=None if active else version,
                    to_entry_version_id=version if active else None,
                    reason=reason,
                )
            )
        self.commit(changes)

    def purge(self, keys: list[str]) -> None:
        """Erase entries: reasons of their changes go, hashes and manifests stay."""
        targets = {key for key in keys if not self.entries[key].purged}
        self.revisions = [
            content.model_copy(
                update={
                    "changes": tuple(
                        change.model_copy(update={"reason": None}) if change.entry_id in targets else change
                        for change in content.changes
                    )
                }
            )
            for content in self.revisions
        ]
        before = {key: entry_content_hash(*self.entries[key].current[1:]) for key in targets}
        self.flip([key for key in keys if key in targets], active=False, reason="purge")
        for key in targets:
            self.entries[key].purged = True
            assert before[key] == entry_content_hash(*self.entries[key].current[1:])
