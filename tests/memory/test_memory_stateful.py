"""Any sequence of operations gives what a model with complete manifests gives."""

import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from libctx_core.errors import (
    MemoryEntryConflictError,
    MemoryEntryInactiveError,
    MemoryEntryPurgedError,
    RevisionConflictError,
)
from libctx_core.memory import Memories, MemoryChange, Proposal
from libctx_core.search.index import SearchIndex
from libctx_core.search.searcher import Searcher
from libctx_core.sources import SourceRef
from libctx_core.store import Database
from tests.memory.model import ModelEntry, ModelMemory

TEXTS = st.sampled_from(["Tea.", "Coffee.", "Café.", "The deploy is on Friday.", "注意"])
KINDS = st.sampled_from(["fact", "decision"])
SOURCES = st.sets(st.sampled_from([SourceRef(source_type="event", source_id=f"e{n}") for n in range(3)]), max_size=2)
REASONS = st.none() | st.sampled_from(["because", "Überprüft"])
PICK = st.integers(0, 10**6)


class MemoryMachine(RuleBasedStateMachine):
    """One memory in a file, next to its model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.model = ModelMemory()
        self.made = 0
        self.open()

    def open(self) -> None:
        self.database = Database(Path(self.folder.name) / "library.db", durability="normal")
        self.memories = Memories(
            self.database, SearchIndex(self.database), Searcher(self.database), id_factory=self.make_id
        )

    def make_id(self, kind: str) -> str:
        """The same ids in every run, in no order."""
        self.made += 1
        return hashlib.sha256(f"{kind} {self.made}".encode()).hexdigest()[:12]

    def teardown(self) -> None:
        self.check_everything()
        self.database.close()
        self.folder.cleanup()

    # -- operations -----------------------------------------------------------

    @rule(
        wanted=st.lists(st.tuples(KINDS, TEXTS, SOURCES, REASONS), min_size=1, max_size=4),
    )
    def remember(self, wanted):
        done = self.memories.remember_many(
            [Proposal(kind=k, text=t, sources=tuple(s), reason=r) for k, t, s, r in wanted]
        )
        changes = []
        for (kind, text, sources, reason), citation in zip(wanted, done.citations, strict=True):
            holders = self.model.holder(kind, text, frozenset(sources))
            if holders:
                assert citation.entry_id in holders
                continue
            assert citation.entry_id not in self.model.entries
            ordered = tuple(sorted(sources, key=lambda ref: ref.source_id))
            self.model.entries[citation.entry_id] = ModelEntry([(citation.entry_version_id, kind, text, ordered)])
            changes.append(
                MemoryChange(
                    op="add",
                    entry_id=citation.entry_id,
                    from_entry_version_id=None,
                    to_entry_version_id=citation.entry_version_id,
                    reason=reason,
                )
            )
        assert done.written == len(changes)
        self.model.commit(changes)

    def pick(self, number: int) -> str:
        keys = sorted(self.model.entries)
        return keys[number % len(keys)]

    @precondition(lambda self: self.model.entries)
    @rule(at=PICK, text=TEXTS, kind=st.none() | KINDS, sources=SOURCES, reason=REASONS)
    def revise(self, at, text, kind, sources, reason):
        key = self.pick(at)
        entry = self.model.entries[key]
        call = lambda: self.memories.revise(key, text, kind=kind, sources=tuple(sources), reason=reason)  # noqa: E731
        if entry.purged:
            with pytest.raises(MemoryEntryPurgedError):
                call()
            return
        if not entry.active:
            with pytest.raises(MemoryEntryInactiveError):
                call()
            return
        before, old_kind, _, old_sources = entry.current
        united = tuple(sorted({*old_sources, *sources}, key=lambda ref: ref.source_id))
        wanted = (kind or old_kind, text, frozenset(united))
        done = call()
        if wanted == entry.content:
            assert done.written == 0
            return
        (citation,) = done.citations
        entry.versions.append((citation.entry_version_id, kind or old_kind, text, united))
        self.model.commit(
            [
                MemoryChange(
                    op="revise",
                    entry_id=key,
                    from_entry_version_id=before,
                    to_entry_version_id=citation.entry_version_id,
                    reason=reason,
                )
            ]
        )

    @precondition(lambda self: self.model.entries)
    @rule(picks=st.lists(PICK, min_size=1, max_size=3), active=st.booleans(), reason=REASONS)
    def change_state(self, picks, active, reason):
        keys = [self.pick(at) for at in picks]
        call = self.memories.reactivate if active else self.memories.forget
        if any(self.model.entries[key].purged for key in keys):
            with pytest.raises(MemoryEntryPurgedError):
                call(*keys, reason=reason)
            return
        call(*keys, reason=reason)
        self.model.flip(keys, active=active, reason=reason)

    @precondition(lambda self: self.model.entries)
    @rule(mode=st.sampled_from(["dedupe", "normalize", "default"]))
    def organize(self, mode):
        self.memories.organize(mode=mode)
        extra, seen = [], set()
        for key in sorted(self.model.entries):
            entry = self.model.entries[key]
            if entry.active and entry.content in seen:
                extra.append(key)
            if entry.active:
                seen.add(entry.content)
        if mode != "normalize":
            self.model.flip(extra, active=False, reason="dedupe")

    @precondition(lambda self: self.model.entries)
    @rule(picks=st.lists(PICK, min_size=1, max_size=2))
    def purge(self, picks):
        keys = [self.pick(at) for at in picks]
        self.memories.purge(*keys)
        self.model.purge(keys)

    @precondition(lambda self: self.model.entries)
    @rule(at=PICK, tag=st.sampled_from("ab"))
    def tag(self, at, tag):
        self.memories.tag(self.pick(at), add=[tag])

    # -- losers, restarts, search ---------------------------------------------

    @precondition(lambda self: len(self.model.revisions) > 1)
    @rule(behind=st.integers(1, 5))
    def lose(self, behind):
        stale = max(0, len(self.model.revisions) - behind)
        with pytest.raises(RevisionConflictError) as caught:
            self.memories.remember("never", expected_revision=stale)
        assert caught.value.current.revision == len(self.model.revisions)

    @precondition(lambda self: self.model.entries)
    @rule(at=PICK)
    def lose_one_entry(self, at):
        key = self.pick(at)
        with pytest.raises((MemoryEntryConflictError, MemoryEntryPurgedError)):
            self.memories.revise(key, "never", expected_version=self.memories.entry(key).state_version + 1)

    @rule()
    def reopen(self):
        self.database.close()
        self.open()

    @precondition(lambda self: self.model.revisions)
    @rule(text=TEXTS)
    def search(self, text):
        found = {hit.entry_id: hit.text for hit in self.memories.search(text, limit=1000).hits}
        active = {key: entry.current[2] for key, entry in self.model.entries.items() if entry.active}
        assert found == active

    # -- what must hold -------------------------------------------------------

    @invariant()
    def newest_is_the_models(self):
        if not self.model.revisions:
            assert self.memories.names() == ()
            return
        head = self.memories.head()
        assert head.revision == len(self.model.revisions)
        assert head.content == self.model.revisions[-1]

    def check_everything(self) -> None:
        for number, content in enumerate(self.model.revisions, start=1):
            stored = self.memories.revision(number)
            assert stored.content.manifest == content.manifest
            assert stored.content.changes == content.changes
            assert self.memories.content_hash(number) == self.model.hashes[number - 1]
        for key, entry in self.model.entries.items():
            texts = [version.text for version in self.memories.history(key)]
            assert texts == ["" if entry.purged else text for _, _, text, _ in entry.versions]
        if self.model.revisions:
            changes = self.memories.changes(0)
            assert [group.changes for group in changes] == [content.changes for content in self.model.revisions]
            status = self.memories.status()
            assert status.entries == len(self.model.entries)
            assert status.active == sum(entry.active for entry in self.model.entries.values())


def test_any_sequence_equals_the_naive_model():
    run_state_machine_as_test(
        MemoryMachine,
        settings=settings(
            max_examples=20, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_any_sequence_equals_the_naive_model_at_length():
    run_state_machine_as_test(
        MemoryMachine,
        settings=settings(
            max_examples=400, stateful_step_count=100, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
