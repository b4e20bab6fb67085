"""Sources: references, exact-type routing, the catalog, and the seed's error classes."""

from typing import Any

import pytest

from libctx_core.errors import (
    InvalidSourceAdapterError,
    InvalidSourceEntryError,
    InvalidSourceReferenceError,
    InvalidSourceResultError,
    LibctxError,
    SourceAdapterNotFoundError,
    SourceConflictError,
    SourceNotFoundError,
)
from libctx_core.sources import (
    ContentAdapter,
    ContentCapture,
    ContentSource,
    Source,
    SourceCatalog,
    SourceCatalogBackend,
    SourceMaterialization,
    SourceRef,
    Sources,
    SourceStore,
)


class Note(str):
    """An input class of its own."""


class NoteSource(Source):
    body: str = ""


class NoteAdapter:
    """Written for the seed: asynchronous, no base class."""

    input_class = Note
    name = "note"
    source_class = NoteSource

    async def resolve(self, value: Note, /) -> NoteSource:
        return NoteSource(name=f"note-{len(value)}", materialization=SourceMaterialization.CAPTURED, body=str(value))

    async def read(self, source: NoteSource, /) -> str:
        return source.body


class MemoryOnly:
    """A backend and store in a dict."""

    def __init__(self) -> None:
        self.kept: dict[str, Source] = {}

    async def get(self, source: Source, /) -> Source:
        if source.name not in self.kept:
            raise SourceNotFoundError(source)
        return self.kept[source.name]

    async def list(self) -> tuple[Source, ...]:
        return tuple(self.kept.values())

    async def add(self, value: Source, /) -> Source:
        return self.kept.setdefault(value.name, value)


@pytest.fixture
def sources() -> Sources:
    backend = MemoryOnly()
    catalog = SourceCatalog(backend=backend, adapters=[NoteAdapter(), ContentAdapter()])
    return Sources(catalog=catalog, store=backend)


async def test_resolve_add_get_list_read(sources):
    source = await sources.resolve(Note("hello"))
    assert await sources.list() == ()
    stored = await sources.add(source)
    assert await sources.get(stored) == source
    assert await sources.list() == (source,)
    assert await sources.read(stored) == "hello"
    assert sources.catalog.as_ref(stored) == SourceRef(source_type="note", source_id="note-5")


async def test_routing_is_by_exact_type(sources):
    class Longer(Note):
        pass

    with pytest.raises(SourceAdapterNotFoundError) as caught:
        await sources.resolve(Longer("hello"))
    assert (caught.value.route, caught.value.requested_type) == ("input", Longer)

    class OtherSource(NoteSource):
        pass

    with pytest.raises(SourceAdapterNotFoundError) as caught:
        await sources.read(OtherSource(name="x", materialization=SourceMaterialization.CAPTURED))
    assert caught.value.route == "source"


async def test_a_source_must_equal_what_is_stored(sources):
    source = await sources.add(await sources.resolve(Note("hello")))
    with pytest.raises(SourceNotFoundError) as caught:
        await sources.get(source.model_copy(update={"body": "HELLO"}))
    assert isinstance(caught.value, LookupError)


async def test_what_is_no_source_is_refused_before_the_store(sources):
    with pytest.raises(InvalidSourceEntryError) as caught:
        await sources.add("a string")  # type: ignore[arg-type]
    assert caught.value.actual_type is str
    assert await sources.list() == ()


async def test_an_adapter_must_return_its_own_class():
    class Wrong(NoteAdapter):
        async def resolve(self, value: Note, /) -> Any:
            return ContentSource(name="x", materialization=SourceMaterialization.CAPTURED, content="x")

    catalog = SourceCatalog(backend=MemoryOnly(), adapters=[Wrong()])
    with pytest.raises(InvalidSourceResultError) as caught:
        await catalog.resolve(Note("hello"))
    assert (caught.value.adapter_name, caught.value.operation) == ("note", "resolve")
    assert (caught.value.expected_type, caught.value.actual_type) == (NoteSource, ContentSource)


async def test_an_adapter_cannot_return_an_invalid_reference():
    class Padded(NoteAdapter):
        async def resolve(self, value: Note, /) -> NoteSource:
            return NoteSource(name=" padded ", materialization=SourceMaterialization.CAPTURED)

    with pytest.raises(InvalidSourceReferenceError):
        await SourceCatalog(backend=MemoryOnly(), adapters=[Padded()]).resolve(Note("hello"))


def test_two_adapters_cannot_share_a_route():
    class SameInput(NoteAdapter):
        name = "other"
        source_class = ContentSource  # type: ignore[assignment]

    class SameSource(NoteAdapter):
        name = "other"
        input_class = str  # type: ignore[assignment]

    for adapter, field in ((SameInput(), "input_class"), (SameSource(), "source_class")):
        with pytest.raises(SourceConflictError) as caught:
            SourceCatalog(backend=MemoryOnly(), adapters=[NoteAdapter(), adapter])
        assert caught.value.field == field
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("field", "value"),
    [("input_class", "Note"), ("name", "  "), ("name", 3), ("source_class", dict), ("resolve", None), ("read", 1)],
)
def test_an_adapter_with_a_missing_part_is_refused(field, value):
    adapter = NoteAdapter()
    setattr(adapter, field, value)
    with pytest.raises(InvalidSourceAdapterError) as caught:
        SourceCatalog(backend=MemoryOnly(), adapters=[adapter])
    assert (caught.value.adapter_type, caught.value.field) == (NoteAdapter, field)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("kind", "name", "detail"),
    [
        ("", "x", "must be a non-empty string"),
        ("   ", "x", "must be a non-empty string"),
        (" note", "x", "must not contain leading or trailing whitespace"),
        ("n" * 129, "x", "must not exceed 128 characters"),
        ("note", "x" * 257, "must not exceed 256 characters"),
    ],
)
def test_reference_parts(kind, name, detail):
    with pytest.raises(InvalidSourceReferenceError) as caught:
        SourceRef(source_type=kind, source_id=name)
    assert caught.value.detail == detail
    assert caught.value.field in ("source_type", "source_id")
    assert SourceRef(source_type="n" * 128, source_id="x" * 256)


def test_a_reference_part_of_another_type_is_our_error_too():
    with pytest.raises(LibctxError) as caught:
        SourceRef(source_type=3, source_id="x")  # type: ignore[arg-type]
    assert caught.value.field == "source_type"  # type: ignore[attr-defined]


def test_ports_are_recognised_at_run_time():
    assert isinstance(MemoryOnly(), SourceCatalogBackend)
    assert isinstance(MemoryOnly(), SourceStore)
    assert not isinstance(object(), SourceStore)


@pytest.mark.parametrize("content", ["", "  \n", "a\x00b", "\ud800"])
def test_blank_or_unstorable_content_is_not_captured(content):
    with pytest.raises(LibctxError):
        ContentCapture(source_id="a", content=content)
