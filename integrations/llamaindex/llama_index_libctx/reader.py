"""Readers both ways: a library's contents as documents, and documents of a reader as sources."""

import hashlib
from collections.abc import Iterable
from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.readers.base import BasePydanticReader, ResourcesReaderMixin
from llama_index.core.schema import Document, MetadataMode

from libctx_core import ContextEvent, ThreadKey
from libctx_core.access import Scope, metadata_for
from libctx_core.concurrency import run_sync
from libctx_core.errors import InvalidInputError, SourceChangedError
from libctx_core.sources import (
    AnySourceAdapter,
    AuthorityGuard,
    BaseSourceAdapter,
    Source,
    SourceMaterialization,
    SourceRef,
    SourceShelf,
    Value,
)
from libctx_core.sources.values import MAX_SOURCE_ID_LENGTH
from libctx_core.store.owners import THREAD
from llama_index_libctx.library import MEMORY, LibraryLease, PathOrLibrary, lease

_SOURCE = "source:"


class LibraryReader(BasePydanticReader, ResourcesReaderMixin):
    """Reads a library: each message of a conversation and each captured source is a document.

    Resources are conversations, by their resource id ``thread:<collection>/<session>``, and
    sources, ``source:<type>/<id>``. Ids of documents are stable, so that an index refreshes instead
    of growing.

    Args:
        path: The library's file, or an open library.
        collection: Namespace to read; the library's by default.
        adapters: What reads sources of other kinds than captured text.
        scope: Access scope that every call is held to.
    """

    is_remote: bool = False
    path: str = Field(default=MEMORY, description="File of the library.")
    collection: str | None = Field(default=None, description="Namespace to read.")

    _lease: LibraryLease = PrivateAttr()
    _adapters: tuple[AnySourceAdapter, ...] = PrivateAttr()
    _scope: Scope | None = PrivateAttr(default=None)

    def __init__(
        self,
        path: PathOrLibrary = MEMORY,
        collection: str | None = None,
        *,
        adapters: Iterable[AnySourceAdapter] = (),
        scope: Scope | None = None,
        is_remote: bool = False,
    ) -> None:
        shared = lease(path)
        super().__init__(path=shared.path, collection=collection)
        self._lease = shared
        self._adapters = tuple(adapters)
        self._scope = scope

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which the reader is serialised."""
        return "LibraryReader"

    # -- everything -----------------------------------------------------------

    def lazy_load_data(self, *args: Any, **load_kwargs: Any) -> Iterable[Document]:
        """Yield the documents of every resource, one resource after the other."""
        for resource_id in self.list_resources():
            yield from self.load_resource(resource_id)

    async def alazy_load_data(self, *args: Any, **load_kwargs: Any) -> Iterable[Document]:
        """Return the documents of every resource, read off the event loop."""
        return await run_sync(self.load_data)

    async def aload_data(self, *args: Any, **load_kwargs: Any) -> list[Document]:
        """Return the documents of every resource, read off the event loop."""
        return await run_sync(self.load_data)

    # -- resources ------------------------------------------------------------

    def list_resources(self, *args: Any, **kwargs: Any) -> list[str]:
        """Return the ids of the conversations and sources that may be listed."""
        view = self._lease.view(self._scope)
        threads = [_thread_id(info.key) for info in view.threads(self._namespace)]
        shelf = self._shelf()
        sources = [_source_id(shelf.router.as_ref(source)) for source in shelf.list()]
        return sorted(threads) + sorted(sources)

    def get_resource_info(self, resource_id: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return what is known of a resource without its text.

        Raises:
            InvalidInputError: The id names no resource of this reader.
        """
        session = self._session_of(resource_id)
        if session is None:
            entry = self._shelf().get(_source_ref(resource_id))
            return {"description": entry.source.description, "materialization": entry.source.materialization.value}
        view = self._lease.view(self._scope)
        for info in view.threads(self._namespace):
            if info.key.session_id == session:
                return {"events": info.events, "owner": info.user, "updated_at": info.updated_at}
        raise InvalidInputError("resource_id", "names no conversation that may be listed")

    def load_resource(self, resource_id: str, *args: Any, **kwargs: Any) -> list[Document]:
        """Return the documents of a resource.

        Raises:
            InvalidInputError: The id names no resource of this reader.
        """
        session = self._session_of(resource_id)
        if session is None:
            shelf = self._shelf()
            source = shelf.get(_source_ref(resource_id)).source
            return [_source_document(resource_id, source, shelf.read(source))]
        governor = self._lease.view(self._scope).open_context_governor(session, collection=self._namespace)
        return [_event_document(governor.key, event) for event in governor.history() if not event.redacted]

    @property
    def _namespace(self) -> str:
        return self._lease.library.namespace if self.collection is None else self.collection

    def _shelf(self) -> SourceShelf:
        view = self._lease.view(self._scope)
        return SourceShelf(view.database, self._namespace, self._adapters, guard=AuthorityGuard(view.authority))

    def _session_of(self, resource_id: str) -> str | None:
        """Return the session a resource id names, None if it names a source."""
        prefix = _thread_id(ThreadKey(self._namespace, ""))
        if resource_id.startswith(prefix):
            return resource_id.removeprefix(prefix)
        if resource_id.startswith(_SOURCE):
            return None
        raise InvalidInputError("resource_id", f"must begin with {prefix!r} or {_SOURCE!r}")


