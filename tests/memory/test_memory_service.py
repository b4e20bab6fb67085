"""The seed's operations, object in and object out, over the library and over a naive backend."""

import pytest

from libctx_core.artifacts import ArtifactRef
from libctx_core.errors import (
    ArtifactNotFoundError,
    CapabilityNotSupportedError,
    InvalidInputError,
    InvalidMemoryCandidateError,
    InvalidMemoryCitationError,
    InvalidMemoryEvidenceError,
    MemoryEntryInactiveError,
    MemoryEntryNotFoundError,
    RevisionConflictError,
)
from libctx_core.memory import (
    EntryContext,
    Memory,
    MemoryCitation,
    MemoryEntryInput,
    memory_content_hash,
)
from libctx_core.sources import ContentSource, SourceMaterialization, SourceRef


def fact(text: str, **options) -> MemoryEntryInput:
    return MemoryEntryInput(kind=options.pop("kind", "fact"), text=text, **options)


def text_source(name: str, content: str = "evidence") -> ContentSource:
    return ContentSource(name=name, materialization=SourceMaterialization.CAPTURED, content=content)


class Resolver:
    """Knows every content source."""

    async def get(self, source, /):
        return source

    def as_ref(self, source, /) -> SourceRef:
        return SourceRef(source_type="content", source_id=source.name)


async def start(service, *texts: str) -> Memory:
    return await service.remember(memory=None, entries=[fact(text) for text in texts])


async def test_a_memory_starts_with_the_first_thing_written(make_service):
    service = make_service()
    memory = await start(service, "One.", "Two.")
    assert (memory.revision, memory.family) == (1, "memory")
    assert [change.op for change in memory.content.changes] == ["add", "add"]
    ids = [entry.entry_id for entry in memory.content.manifest.entries]
    assert ids == sorted(ids, key=str.encode)
    assert {version.text for version in await service.entries(memory)} == {"One.", "Two."}
    assert await service.head(memory.artifact_id) == memory
    assert await service.revision(memory.as_ref()) == memory
    assert await service.get(memory) == memory


async def test_equal_entries_are_written_once(make_service):
    service = make_service()
    memory = await start(service, "One.", " One. ", "Two.")
    assert len(memory.content.changes) == 2
    again = await service.remember(memory=memory, entries=[fact("Two."), fact("One.")])
    assert again is memory
    assert (await service.head(memory.artifact_id)).revision == 1


async def test_a_forgotten_entry_does_not_stop_an_equal_one(make_service):
    service = make_service()
    memory = await start(service, "One.")
    memory = await service.forget(memory, entries=await service.entries(memory))
    memory = await service.remember(memory=memory, entries=[fact("One.")])
    assert [entry.state for entry in memory.content.manifest.entries].count("active") == 1
    assert len(memory.content.manifest.entries) == 2


async def test_a_revision_keeps_and_adds_evidence(make_service):
    service = make_service(source_resolver=Resolver())
    a, b = text_source("a"), text_source("b")
    memory = await service.remember(memory=None, sources=[a], entries=[fact("One.", sources=(a,))])
    (entry,) = await service.entries(memory)
    memory = await service.remember(
        memory=memory, sources=[b], entries=[fact("One and a half.", entry=entry, sources=(b,), reason="new")]
    )
    (revised,) = await service.entries(memory)
    assert (revised.version, revised.previous_version_id) == (2, entry.entry_version_id)
    assert [ref.source_id for ref in revised.sources] == ["a", "b"]
    assert memory.lineage.sources == (SourceRef(source_type="content", source_id="b"),)
    (change,) = memory.content.changes
    assert (change.op, change.from_entry_version_id, change.to_entry_version_id, change.reason) == (
        "revise",
        entry.entry_version_id,
        revised.entry_version_id,
        "new",
    )
    assert await service.remember(memory=memory, entries=[fact("One and a half.", entry=revised)]) is memory


