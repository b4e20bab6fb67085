"""What plugins bring is asked for by name where a library's user would ask for it."""

from types import SimpleNamespace
from typing import ClassVar

import pytest
from pydantic import BaseModel

from libctx_core import LibraryOfContext
from libctx_core.access import Boundary, ContextAccess, EnforcementMode, Principal, Resource, Rights
from libctx_core.artifacts import Artifact, ArtifactDraft
from libctx_core.errors import ContextAccessDenied, InvalidInferenceOutputError, PluginNotFoundError
from libctx_core.memory import (
    InferenceUsage,
    LLMMemoryReranker,
    MemoryEntryInput,
    MemoryRerankDecision,
    MemoryRerankOutput,
    Proposal,
)
from libctx_core.plugins import hookimpl
from libctx_core.sources import ContentCapture, SourceCatalog, SourceShelf, SQLiteSourceStore
from libctx_core.store import Database
from libctx_core.testing.generators import ScriptedGenerator
from libctx_core.testing.rerankers import RerankerSuite


class LastFirst:
    policy_id = "last-first"

    async def rerank(self, query, candidates, limit, /):
        return MemoryRerankDecision(tuple(range(len(candidates), 0, -1))[:limit], InferenceUsage(requests=1))


class TestLastFirst(RerankerSuite):
    def make_reranker(self):
        return LastFirst()


class Sentences:
    async def extract(self, request, /):
        return tuple(
            MemoryEntryInput(kind="fact", text=text.strip(), sources=(source,))
            for source in request.sources
            for text in source.content.split(".")
            if text.strip()
        )


def bringing(**parts):
    """A plugin whose collecting hooks return the given values."""

    def returning(value):
        return lambda: value

    return SimpleNamespace(__name__="bringing", **{hook: hookimpl(returning(value)) for hook, value in parts.items()})


@pytest.fixture
def library():
    plugin = bringing(register_rerankers={"last-first": LastFirst}, register_extractors={"sentences": Sentences})
    with LibraryOfContext(":memory:", plugins=[plugin]) as opened:
        opened.memory.remember_many(Proposal(kind="fact", text=f"Deploy number {at} was fine.") for at in range(40))
        yield opened


def test_a_reranker_is_asked_for_by_name(library):
    plain = library.memory.search("deploys", limit=30)
    result = library.memory.search("deploys", limit=3, reranker="last-first")
    assert result.hits == plain.hits[:-4:-1]
    assert result.rerank.policy_id == "last-first"
    assert result.rerank.candidate_hits == plain.hits
    with pytest.raises(PluginNotFoundError, match="last-first"):
        library.memory.search("deploys", reranker="first-last")
    assert library.memory.search("deploys", limit=1, reranker=LastFirst()).hits == result.hits[:1]


async def test_a_named_reranker_serves_the_service_and_the_async_search(library):
    memory = library.memory
    service = memory.service(reranker="last-first")
    chosen = (await service.search("deploys", memories=[memory.head()], limit=2)).hits
    assert (await memory.asearch("deploys", limit=2, reranker="last-first")).hits == chosen


def test_a_receipt_names_what_the_reranker_left_out(library):
    result = library.memory.search("deploys", limit=2, reranker="last-first", explain=True)
    assert [receipt.entry_id for receipt in result.receipt.hits] == [hit.entry_id for hit in result.hits]
    assert [omission.reason for omission in result.receipt.omitted] == ["reranker"] * 28
    assert result.receipt.candidates == 30


def test_the_trace_tells_a_fallback(library):
    useless = LLMMemoryReranker(ScriptedGenerator([MemoryRerankOutput(selected_ranks=(0, 99))]))
    result = library.memory.search("deploys", limit=2, reranker=useless)
    assert result.hits == library.memory.search("deploys", limit=30).hits[:2]
    trace = result.rerank
    assert (trace.used_fallback, trace.discarded_rank_count, trace.selected_ranks) == (True, 2, (1, 2))


