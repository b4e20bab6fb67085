"""`LibraryRetriever`: what a library holds, found by the library's own search."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from pydantic import ConfigDict, PrivateAttr

from langchain_libctx.opening import LibrarySource, open_library
from langchain_libctx.sessions import SessionId
from libctx_core.access.scope import Scope
from libctx_core.concurrency import run_sync
from libctx_core.governor.retrieval import Reach
from libctx_core.library import LibraryOfContext, LibraryView
from libctx_core.models import Hit

Search = Callable[[str, int], list[Hit]]


class LibraryRetriever(BaseRetriever):
    """Finds shelved documents, and what was said in threads, by words and by meaning.

    Args:
        library: An open library or view, or a path that this object then owns.
        session_id: Look into this thread too; a name, or a callable that returns it.
        collection: Namespace to look in; the library's by default.
        owner: The user, for ``reach="owner"``.
        scope: Held for every call.
        k: Documents wanted; a call may ask for another number.
        reach: Whose threads are searched: ``"thread"``, ``"owner"`` or ``"collection"``.
        teams: Teams whose shelves are searched too.
        min_relevance: Relevance (0 to 1) a document needs.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    k: int = 4
    collection: str | None = None
    owner: str | None = None
    reach: Reach = "thread"
    teams: tuple[str, ...] = ()
    min_relevance: float = 0.0

    _library: LibraryView = PrivateAttr()
    _owned: LibraryOfContext | None = PrivateAttr(default=None)
    _session_id: SessionId | None = PrivateAttr(default=None)

    def __init__(
        self,
        library: LibrarySource,
        session_id: SessionId | None = None,
        *,
        scope: Scope | None = None,
        teams: Sequence[str] = (),
        **fields: Any,
    ) -> None:
        super().__init__(teams=tuple(teams), **fields)
        self._library, self._owned = open_library(library, scope)
        self._session_id = session_id

    def close(self) -> None:
        """Close the library if this object opened it."""
        if self._owned is not None:
            self._owned.close()

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return self._find(query, k)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return await run_sync(self._find, query, k)

    def _find(self, query: str, k: int | None) -> list[Document]:
        wanted = self.k if k is None else k
        session = self._session_id() if callable(self._session_id) else self._session_id
        hits = self._library.consult(
            query,
            wanted,
            collection=self.collection,
            session_id=session,
            owner=self.owner,
            reach=self.reach,
            teams=self.teams,
        )
        return [document_of(hit) for hit in hits if hit.relevance >= self.min_relevance]

    def _get_ls_params(self, **_kwargs: Any) -> LangSmithRetrieverParams:
        embedder = self._library.embedder
        return LangSmithRetrieverParams(
            ls_retriever_name="library",
            ls_vector_store_provider="libctx",
            ls_embedding_provider="libctx",
            ls_embedding_model=embedder.profile_id if embedder is not None else "none",
        )


def document_of(hit: Hit) -> Document:
    """Return a hit as a document; where it stands and how it was found is in its metadata."""
    facts = {
        "record_id": hit.record_id,
        "event_id": hit.event_id,
        "kind": hit.kind,
        "collection": hit.thread.collection if hit.thread else None,
        "session_id": hit.thread.session_id if hit.thread else None,
        "sequence": hit.sequence,
        "role": hit.role,
        "speaker": hit.speaker,
        "occurred_at": hit.occurred_at,
        "citation": hit.citation or None,
        "score": hit.score,
        "relevance": hit.relevance,
        "matched_by": list(hit.matched_by),
    }
    known = {key: value for key, value in facts.items() if value is not None}
    return Document(id=hit.record_id, page_content=hit.text, metadata={**dict(hit.metadata or {}), **known})
