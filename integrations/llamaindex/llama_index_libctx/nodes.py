"""LlamaIndex nodes as items of a vector collection, and back without loss.

An item holds the text, the user's metadata and the id of the document apart, so that no
key of the user's is ever overwritten; what else a node carries is kept as JSON.
"""

import json
from typing import Any, Final

import numpy as np
from llama_index.core.schema import (
    BaseNode,
    Document,
    ImageDocument,
    ImageNode,
    IndexNode,
    MetadataMode,
    Node,
    TextNode,
)
from pydantic_core import PydanticSerializationError, to_json

from libctx_core.errors import InvalidIdentifierError, InvalidInputError
from libctx_core.models import check_identifier
from libctx_core.search.collection_items import CollectionItem

_CLASSES: Final[dict[str, type[BaseNode]]] = {
    node_class.class_name(): node_class
    for node_class in (TextNode, IndexNode, ImageNode, Node, Document, ImageDocument)
}
"""Classes a node is restored to; a subclass of a user's own comes back as its LlamaIndex parent."""

_OWN_PLACE: Final = {"id_", "embedding", "metadata"}
"""Fields that the item holds itself."""

_SCALARS: Final = {str, int, bool, type(None)}


def document_of(node: BaseNode) -> str | None:
    """Return the id of the document a node was cut from.

    That is its SOURCE relationship. A node without one may name its document in the
    metadata key ``ref_doc_id``.
    """
    source = node.ref_doc_id
    if source is not None:
        return source
    try:
        return check_identifier("ref_doc_id", node.metadata.get("ref_doc_id"))
    except InvalidIdentifierError:
        return None  # the user's key names something else


def to_item(node: BaseNode) -> CollectionItem:
    """Return the item that stores a node with its embedding.

    Raises:
        ValueError: The node has no embedding.
        InvalidInputError: The node holds something that has no JSON form.
    """
    text = _storable(node.get_content(MetadataMode.NONE))
    exact = isinstance(node, TextNode) and node.text == text
    excluded = _OWN_PLACE | {"text"} if exact else _OWN_PLACE
    try:
        metadata = _plain(node.metadata)
        payload = _dump(node, excluded)
    except (PydanticSerializationError, TypeError, ValueError) as error:
        raise InvalidInputError("nodes", f"node {node.node_id!r} holds a value that has no JSON form") from error
    return CollectionItem(
        key=node.node_id,
        text=text,
        # one conversion per node, so that none of them holds up other threads for long
        vector=np.asarray(node.get_embedding(), np.float32),
        metadata=metadata,
        ref=document_of(node),
        payload=payload,
    )


def to_node(item: CollectionItem) -> BaseNode:
    """Return the node an item stores; each call makes a new one, with its vector if the item has it."""
    fields: dict[str, Any] = {"text": item.text}
    if item.payload is not None:
        fields |= json.loads(item.payload)
    node_class = _CLASSES.get(fields.pop("class_name", ""), TextNode)
    if not issubclass(node_class, TextNode) and "text_resource" in fields:
        del fields["text"]
    fields |= {
        "id_": item.key,
        "metadata": dict(item.metadata),
        "embedding": None if item.vector is None else [float(number) for number in item.vector],
    }
    return node_class.model_validate(fields)


def _storable(text: str) -> str:
    """Return the text that is searched: without what SQLite cannot hold or would stop at."""
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _dump(node: BaseNode, excluded: set[str]) -> str:
    try:
        return node.model_dump_json(exclude=excluded, exclude_defaults=True)
    except (PydanticSerializationError, UnicodeError):
        # a lone surrogate is no UTF-8, its escape is
        return json.dumps(node.model_dump(mode="json", exclude=excluded, exclude_defaults=True))


def _plain(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata as JSON holds it: dates as text, sets and tuples as lists, NaN as null."""
    if all(type(value) in _SCALARS for value in metadata.values()):
        return metadata
    try:
        plain: dict[str, Any] = json.loads(to_json(metadata, inf_nan_mode="null"))
    except (PydanticSerializationError, UnicodeError):
        # a lone surrogate is no UTF-8, its escape is
        plain = TextNode(metadata=metadata).model_dump(mode="json")["metadata"]
    return plain
