"""The seed's backend over the library: complete commits, projections, channels, embedding profiles."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libctx_core.concurrency import Portal
from libctx_core.errors import (
    ArtifactNotFoundError,
    CapabilityNotSupportedError,
    InferenceUnavailableError,
    InvalidEmbeddingError,
    InvalidInputError,
    InvalidMemoryCandidateError,
    InvalidMemoryCitationError,
    MemoryBackendConfigurationError,
    RevisionConflictError,
)
from libctx_core.memory import (
    EmbeddingProfile,
    EmbeddingResult,
    MemoryCommit,
    MemoryEntryInput,
    MemoryProjection,
    MemorySearchRequest,
    MemoryService,
    ModelEmbedder,
    embedding_content_hash,
    memory_content_hash,
)
from libctx_core.memory.commits import LoadedHead, build_commit
from libctx_core.memory.embedding import check_vectors, profile_of
from libctx_core.memory.plan import Proposal, plan_entries
from libctx_core.search.index import SearchIndex
from libctx_core.search.searcher import Searcher
from libctx_core.store import Database


@pytest.fixture
def backend(memories):
    return memories.service()._backend


async def commit_of(backend, *texts: str) -> MemoryCommit:
    """A well-formed commit that adds entries to the memory, or starts it."""
    numbers = iter(range(1, 100))
    base, entries = None, ()
    try:
        base = await backend.latest("memory")
        entries = await backend.entries(base.as_ref())
    except ArtifactNotFoundError:
        pass
    stem = "a" if base is None else f"r{base.revision}"
    delta = plan_entries(
        LoadedHead("memory", base, entries),
        [Proposal(kind="fact", text=text) for text in texts],
        lambda kind: f"{kind}-{stem}-{next(numbers)}",
    )
    bare = build_commit("memory", base, delta)
    known = {version.entry_version_id: version for version in (*entries, *delta.versions.values())}
    projections = tuple(
        MemoryProjection(
            entry_version=known[entry.entry_version_id], searchable_text=known[entry.entry_version_id].text
        )
        for entry in bare.memory.content.manifest.entries
        if entry.state == "active"
    )
    return bare.model_copy(update={"projections": projections})


async def write(backend, commit: MemoryCommit):
    async with backend.begin() as unit:
        return await unit.commit(commit)


async def test_complete_commits_are_written_like_any_other(backend, memories):
    first = await write(backend, await commit_of(backend, "One.", "Two."))
    second = await write(backend, await commit_of(backend, "Three."))
    assert (first.revision, second.revision) == (1, 2)
    assert [view.text for view in memories.entries()] == ["One.", "Two.", "Three."]
    assert memories.content_hash(2) == memory_content_hash(second.content)
    assert memories.search("three", limit=1).hits[0].text == "Three."
    memories.remember("Four.")
    assert memories.head().revision == 3


async def test_a_unit_of_work_commits_once(backend):
    commit = await commit_of(backend, "One.")
    async with backend.begin() as unit:
        await unit.commit(commit)
        with pytest.raises(InvalidMemoryCitationError):
            await unit.commit(commit)


async def test_a_stale_commit_loses(backend):
    stale = await commit_of(backend, "One.")
    await write(backend, await commit_of(backend, "Two."))
    with pytest.raises(RevisionConflictError):
        await write(backend, stale)


async def test_what_is_joined_fails_with_the_commit(backend, database):
    commit = await commit_of(backend, "One.")

    def fail(connection):
        raise RuntimeError("the cursor did not move")

    async with backend.begin() as unit:
        unit.join(fail)
        with pytest.raises(RuntimeError):
            await unit.commit(commit)
    with pytest.raises(ArtifactNotFoundError):
        await backend.latest("memory")


def changed(value: Any, **fields: Any) -> Any:
    return value.model_copy(update=fields)


def with_memory(commit: MemoryCommit, **fields: Any) -> MemoryCommit:
    memory = changed(commit.memory, **fields)
    return changed(commit, memory=memory, content_hash=memory_content_hash(memory.content))


MALFORMED = {
    "hash-mismatch": lambda c: changed(c, content_hash="0" * 64),
    "hash-mismatch version": lambda c: changed(
        c, entry_versions=(changed(c.entry_versions[0], text="Forged."), *c.entry_versions[1:])
    ),
    "base-mismatch": lambda c: with_memory(c, revision=7),
    "cross-identity": lambda c: changed(
        c, entry_versions=(changed(c.entry_versions[0], memory_artifact_id="other"), *c.entry_versions[1:])
    ),
    "cross-identity base": lambda c: with_memory(c, artifact_id="other"),
    "duplicate-versions": lambda c: changed(c, entry_versions=(c.entry_versions[0], c.entry_versions[0])),
    "missing-version": lambda c: changed(c, entry_versions=()),
    "missing-version change": lambda c: with_memory(
        c, content=changed(c.memory.content, changes=c.memory.content.changes[:1])
    ),
    "memory-mismatch": lambda c: with_memory(
        c,
        content=changed(
            c.memory.content,
            manifest=changed(
                c.memory.content.manifest,
                entries=tuple(changed(e, state="inactive") for e in c.memory.content.manifest.entries),
            ),
        ),
    ),
    "entry-missing": lambda c: with_memory(
        c,
        content=changed(
            c.memory.content,
            changes=tuple(changed(x, op="deactivate", entry_id="nobody") for x in c.memory.content.changes),
        ),
    ),
    "projection-version": lambda c: changed(c, projections=c.projections[1:]),
    "projection-version twice": lambda c: changed(c, projections=(c.projections[0],) * len(c.projections)),
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_a_malformed_commit_is_refused_and_writes_nothing(backend, memories, case):
    await write(backend, await commit_of(backend, "One."))
    commit = await commit_of(backend, "Two.", "Three.")
    with pytest.raises(InvalidMemoryCitationError) as caught:
        await write(backend, MALFORMED[case](commit))
    assert caught.value.code == case.split(" ")[0]
    assert memories.head().revision == 1
    assert (await write(backend, commit)).revision == 2


async def test_a_commit_on_a_forged_base_is_refused(backend):
    await write(backend, await commit_of(backend, "One."))
    commit = await commit_of(backend, "Two.")
    lineage = changed(commit.base.lineage, sources=({"source_type": "x", "source_id": "y"},))
    forged = changed(commit.base, lineage=type(commit.base.lineage).model_validate(lineage.model_dump(warnings=False)))
    with pytest.raises(InvalidMemoryCitationError) as caught:
        await write(backend, changed(commit, base=forged))
    assert caught.value.code == "base-mismatch"


async def test_an_added_id_that_is_taken(backend):
    first = await commit_of(backend, "One.")
    await write(backend, first)
    second = await commit_of(backend, "Two.")
    twice = tuple(changed(x, entry_id=first.entry_versions[0].entry_id) for x in second.memory.content.changes)
    with pytest.raises(InvalidMemoryCandidateError) as caught:
        await write(backend, with_memory(second, content=changed(second.memory.content, changes=twice)))
    assert caught.value.code == "id-collision"


async def test_projections_hold_text_and_valid_vectors(backend, memories, embedder):
    memories.remember("One.")
    memories.remember("Two.")
    memories.forget(memories.entries()[0].entry_id)
    ref = memories.head().as_ref()
    (bare,) = await backend.projections(ref)
    assert bare.embedding is None
    memories.flush()
    (full,) = await backend.projections(ref)
    assert full.searchable_text == "Two."
    assert len(full.embedding) == embedder.dimension
    assert math.isclose(math.fsum(x * x for x in full.embedding), 1.0, abs_tol=1e-3)
    assert full.embedding_content_hash == embedding_content_hash(
        profile_of(embedder), full.entry_version.entry_content_hash
    )
    with pytest.raises(ArtifactNotFoundError):
        await backend.projections(changed(ref, revision=1))


async def test_vector_completeness(backend, memories, embedder):
    memories.remember("One.")
    refs = (memories.head().as_ref(),)
    assert not await backend.vector_complete(refs, profile_of(embedder))
    memories.flush()
    assert await backend.vector_complete(refs, profile_of(embedder))
    other = EmbeddingProfile(profile_id="other", model="m", dimension=3)
    assert not await backend.vector_complete(refs, other)
    memories.forget(memories.entries()[0].entry_id)
    assert await backend.vector_complete((memories.head().as_ref(),), other)


async def test_channels_rank_separately(backend, memories):
    memories.remember("Deploys happen every Friday.")
    memories.remember("Anna prefers tea.")
    request = MemorySearchRequest(
        query="deploys", analyzed_query="deploy", memories=(memories.head().as_ref(),), candidate_limit=5, mode="hybrid"
    )
    channels = await backend.search(request)
    assert channels.fts[0].text == "Deploys happen every Friday."
    assert (await backend.search(changed(request, mode="vector"))).fts == ()
    assert (await backend.search(changed(request, mode="fts"))).vector == ()


async def test_rebuilding_makes_search_again(backend, memories, database):
    memories.remember("Deploys happen every Friday.")
    memories.flush()
    database.write(lambda connection: connection.execute("DELETE FROM record").fetchall())
    await backend.rebuild_projections()
    assert memories.search("deploys").hits[0].text == "Deploys happen every Friday."


# -- embedding profiles ---------------------------------------------------------


class Letters:
    """An asynchronous embedding model: how often each of three letters stands in a text."""

    def __init__(self, fail: bool = False, normalization: str = "unit") -> None:
        self.profile = EmbeddingProfile(profile_id="letters", model="letters", dimension=3, normalization=normalization)
        self.fail = fail

    async def embed(self, texts: tuple[str, ...], /) -> EmbeddingResult:
        if self.fail:
            raise InferenceUnavailableError("embed")
        return EmbeddingResult(vectors=tuple(tuple(1.0 + t.lower().count(c) for c in "aei") for t in texts))


def test_any_embedding_model_can_be_the_librarys_embedder(tmp_path, open_memories):
    from libctx_core.memory import Memories

    model = Letters()
    embedder = ModelEmbedder(model, Portal())
    database = Database(tmp_path / "letters.db")
    memories = Memories(database, SearchIndex(database), Searcher(database, embedder), embedder)
    memories.remember("aaaa aaaa")
    memories.remember("eeee eeee")
    assert memories.capabilities.embedding_profile.profile_id == "letters"
    assert memories.search("aa", mode="vector", limit=1).hits[0].text == "aaaa aaaa"
    MemoryService(backend=memories.service()._backend, embedding_model=model)
    model.fail = True
    fallen_back = memories.search("eeee", limit=1, explain=True)
    assert fallen_back.mode == "fts"
    assert fallen_back.hits[0].text == "eeee eeee"
    assert fallen_back.receipt.hits[0].channel_ranks == {"fts": 1}
    with pytest.raises(CapabilityNotSupportedError):
        memories.search("eeee", mode="vector")
    database.close()


def test_another_model_than_the_librarys_is_refused(memories):
    with pytest.raises(MemoryBackendConfigurationError):
        MemoryService(backend=memories.service()._backend, embedding_model=Letters())


def test_search_needs_vectors_of_unit_length():
    with pytest.raises(InvalidEmbeddingError):
        ModelEmbedder(Letters(normalization="none"), Portal())


@pytest.mark.parametrize(
    ("vectors", "code"),
    [
        ([(1.0, 0.0, 0.0)], "count"),
        ([(1.0, 0.0, 0.0), (1.0, 0.0)], "dimension"),
        ([(1.0, 0.0, 0.0), (1.0, math.nan, 0.0)], "finite"),
        ([(1.0, 0.0, 0.0), (1.0, math.inf, 0.0)], "finite"),
        ([(1.0, 0.0, 0.0), (0.0, 0.0, 0.0)], "zero"),
    ],
)
def test_vectors_that_break_their_profile(vectors, code):
    with pytest.raises(InvalidEmbeddingError) as caught:
        check_vectors(Letters().profile, 2, vectors)
    assert caught.value.code == code


numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.tuples(numbers, numbers, numbers).filter(any))
def test_any_finite_vector_is_brought_to_unit_length(vector):
    (found,) = check_vectors(Letters().profile, 1, [vector])
    assert math.isclose(math.fsum(x * x for x in found), 1.0, rel_tol=1e-9)
    assert check_vectors(Letters(normalization="none").profile, 1, [vector]) == [vector]


@pytest.mark.parametrize("fields", [{"dimension": 0}, {"distance": "cosine"}, {"normalization": "max"}])
def test_a_profile_is_checked(fields):
    with pytest.raises(InvalidInputError):
        EmbeddingProfile(**{"profile_id": "p", "model": "m", "dimension": 3, **fields})


async def test_a_foreign_backend_with_vectors_is_searched_hybrid(memories):
    """Through the ports alone: the library's backend behind a wrapper the service does not know."""
    inner = memories.service()._backend

    class Wrapper:
        def __getattr__(self, name):
            return getattr(inner, name)

    class Same:
        profile = inner.indexer.profile

        async def embed(self, texts, /):
            rows = inner.indexer._embedder.embed_documents(texts)
            return EmbeddingResult(vectors=tuple(tuple(map(float, row)) for row in rows))

    service = MemoryService(backend=Wrapper(), embedding_model=Same(), id_factory=lambda kind: _id(kind))
    memory = await service.remember(
        memory=None, entries=[MemoryEntryInput(kind="fact", text=text) for text in ("Deploys on Friday.", "Tea.")]
    )
    memories.flush()
    result = await service.search("deploys", memories=[memory])
    assert result.mode == "hybrid"
    assert result.hits[0].text == "Deploys on Friday."
    assert result.hits[0].matched_by[0] == "fts"


_made: list[str] = []


def _id(kind: str) -> str:
    _made.append(kind)
    return f"{kind}-{len(_made)}"