def _thread_id(key: ThreadKey) -> str:
    return metadata_for(THREAD, key.collection, key.session_id).resource_id


def _source_id(ref: SourceRef) -> str:
    return f"{_SOURCE}{ref.source_type}/{ref.source_id}"


def _source_ref(resource_id: str) -> SourceRef:
    source_type, _, source_id = resource_id.removeprefix(_SOURCE).partition("/")
    return SourceRef(source_type=source_type, source_id=source_id)


def _event_document(key: ThreadKey, event: ContextEvent) -> Document:
    facts = {
        "session_id": key.session_id,
        "collection": key.collection,
        "sequence": event.sequence,
        "role": event.role,
        "speaker": event.speaker,
        "occurred_at": event.occurred_at,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    return Document(id_=f"event:{event.uid}", text=event.text, metadata={**known, **(event.metadata or {})})


def _source_document(resource_id: str, source: Source, content: object) -> Document:
    metadata = dict(getattr(source, "metadata", None) or {})
    if source.description is not None:
        metadata.setdefault("description", source.description)
    return Document(id_=resource_id, text=content if isinstance(content, str) else str(content), metadata=metadata)


class ReaderResource(Value):
    """A resource of a LlamaIndex reader, to be described as a source.

    Attributes:
        resource_id: Its id, as the reader lists it.
    """

    resource_id: str


class ReaderSource(Source):
    """A resource of a LlamaIndex reader; its text stays where the reader finds it.

    Attributes:
        resource_id: Its id, as the reader lists it.
        fingerprint: Digest of what the reader returned when it was described.
    """

    resource_id: str
    fingerprint: str


class LlamaReaderSourceAdapter(BaseSourceAdapter[ReaderResource, ReaderSource, list[Document]]):
    """Resources of a LlamaIndex reader as sources of a library.

    Args:
        reader: The reader.
        name: Name the adapter is registered under; by default ``llama_index.<class>``.
    """

    input_class = ReaderResource
    source_class = ReaderSource

    def __init__(self, reader: ResourcesReaderMixin, name: str | None = None) -> None:
        self._reader = reader
        self.name = name or f"llama_index.{type(reader).__name__}"

    def describe(self, value: ReaderResource, /) -> ReaderSource:
        """Return the source that points at a resource, with a digest of its text."""
        documents = self._reader.load_resource(value.resource_id)
        return ReaderSource(
            name=_short(value.resource_id),
            materialization=SourceMaterialization.REFERENCED,
            description=f"{len(documents)} documents of {type(self._reader).__name__}",
            resource_id=value.resource_id,
            fingerprint=_fingerprint(documents),
        )

    def load(self, source: ReaderSource, /) -> list[Document]:
        """Return the documents of a resource.

        Raises:
            SourceChangedError: The reader returns something else than when it was described.
        """
        documents = self._reader.load_resource(source.resource_id)
        if _fingerprint(documents) != source.fingerprint:
            raise SourceChangedError(f"{self.name}/{source.name}", "the reader returns another text")
        return documents


def _short(resource_id: str) -> str:
    """Return the id itself, or a digest of one that is too long for a source's name."""
    if len(resource_id) <= MAX_SOURCE_ID_LENGTH:
        return resource_id
    return f"sha256:{hashlib.sha256(resource_id.encode()).hexdigest()}"


def _fingerprint(documents: Iterable[Document]) -> str:
    digest = hashlib.sha256()
    for document in documents:
        digest.update(document.get_content(MetadataMode.NONE).encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