async def test_only_the_current_active_version_can_be_revised(make_service):
    service = make_service()
    memory = await start(service, "One.")
    (old,) = await service.entries(memory)
    memory = await service.remember(memory=memory, entries=[fact("Two.", entry=old)])
    with pytest.raises(InvalidMemoryCitationError) as caught:
        await service.remember(memory=memory, entries=[fact("Three.", entry=old)])
    assert caught.value.code == "entry-mismatch"
    (current,) = await service.entries(memory)
    with pytest.raises(InvalidMemoryCandidateError) as duplicate:
        await service.remember(memory=memory, entries=[fact("A", entry=current), fact("B", entry=current)])
    assert duplicate.value.code == "duplicate-target"
    memory = await service.forget(memory, entries=[current])
    with pytest.raises(MemoryEntryInactiveError):
        await service.remember(memory=memory, entries=[fact("Three.", entry=current)])
    stranger = current.model_copy(update={"entry_id": "nobody"})
    with pytest.raises(MemoryEntryNotFoundError):
        await service.remember(memory=memory, entries=[fact("Three.", entry=stranger)])


async def test_state_changes_are_idempotent_and_keep_the_version(make_service):
    service = make_service()
    memory = await start(service, "One.", "Two.")
    one, two = await service.entries(memory)
    forgotten = await service.forget(memory, entries=[one, one], reason=" old ")
    (change,) = forgotten.content.changes
    assert (change.op, change.from_entry_version_id, change.to_entry_version_id, change.reason) == (
        "deactivate",
        one.entry_version_id,
        None,
        "old",
    )
    assert forgotten.lineage.sources == ()
    assert await service.forget(forgotten, entries=[one]) is forgotten
    back = await service.reactivate(forgotten, entries=[one.entry_id, two.entry_id])
    (change,) = back.content.changes
    assert (change.op, change.from_entry_version_id, change.to_entry_version_id) == (
        "reactivate",
        None,
        one.entry_version_id,
    )
    assert back.content.manifest == memory.content.manifest


async def test_organize_keeps_the_smallest_id_of_equal_entries(make_service):
    ids = iter(["m1", "e2", "v2", "e1", "v1"])
    service = make_service(id_factory=lambda kind: next(ids))
    memory = await start(service, "Two.", "One.")
    e1, e2 = await service.entries(memory)
    ids = iter(["v3"])
    memory = await service.remember(memory=memory, entries=[fact(e1.text, entry=e2)])
    tidy = await service.organize(memory, mode="dedupe")
    (change,) = tidy.content.changes
    assert (change.entry_id, change.op, change.reason) == ("e2", "deactivate", "dedupe")
    assert await service.organize(tidy) is tidy
    assert await service.organize(tidy, mode="normalize") is tidy
    with pytest.raises(InvalidMemoryCandidateError) as caught:
        await service.organize(tidy, mode="merge")
    assert caught.value.code == "organize-mode"


async def test_changes_of_one_or_many_revisions(make_service):
    service = make_service()
    first = await start(service, "One.")
    second = await service.remember(memory=first, entries=[fact("Two.")])
    third = await service.forget(second, entries=await service.entries(first))
    assert [group.memory_ref.revision for group in await service.changes(third)] == [3]
    assert [group.memory_ref.revision for group in await service.changes(third, since_revision=0)] == [1, 2, 3]
    assert [group.changes for group in await service.changes(third, since_revision=1)] == [
        second.content.changes,
        third.content.changes,
    ]
    assert await service.changes(third, since_revision=3) == ()
    for impossible in (-1, 4):
        with pytest.raises(InvalidInputError):
            await service.changes(third, since_revision=impossible)
    assert await service.revisions(first) == (first, second, third)


async def test_a_write_needs_the_newest_revision(make_service):
    service = make_service()
    first = await start(service, "One.")
    second = await service.remember(memory=first, entries=[fact("Two.")])
    for write in (
        lambda: service.remember(memory=first, entries=[fact("Three.")]),
        lambda: service.forget(first, entries=[]),
        lambda: service.organize(first),
    ):
        with pytest.raises(RevisionConflictError) as caught:
            await write()
        assert caught.value.current == second
    assert (await service.head(first.artifact_id)) == second


