"""`LibraryRetriever`: a library's threads and shelves as a LlamaIndex retriever."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from libctx_core import Hit
from libctx_core.access import Scope, metadata_for
from libctx_core.concurrency import run_sync
from libctx_core.governor.retrieval import Reach
from libctx_core.store.owners import THREAD
from llama_index_libctx.library import PathOrLibrary, lease


class LibraryRetriever(BaseRetriever):
    """Finds what a library holds: messages of conversations, shelved books, memories.

    The score of a node is its relevance, from 0 to 1; nodes come best first.

    Args:
        library: The library's file, or an open library.
        similarity_top_k: How many nodes at most.
        session_id: A conversation to look into besides the shelf.
        collection: Namespace; the library's by default.
        owner: The user, for ``reach="owner"``.
        reach: ``"thread"``, ``"owner"`` for the owner's conversations, ``"collection"`` for all of them.
        teams: Teams whose shelves are read too.
        everything: Look into all that may be read.
        min_relevance: Relevance, from 0 to 1, a node needs.
        scope: Access scope that every call is held to.
        callback_manager: LlamaIndex's callbacks.
        verbose: Let LlamaIndex print what it does.
    """

    def __init__(
        self,
        library: PathOrLibrary,
        *,
        similarity_top_k: int = 10,
        session_id: str | None = None,
        collection: str | None = None,
        owner: str | None = None,
        reach: Reach = "thread",
        teams: Sequence[str] = (),
        everything: bool = False,
        min_relevance: float = 0.0,
        scope: Scope | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        self._lease = lease(library)
        self._view = self._lease.view(scope)
        self._k = similarity_top_k
        self._min_relevance = min_relevance
        self._reading: dict[str, Any] = {
            "session_id": session_id,
            "collection": collection,
            "owner": owner,
            "reach": reach,
            "teams": tuple(teams),
            "everything": everything,
        }
        super().__init__(callback_manager=callback_manager, verbose=verbose)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._view.consult(query_bundle.query_str, self._k, **self._reading)
        return [
            NodeWithScore(node=node_of(hit), score=hit.relevance)
            for hit in hits
            if hit.relevance >= self._min_relevance
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await run_sync(self._retrieve, query_bundle)


def node_of(hit: Hit) -> TextNode:
    """Return a node for something the library found; keys of the user's metadata win over the library's."""
    facts: dict[str, Any] = {"kind": hit.kind, "role": hit.role, "speaker": hit.speaker, "citation": hit.citation}
    source = {}
    if hit.thread is not None:
        facts |= {"collection": hit.thread.collection, "session_id": hit.thread.session_id, "sequence": hit.sequence}
        document = metadata_for(THREAD, hit.thread.collection, hit.thread.session_id)
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document.resource_id)}
    if hit.occurred_at is not None:
        facts["occurred_at"] = dt.datetime.fromtimestamp(hit.occurred_at, dt.UTC).isoformat()
    known = {name: value for name, value in facts.items() if value not in (None, "")}
    return TextNode(
        id_=f"record:{hit.record_id}",
        text=hit.text,
        metadata={**known, **(hit.metadata or {})},
        relationships=source,
    )