def test_nothing_to_rerank_asks_no_reranker(library):
    assert library.memory.search("deploys", kinds=["decision"], reranker="last-first").hits == ()


def test_a_reranker_that_names_other_ranks_is_refused(library):
    class Odd(LastFirst):
        async def rerank(self, query, candidates, limit, /):
            return MemoryRerankDecision((77,), InferenceUsage())

    with pytest.raises(InvalidInferenceOutputError):
        library.memory.search("deploys", reranker=Odd())


def test_an_extractor_is_asked_for_by_name(library):
    shelf = SourceShelf(library.database, library.namespace)
    source = shelf.capture(ContentCapture(source_id="log", content="The pump leaks. The mast is fine.")).source
    catalog = SourceCatalog(backend=SQLiteSourceStore(shelf), adapters=shelf.router.adapters)
    service = library.memory.service(pipeline="sentences", sources=catalog)
    library.memory.extract(service, sources=[source])
    assert [view.text for view in library.memory.entries()][-2:] == ["The pump leaks", "The mast is fine"]
    assert library.memory.entries()[-1].sources == (shelf.entries()[0].ref,)
    with pytest.raises(PluginNotFoundError, match="sentences"):
        library.memory.service(pipeline="paragraphs")


def test_a_storage_backend_is_asked_for_by_name(tmp_path):
    opened = []

    def attic(path, /, **options):
        opened.append((path, options["durability"], options["read_only"]))
        return Database(tmp_path / "attic.db", **options)

    plugin = bringing(register_storage_backends={"attic": attic})
    with LibraryOfContext("ignored", plugins=[plugin], storage="attic", durability="normal") as library:
        library.shelve("The boat lies in the attic.")
    assert opened == [("ignored", "normal", False)]
    assert (tmp_path / "attic.db").exists()
    with pytest.raises(PluginNotFoundError, match="sqlite"):
        LibraryOfContext("ignored", plugins=[], storage="cellar")


class Plan(BaseModel):
    steps: list[str]


class PlanArtifact(Artifact[Plan]):
    family: ClassVar[str] = "plan"


class PlanDraft(ArtifactDraft[Plan]):
    family: ClassVar[str] = "plan"


def test_artifact_families_serve_the_artifacts_of_a_library_under_its_scopes():
    access = ContextAccess()
    mine, theirs = (
        access.issue_root_scope(Principal(name), Rights.all_on(Boundary(name)), EnforcementMode.REQUIRE_ENROLLMENT)
        for name in ("mine", "theirs")
    )
    plugin = bringing(register_artifact_families=[PlanArtifact])
    with LibraryOfContext(":memory:", plugins=[plugin], context_access=access) as library:
        plans = library.scoped(mine).artifacts(collection="mine")
        first = plans.add(PlanDraft(content=Plan(steps=["scrape"])))
        second = plans.revise(first, PlanDraft(content=Plan(steps=["scrape", "paint"])))
        assert library.artifacts(collection="mine").latest(first) == second
        other = library.scoped(theirs).artifacts(collection="mine")
        reader = access.issue_root_scope(Principal("r"), Rights.read_only(Resource("artifact:mine/plan")))
        reading = library.scoped(reader).artifacts(collection="mine")
        assert reading.revisions(first) == (first, second)
        for call in (
            lambda: other.latest(first),
            lambda: other.revision(first.as_ref()),
            lambda: other.revisions(first),
            lambda: other.add(PlanDraft(content=Plan(steps=["sink it"]))),
            lambda: other.revise(second, PlanDraft(content=Plan(steps=["sink it"]))),
            lambda: reading.revise(second, PlanDraft(content=Plan(steps=["sink it"]))),
        ):
            with pytest.raises(ContextAccessDenied):
                call()
        assert library.artifacts(collection="mine").revisions(first) == (first, second)