async def test_a_forged_memory_is_refused(make_service):
    service = make_service()
    memory = await start(service, "One.")
    entry = memory.content.manifest.entries[0]
    forged = memory.model_copy(
        update={
            "content": memory.content.model_copy(
                update={
                    "manifest": memory.content.manifest.model_copy(
                        update={"entries": (entry.model_copy(update={"state": "inactive"}),)}
                    )
                }
            )
        }
    )
    with pytest.raises(InvalidMemoryCitationError) as caught:
        await service.remember(memory=forged, entries=[fact("Two.")])
    assert caught.value.code == "base-mismatch"
    with pytest.raises(InvalidMemoryCitationError) as caught:
        await service.get(forged)
    assert caught.value.code == "memory-mismatch"


@pytest.mark.parametrize(
    ("mode", "entries", "sources"),
    [
        ("append", [], []),
        ("append", [], [text_source("a")]),
        ("extract", [fact("x")], [text_source("a")]),
        ("extract", [], []),
        ("auto", [], []),
        ("guess", [fact("x")], []),
    ],
)
async def test_modes_that_do_not_fit(make_service, mode, entries, sources):
    with pytest.raises(InvalidMemoryCandidateError) as caught:
        await make_service(source_resolver=Resolver()).remember(
            memory=None, entries=entries, sources=sources, mode=mode
        )
    assert caught.value.code == "remember-mode"
    assert isinstance(caught.value, ValueError)


async def test_extraction_needs_a_pipeline(make_service):
    with pytest.raises(CapabilityNotSupportedError) as caught:
        await make_service(source_resolver=Resolver()).remember(memory=None, sources=[text_source("a")])
    assert caught.value.capability == "extract"


async def test_evidence_needs_resolvers_and_stays_within_the_operation(make_service):
    a, b = text_source("a"), text_source("b")
    with pytest.raises(InvalidMemoryEvidenceError) as caught:
        await make_service().remember(memory=None, sources=[a], entries=[fact("x")])
    assert caught.value.code == "source-resolver"
    service = make_service(source_resolver=Resolver())
    with pytest.raises(InvalidMemoryEvidenceError) as caught:
        await service.remember(memory=None, sources=[a], entries=[fact("x", sources=(b,))])
    assert caught.value.code == "source-outside"
    memory = await start(service, "One.")
    with pytest.raises(InvalidMemoryEvidenceError) as caught:
        await service.remember(memory=memory, artifacts=[memory], entries=[fact("x")])
    assert caught.value.code == "artifact-resolver"
    with pytest.raises(InvalidMemoryEvidenceError) as caught:
        await service.remember(memory=memory, entries=[fact("x", artifacts=(memory,))])
    assert caught.value.code == "artifact-outside"


async def test_a_memory_can_be_evidence_of_itself(make_service):
    plain = make_service()
    memory = await start(plain, "One.")
    service = make_service(artifact_resolver=plain)
    memory = await service.remember(memory=memory, artifacts=[memory], entries=[fact("Two.", artifacts=(memory,))])
    two = next(version for version in await service.entries(memory) if version.text == "Two.")
    assert two.artifacts == (ArtifactRef(family="memory", artifact_id=memory.artifact_id, revision=1),)
    three = await service.remember(memory=memory, entries=[fact("Two and a half.", entry=two, artifacts=())])
    assert three.revision == 3


async def test_planning_writes_nothing(make_service):
    service = make_service()
    plan = await service.plan_remember(memory=None, entries=[fact("One.")])
    with pytest.raises(ArtifactNotFoundError):
        await service.head(plan.artifact_id)
    memory = await service.apply(plan)
    assert memory.revision == 1
    with pytest.raises(RevisionConflictError):
        await service.apply(plan)
    assert await service.plan_remember(memory=memory, entries=[fact("One.")]) is None


