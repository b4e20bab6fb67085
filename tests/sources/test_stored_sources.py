"""Stored sources: identity, journal positions, supersession, deletion, access."""

import threading

import pytest

from libctx_core.access import ContextAccess, Principal, Resource, Rights
from libctx_core.access.authority import Authority
from libctx_core.errors import (
    ContextAccessDenied,
    InvalidSourceReferenceError,
    SourceAdapterNotFoundError,
    SourceConflictError,
    SourceNotFoundError,
)
from libctx_core.sources import (
    AuthorityGuard,
    BaseSourceAdapter,
    ContentAdapter,
    ContentCapture,
    Source,
    SourceCatalog,
    SourceMaterialization,
    SourceRef,
    Sources,
    SourceShelf,
    SQLiteSourceStore,
)
from libctx_core.store import Database
from libctx_core.store.sources import source_owner_key


class Page(str):
    pass


class PageSource(Source):
    origin: str
    body: str


class PageAdapter(BaseSourceAdapter[Page, PageSource, str]):
    input_class = Page
    name = "page"
    source_class = PageSource

    def describe(self, value: Page, /) -> PageSource:
        origin, body = value.split("|")
        return PageSource(
            name=f"{origin}@{body}", materialization=SourceMaterialization.CAPTURED, origin=origin, body=body
        )

    def load(self, source: PageSource, /) -> str:
        return source.body


class OnlyAsync:
    """An adapter that has no synchronous half."""

    input_class = bytes
    name = "only-async"
    source_class = type("OnlyAsyncSource", (Source,), {})

    async def resolve(self, value, /):
        return self.source_class(name=value.decode(), materialization=SourceMaterialization.REFERENCED)

    async def read(self, source, /):
        return source.name.encode()


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "library.db")
    yield database
    database.close()


@pytest.fixture
def shelf(database):
    return SourceShelf(database, "team", [PageAdapter(), OnlyAsync()])


def content(name: str, text: str = "text", **metadata) -> ContentCapture:
    return ContentCapture(source_id=name, content=text, metadata=metadata)


def test_capturing_the_same_thing_again_changes_nothing(shelf):
    first = shelf.capture(content("a", tags=["x"]))
    again = shelf.capture(content("a", tags=["x"]))
    assert first.position == again.position == 1
    assert shelf.capture(content("b")).position == 2
    assert [entry.position for entry in shelf.entries()] == [1, 2]


def test_another_content_under_the_same_identity_is_a_conflict(shelf):
    shelf.capture(content("a"))
    with pytest.raises(SourceConflictError) as caught:
        shelf.capture(content("a", "other text"))
    assert caught.value.field == "identity"
    assert shelf.position() == 1


def test_positions_are_per_collection_and_survive_reopening(tmp_path, database, shelf):
    shelf.capture(content("a"))
    other = SourceShelf(database, "other")
    assert other.capture(content("a", "another collection, another identity")).position == 1
    database.close()
    with_new = Database(tmp_path / "library.db")
    again = SourceShelf(with_new, "team")
    assert again.position() == 1
    assert again.read(again.list()[0]) == "text"
    assert again.capture(content("b")).position == 2
    with_new.close()


def test_identities_with_separators_do_not_meet():
    keys = {source_owner_key("a:b", "c"), source_owner_key("a", "b:c"), source_owner_key("a%3Ab", "c")}
    assert len(keys) == 3


def test_two_adapters_cannot_share_a_name(database):
    class Twin(PageAdapter):
        input_class = str
        source_class = type("TwinSource", (Source,), {})

    with pytest.raises(SourceConflictError) as caught:
        SourceShelf(database, "team", [PageAdapter(), Twin()])
    assert caught.value.field == "name"


def test_a_newer_version_of_an_origin_supersedes_the_older_one(shelf):
    old = shelf.capture(Page("site|one"))
    new = shelf.capture(Page("site|two"))
    assert [source.body for source in shelf.list()] == ["two"]
    assert [source.body for source in shelf.list(superseded=True)] == ["one", "two"]
    assert shelf.get(old.ref).superseded
    assert not shelf.get(new.ref).superseded


