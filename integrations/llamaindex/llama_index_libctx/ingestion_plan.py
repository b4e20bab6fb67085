"""Which documents of an ingestion run are new, changed, repeated or gone: a pure decision."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from llama_index.core.ingestion import DocstoreStrategy
from llama_index.core.schema import BaseNode


@dataclass(frozen=True, slots=True)
class IngestionPlan:
    """What one run has to do.

    Attributes:
        nodes: Inputs to transform, in input order.
        hashes: Hash to store for each document of `nodes`, by document id.
        outdated: Documents whose stored nodes the new ones replace.
        gone: Documents to delete because the run does not name them.
    """

    nodes: tuple[BaseNode, ...]
    hashes: Mapping[str, str]
    outdated: frozenset[str]
    gone: frozenset[str]


def document_id(node: BaseNode) -> str:
    """Return the id of the document a node was cut from; a document is its own."""
    return node.ref_doc_id or node.id_


def plan_ingestion(
    nodes: Sequence[BaseNode],
    strategy: DocstoreStrategy,
    *,
    stored: Mapping[str, str],
    stored_hashes: Iterable[str],
) -> IngestionPlan:
    """Decide what to transform, replace and delete.

    Of inputs with one id the last counts. A document that arrives already cut into nodes
    is unchanged if all of them are.

    Args:
        nodes: Documents, or nodes cut from documents.
        strategy: LlamaIndex's strategy for what is stored already.
        stored: Hash by document id, at least of every document in `nodes`.
        stored_hashes: All stored hashes.
    """
    latest = {node.id_: node for node in nodes}
    parts: dict[str, list[BaseNode]] = {}
    for node in latest.values():
        parts.setdefault(document_id(node), []).append(node)
    hashes = {doc_id: fingerprint(of_document) for doc_id, of_document in parts.items()}
    if strategy == DocstoreStrategy.DUPLICATES_ONLY:
        return _new_content_only(parts, hashes, set(stored_hashes))
    changed = {doc_id for doc_id, doc_hash in hashes.items() if stored.get(doc_id) != doc_hash}
    gone = set(stored) - set(parts) if strategy == DocstoreStrategy.UPSERTS_AND_DELETE else set()
    return IngestionPlan(
        nodes=tuple(node for node in latest.values() if document_id(node) in changed),
        hashes={doc_id: hashes[doc_id] for doc_id in parts if doc_id in changed},
        outdated=frozenset(changed),
        gone=frozenset(gone),
    )


def fingerprint(nodes: Sequence[BaseNode]) -> str:
    """Return the hash of a document: its own, or one over those of the nodes it was cut into."""
    if len(nodes) == 1:
        return nodes[0].hash
    return sha256("\n".join(sorted(node.hash for node in nodes)).encode()).hexdigest()


def _new_content_only(parts: Mapping[str, list[BaseNode]], hashes: Mapping[str, str], seen: set[str]) -> IngestionPlan:
    fresh: dict[str, str] = {}
    for doc_id, doc_hash in hashes.items():
        if doc_hash not in seen:
            seen.add(doc_hash)
            fresh[doc_id] = doc_hash
    nodes = tuple(node for doc_id in fresh for node in parts[doc_id])
    return IngestionPlan(nodes=nodes, hashes=fresh, outdated=frozenset(), gone=frozenset())