async def test_citations_of_old_revisions_stay_valid(make_service):
    service = make_service()
    first = await start(service, "One.")
    (old,) = await service.entries(first)
    second = await service.remember(memory=first, entries=[fact("Two.", entry=old)])
    (new,) = await service.entries(second)

    def citation(memory: Memory, version) -> MemoryCitation:
        return MemoryCitation(
            memory_ref=memory.as_ref(), entry_id=version.entry_id, entry_version_id=version.entry_version_id
        )

    assert await service.validate_citation(citation(first, old)) == old
    assert await service.validate_citation(citation(second, new)) == new
    for memory, version, code in ((second, old, "entry-mismatch"), (first, new, "entry-mismatch")):
        with pytest.raises(InvalidMemoryCitationError) as caught:
            await service.validate_citation(citation(memory, version))
        assert caught.value.code == code
    with pytest.raises(InvalidMemoryCitationError) as caught:
        await service.validate_citation(citation(first, old.model_copy(update={"entry_id": "x"})))
    assert caught.value.code == "entry-missing"


async def test_search_and_expand(make_service):
    service = make_service()
    memory = await start(service, "Deploys happen every Friday.", "Anna prefers tea.")
    result = await service.search("when are the deploys", memories=[memory], limit=1, mode="fts")
    assert result.mode == "fts"
    (hit,) = result.hits
    assert hit.text == "Deploys happen every Friday."
    assert hit.matched_by == ("fts",)
    (version,) = await service.expand([hit])
    assert version.text == hit.text
    with pytest.raises(InvalidMemoryCitationError) as caught:
        await service.expand([hit.model_copy(update={"text": "forged"})])
    assert caught.value.code == "expand-anchor"
    with pytest.raises(CapabilityNotSupportedError):
        await service.expand([hit], layer="summary")
    assert (await service.search("tea", memories=[memory])).mode in ("fts", "hybrid")


async def test_only_heads_are_searched(make_service):
    service = make_service()
    first = await start(service, "One.")
    await service.remember(memory=first, entries=[fact("Two.")])
    with pytest.raises(CapabilityNotSupportedError) as caught:
        await service.search("one", memories=[first])
    assert caught.value.capability == "head"


async def test_search_arguments(make_service):
    service = make_service()
    memory = await start(service, "One.")
    for bad in ({"memories": []}, {"memories": [memory], "limit": 0}, {"memories": [memory], "mode": "psychic"}):
        with pytest.raises(InvalidInputError):
            await service.search("one", **bad)


async def test_ids_that_collide_write_nothing(make_service):
    service = make_service(id_factory=lambda kind: kind)
    with pytest.raises(InvalidMemoryCandidateError) as caught:
        await start(service, "One.", "Two.")
    assert caught.value.code == "id-collision"
    memory = await start(service, "One.")
    with pytest.raises(InvalidMemoryCandidateError) as caught:
        await service.remember(memory=memory, entries=[fact("Two.")])
    assert caught.value.code == "id-collision"
    assert (await service.head(memory.artifact_id)).revision == 1


@pytest.mark.parametrize("identifier", ["", "Ü", "x" * 129])
async def test_ids_that_cannot_stand_in_a_manifest(make_service, identifier):
    ids = {"memory": "m", "entry": identifier, "version": "v"}
    with pytest.raises(InvalidMemoryCandidateError):
        await start(make_service(id_factory=ids.__getitem__), "One.")


async def test_a_loaded_and_a_rebuilt_memory_are_the_same_value(make_service):
    service = make_service()
    memory = await start(service, "One.", "Two.")
    rebuilt = Memory.model_validate_json(memory.model_dump_json(by_alias=True))
    assert rebuilt == memory
    assert memory == rebuilt
    assert hash(rebuilt) == hash(memory)
    assert await service.get(rebuilt) == memory
    assert memory_content_hash(rebuilt.content) == memory_content_hash(memory.content)
    assert (await service.remember(memory=rebuilt, entries=[fact("Three.")])).revision == 2


async def test_context_and_tags_are_no_part_of_the_content(make_service):
    service = make_service()
    memory = await service.remember(
        memory=None, entries=[fact("One.", tags=("x",), context=EntryContext(speaker="Anna", occurred_at=5.0))]
    )
    assert await service.remember(memory=memory, entries=[fact("One.", tags=("y",))]) is memory