def test_a_deleted_source_leaves_a_gap_and_calls_what_hangs_on_it(database):
    gone = []
    shelf = SourceShelf(database, "team", on_delete=lambda connection, owner: gone.append(owner.id))
    first = shelf.capture(content("a"))
    shelf.capture(content("b"))
    assert shelf.delete(first.ref)
    assert not shelf.delete(first.ref)
    assert gone == [first.owner_id]
    assert [entry.position for entry in shelf.entries()] == [2]
    assert shelf.capture(content("a")).position == 3
    with pytest.raises(SourceNotFoundError):
        shelf.get(SourceRef(source_type="content", source_id="missing"))


def test_a_stored_source_without_its_adapter_says_so(database, shelf):
    entry = shelf.capture(Page("site|one"))
    bare = SourceShelf(database, "team")
    with pytest.raises(SourceAdapterNotFoundError):
        bare.get(entry.ref)


def test_windows_of_the_journal(shelf):
    for name in "abcde":
        shelf.capture(content(name))
    assert [entry.position for entry in shelf.entries(after=1, limit=2)] == [2, 3]
    assert shelf.entries(after=5) == ()


@pytest.mark.parametrize("scope_id", ["", "  ", " padded", "x" * 257])
def test_collections_have_bounded_names(database, scope_id):
    with pytest.raises(InvalidSourceReferenceError):
        SourceShelf(database, scope_id)


def test_concurrent_captures_get_distinct_positions(shelf):
    found = []

    def capture(worker: int) -> None:
        found.extend(shelf.capture(content(f"{worker}-{at}")).position for at in range(10))

    threads = [threading.Thread(target=capture, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 41))


def test_an_adapter_that_is_only_asynchronous_works_synchronously(shelf):
    entry = shelf.capture(b"remote")
    assert shelf.read(entry.source) == b"remote"


async def test_the_asynchronous_half(shelf):
    entry = await shelf.acapture(content("a"))
    assert (await shelf.aget(entry.ref)).source == entry.source
    assert await shelf.alist() == (entry.source,)
    assert await shelf.aread(entry.source) == "text"
    assert (await shelf.aentries(after=0))[0].position == 1
    assert await shelf.adelete(entry.ref)
    assert (await shelf.aresolve(b"remote")).name == "remote"


async def test_the_seeds_classes_over_the_shelf(database):
    shelf = SourceShelf(database, "team")
    store = SQLiteSourceStore(shelf)
    sources = Sources(catalog=SourceCatalog(backend=store, adapters=[ContentAdapter()]), store=store)
    source = await sources.add(await sources.resolve(content("a")))
    assert await sources.get(source) == source
    assert await sources.list() == (source,)
    assert await sources.read(source) == "text"
    with pytest.raises(SourceNotFoundError):
        await sources.get(source.model_copy(update={"name": "b"}))


def test_a_scope_sees_only_its_own_sources(database):
    access = ContextAccess()
    shelf = SourceShelf(database, "team", guard=AuthorityGuard(Authority(access)))
    mine, theirs = "source:team/content:mine", "source:team/content:theirs"
    owner = access.issue_root_scope(Principal("owner"), Rights.all_on(Resource(mine), Resource(theirs)))
    with access.scope(owner):
        first = shelf.capture(content("mine"))
        second = shelf.capture(content("theirs"))
    reader = access.issue_root_scope(Principal("reader"), Rights.all_on(Resource(mine)))
    with access.scope(reader):
        assert [entry.ref for entry in shelf.entries()] == [first.ref]
        assert shelf.get(first.ref)
        for forbidden in (
            lambda: shelf.get(second.ref),
            lambda: shelf.delete(second.ref),
            lambda: shelf.capture(content("theirs")),
            lambda: shelf.capture(content("new")),
        ):
            with pytest.raises(ContextAccessDenied):
                forbidden()
    assert len(shelf.entries()) == 2
