"""Artifacts: optimistic revisions and lineage. Triggers: pure windows and durable cursors."""

import threading
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from libctx_core.artifacts import (
    Artifact,
    ArtifactCatalog,
    ArtifactDraft,
    ArtifactLineage,
    ArtifactRef,
    Artifacts,
    ArtifactShelf,
    ArtifactStore,
    SQLiteArtifactStore,
)
from libctx_core.errors import (
    ArtifactFamilyMismatchError,
    ArtifactNotFoundError,
    GenerationConflictError,
    InvalidArtifactReferenceError,
    InvalidInputError,
    RevisionConflictError,
)
from libctx_core.memory import ContextComponents, PowerContext
from libctx_core.sources import SourceCursor, SourceRef
from libctx_core.store import Database
from libctx_core.triggers import CursorStore, ProcessSourceWindow, SourceHighWatermark, SourceWindowTrigger


class Summary(BaseModel):
    text: str


class SummaryArtifact(Artifact[Summary]):
    family: ClassVar[str] = "summary"


class SummaryDraft(ArtifactDraft[Summary]):
    family: ClassVar[str] = "summary"


class PlanDraft(ArtifactDraft[Summary]):
    family: ClassVar[str] = "plan"


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "library.db")
    yield database
    database.close()


@pytest.fixture
def shelf(database):
    return ArtifactShelf(database, "team", [SummaryArtifact])


def draft(text: str, **evidence) -> SummaryDraft:
    return SummaryDraft(content=Summary(text=text), **evidence)


def test_revisions_keep_content_and_lineage_in_the_given_order(shelf):
    sources = (SourceRef(source_type="z", source_id="2"), SourceRef(source_type="a", source_id="1"))
    first = shelf.add(draft("one", sources=sources))
    second = shelf.revise(first, draft("two", sources=sources[:1], artifacts=(first.as_ref(),)))
    assert (first.revision, second.revision) == (1, 2)
    assert second.artifact_id == first.artifact_id
    assert shelf.revisions(second) == (first, second)
    assert shelf.latest(first) == second
    assert shelf.revision(first.as_ref()).lineage == ArtifactLineage(sources=sources)
    assert second.lineage.artifacts == (first.as_ref(),)


def test_only_the_latest_revision_can_be_revised(shelf):
    first = shelf.add(draft("one"))
    second = shelf.revise(first, draft("two"))
    with pytest.raises(RevisionConflictError) as caught:
        shelf.revise(first, draft("three"))
    assert (caught.value.artifact, caught.value.current) == (first, second)
    assert shelf.revisions(first) == (first, second)


def test_racing_revisions_have_one_winner(shelf):
    first = shelf.add(draft("one"))
    won, lost = [], []

    def race(name: str) -> None:
        try:
            won.append(shelf.revise(first, draft(name)))
        except RevisionConflictError as error:
            lost.append(error.current)

    threads = [threading.Thread(target=race, args=(f"writer {at}",)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert lost == won * 7


def test_an_artifact_must_equal_what_is_stored(shelf):
    first = shelf.add(draft("one"))
    with pytest.raises(ArtifactNotFoundError):
        shelf.get(first.model_copy(update={"content": Summary(text="forged")}))
    with pytest.raises(ArtifactNotFoundError):
        shelf.revision(ArtifactRef(family="summary", artifact_id="nobody", revision=1))


def test_an_unknown_family_and_a_bare_content_are_refused(shelf):
    with pytest.raises(InvalidInputError):
        shelf.add(PlanDraft(content=Summary(text="x")))
    with pytest.raises(InvalidInputError):
        shelf.add(SummaryDraft.model_construct(content="bare", sources=(), artifacts=()))


async def test_the_seeds_group_refuses_another_family_before_the_store(shelf):
    class Untouchable:
        async def add(self, draft, /):
            raise AssertionError

        async def revise(self, artifact, draft, /):
            raise AssertionError

    store = SQLiteArtifactStore(shelf)
    assert isinstance(store, ArtifactStore)
    assert isinstance(store, ArtifactCatalog)
    group = Artifacts(catalog=store, store=store)
    first = await group.add(draft("one"))
    second = await group.revise(first, draft("two"))
    assert await group.latest(first) == second
    assert await group.get(first) == first
    assert await group.revisions(first) == (first, second)
    with pytest.raises(ArtifactFamilyMismatchError):
        await Artifacts(catalog=store, store=Untouchable()).revise(first, PlanDraft(content=Summary(text="x")))


@pytest.mark.parametrize("revision", [0, -1, True, "1", 1.0])
def test_revisions_are_strict_positive_integers(revision):
    with pytest.raises(InvalidInputError) as caught:
        ArtifactRef(family="summary", artifact_id="a", revision=revision)
    assert caught.value.field == "revision"


@pytest.mark.parametrize(("family", "artifact_id"), [("", "a"), ("f" * 129, "a"), ("f", " a"), ("f", "a" * 129)])
def test_identities_are_bounded(family, artifact_id):
    with pytest.raises(InvalidArtifactReferenceError):
        ArtifactRef(family=family, artifact_id=artifact_id, revision=1)


def test_a_class_with_an_impossible_family_makes_no_drafts():
    class Odd(ArtifactDraft[Summary]):
        family: ClassVar[str] = " padded"

    with pytest.raises(InvalidArtifactReferenceError):
        Odd(content=Summary(text="x"))


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 100))
def test_a_window_is_bounded_and_moves_forward(sequence, cursor, limit):
    state = SourceCursor(sequence=cursor)
    transition = SourceWindowTrigger().activate(SourceHighWatermark(sequence=sequence, limit=limit), state)
    if sequence <= cursor:
        assert transition.actions == ()
        assert transition.state == state
    else:
        through = min(sequence, cursor + limit)
        assert transition.actions == (ProcessSourceWindow(after=cursor, through=through),)
        assert transition.state.sequence == through


@given(st.integers(0, 300), st.integers(1, 50))
def test_windows_cover_a_journal_without_gap_or_overlap(sequence, limit):
    trigger, covered = SourceWindowTrigger(), []
    state = trigger.initial_state()
    while (found := trigger.activate(SourceHighWatermark(sequence=sequence, limit=limit), state)).actions:
        covered.extend(range(found.actions[0].after + 1, found.actions[0].through + 1))
        state = found.state
    assert covered == list(range(1, sequence + 1))


def test_a_cursor_moves_once_per_generation(database):
    cursors = CursorStore(database, "team")
    assert cursors.read("b") == (SourceCursor(), 0)
    assert cursors.move("b", SourceCursor(sequence=5), generation=0) == 1
    with pytest.raises(GenerationConflictError) as caught:
        cursors.move("b", SourceCursor(sequence=9), generation=0)
    assert (caught.value.expected, caught.value.current) == (0, 1)
    assert cursors.read("b") == (SourceCursor(sequence=5), 1)
    assert CursorStore(database, "other").read("b").generation == 0
    with pytest.raises(InvalidInputError):
        cursors.read("x" * 129)


def test_a_cursor_and_what_it_caused_share_a_transaction(database):
    cursors = CursorStore(database, "team")

    def fail(connection):
        cursors.move_in(connection, "b", SourceCursor(sequence=5), generation=0)
        raise RuntimeError("the consequence failed")

    with pytest.raises(RuntimeError):
        database.write(fail)
    assert cursors.read("b").cursor.sequence == 0


def test_components_are_bound_by_name_under_both_names():
    context = ContextComponents(sources="s", artifacts="a", triggers="t")
    assert (context.sources, context.artifacts, context.triggers) == ("s", "a", "t")
    assert PowerContext is ContextComponents
