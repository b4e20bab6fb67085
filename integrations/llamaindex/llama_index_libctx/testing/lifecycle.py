"""24 checks of a vector store's life: adding, replacing, deleting, reading back, restricting."""

from collections.abc import Callable, Sequence

from llama_index.core.schema import BaseNode, MetadataMode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from llama_index_libctx.testing.names import id_of, names_of
from llama_index_libctx.testing.report import CheckFailed, StoreFactory, SuiteReport, expect, run_check

Check = Callable[[BasePydanticVectorStore], None]

NORTH, EAST, UP = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]

NATIVE = ("async_add", "aquery", "adelete", "aget_nodes", "adelete_nodes", "aclear")
"""Methods whose inherited versions run the synchronous ones on the event loop."""


def node(
    name: str, embedding: list[float], *, doc: str | None = None, text: str | None = None, **metadata: object
) -> TextNode:
    """Return a text node with the id of a name, cut from document `doc` if one is named."""
    source = {} if doc is None else {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=doc)}
    return TextNode(
        id_=id_of(name),
        text=f"text of {name}" if text is None else text,
        embedding=embedding,
        metadata=metadata,
        relationships=source,
    )


def three() -> list[TextNode]:
    """Return three nodes of two documents, one per axis."""
    return [
        node("n1", NORTH, doc="doc-1", rank="a"),
        node("n2", EAST, doc="doc-1", rank="b"),
        node("n3", UP, doc="doc-2", rank="b"),
    ]


def found_names(result: VectorStoreQueryResult) -> list[str]:
    """Return the names of the nodes a query found, best first, whichever way the store reports them."""
    return names_of(result.ids if result.ids is not None else _ids(result.nodes or ()))


def nearest(store: BasePydanticVectorStore, embedding: list[float], **restrictions: object) -> list[str]:
    """Return the names of up to ten nodes, nearest first."""
    if restrictions.get("node_ids"):
        restrictions["node_ids"] = [id_of(name) for name in restrictions["node_ids"]]  # type: ignore[attr-defined]
    query = VectorStoreQuery(query_embedding=embedding, similarity_top_k=10, **restrictions)  # type: ignore[arg-type]
    return found_names(store.query(query))


def equals(key: str, value: str | int) -> MetadataFilters:
    """Return a filter on one key."""
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=FilterOperator.EQ)])


def _same(found: Sequence[object], wanted: Sequence[object]) -> None:
    expect(list(found) == list(wanted), f"expected {list(wanted)}, got {list(found)}")


def _same_set(found: Sequence[str], wanted: str) -> None:
    _same(sorted(found), sorted(wanted.split()))


def _ids(nodes: Sequence[BaseNode]) -> list[str]:
    return [found.node_id for found in nodes]


def add_returns_ids_in_order(store: BasePydanticVectorStore) -> None:
    """The ids of the added nodes come back in input order."""
    _same(names_of(store.add(three()[::-1])), ["n3", "n2", "n1"])


def add_nothing(store: BasePydanticVectorStore) -> None:
    """Adding nothing returns no ids, on a new store too."""
    _same(store.add([]), [])


def query_empty_store(store: BasePydanticVectorStore) -> None:
    """A new store answers with nothing."""
    _same(nearest(store, NORTH), [])


def readd_replaces(store: BasePydanticVectorStore) -> None:
    """A node added again under its id replaces text, metadata and vector."""
    store.add(three())
    store.add([node("n1", UP, doc="doc-1", text="new text", rank="z")])
    found = store.query(VectorStoreQuery(query_embedding=UP, similarity_top_k=10, filters=equals("rank", "z")))
    _same(found_names(found), ["n1"])
    _same_set(nearest(store, NORTH), "n1 n2 n3")
    _same_set(nearest(store, UP)[:2], "n1 n3")
    if store.stores_text:
        _same([n.get_content(MetadataMode.NONE) for n in found.nodes or ()], ["new text"])


def delete_by_document(store: BasePydanticVectorStore) -> None:
    """`delete` removes the nodes of one document and no others."""
    store.add(three())
    store.delete("doc-1")
    _same(nearest(store, NORTH), ["n3"])


def delete_document_with_quote(store: BasePydanticVectorStore) -> None:
    """A quote in a document's id is a character like any other."""
    store.add([node("n1", NORTH, doc="it's"), node("n2", EAST, doc="other")])
    store.delete("it's")
    _same(nearest(store, NORTH), ["n2"])


def delete_unknown_document(store: BasePydanticVectorStore) -> None:
    """Deleting a document that is not there does nothing."""
    store.add(three())
    store.delete("never seen")
    _same_set(nearest(store, NORTH), "n1 n2 n3")


def delete_nodes_by_id(store: BasePydanticVectorStore) -> None:
    """`delete_nodes` removes exactly the named nodes."""
    store.add(three())
    store.delete_nodes(node_ids=[id_of("n1"), id_of("unknown")])
    _same_set(nearest(store, NORTH), "n2 n3")


def delete_nodes_by_filter(store: BasePydanticVectorStore) -> None:
    """`delete_nodes` removes what a filter matches; with ids, what both match."""
    store.add(three())
    store.delete_nodes(node_ids=[id_of("n1"), id_of("n2")], filters=equals("rank", "b"))
    _same_set(nearest(store, NORTH), "n1 n3")
    store.delete_nodes(filters=equals("rank", "b"))
    _same(nearest(store, NORTH), ["n1"])


def delete_nodes_without_argument(store: BasePydanticVectorStore) -> None:
    """`delete_nodes()` refuses; it never empties the store."""
    store.add(three())
    try:
        store.delete_nodes()
    except (ValueError, TypeError):
        _same_set(nearest(store, NORTH), "n1 n2 n3")
    else:
        raise CheckFailed(f"no error; {len(nearest(store, NORTH))} of 3 nodes left")


def get_nodes_by_id(store: BasePydanticVectorStore) -> None:
    """`get_nodes` returns the named nodes that exist."""
    store.add(three())
    wanted = [id_of(name) for name in ("n3", "n1", "unknown")]
    _same_set(names_of(_ids(store.get_nodes(node_ids=wanted))), "n1 n3")


def get_nodes_by_filter(store: BasePydanticVectorStore) -> None:
    """`get_nodes` returns what a filter matches; with ids, what both match."""
    store.add(three())
    _same_set(names_of(_ids(store.get_nodes(filters=equals("rank", "b")))), "n2 n3")
    both = [id_of("n1"), id_of("n2")]
    _same_set(names_of(_ids(store.get_nodes(node_ids=both, filters=equals("rank", "b")))), "n2")


def get_all_nodes(store: BasePydanticVectorStore) -> None:
    """`get_nodes()` returns every node."""
    store.add(three())
    _same_set(names_of(_ids(store.get_nodes())), "n1 n2 n3")


def clear_and_reuse(store: BasePydanticVectorStore) -> None:
    """A cleared store is empty, and can be filled again."""
    store.add(three())
    store.clear()
    _same(nearest(store, NORTH), [])
    store.add(three()[:1])
    _same(nearest(store, NORTH), ["n1"])


def clear_empty_store(store: BasePydanticVectorStore) -> None:
    """Clearing a new store does nothing."""
    store.clear()
    _same(nearest(store, NORTH), [])


def doc_ids_restrict(store: BasePydanticVectorStore) -> None:
    """`doc_ids` restricts a query to documents; an empty list allows none."""
    store.add(three())
    _same_set(nearest(store, NORTH, doc_ids=["doc-1"]), "n1 n2")
    _same(nearest(store, NORTH, doc_ids=[]), [])
    _same_set(nearest(store, NORTH, doc_ids=None), "n1 n2 n3")


def node_ids_restrict(store: BasePydanticVectorStore) -> None:
    """`node_ids` restricts a query to nodes, together with the other restrictions."""
    store.add(three())
    _same_set(nearest(store, NORTH, node_ids=["n1", "n3"]), "n1 n3")
    _same(nearest(store, NORTH, node_ids=["n1", "n3"], doc_ids=["doc-1"]), ["n1"])
    _same(nearest(store, NORTH, node_ids=["n1", "n3"], filters=equals("rank", "b")), ["n3"])
    if store.stores_text:
        _same_set(nearest(store, NORTH, node_ids=[]), "n1 n2 n3")


def no_match_is_empty(store: BasePydanticVectorStore) -> None:
    """A filter that matches nothing gives an empty answer."""
    store.add(three())
    _same(nearest(store, NORTH, filters=equals("rank", "none")), [])


def any_string_is_an_id(store: BasePydanticVectorStore) -> None:
    """Ids are strings, not UUIDs."""
    wanted = ["c3ew11cd-not-a-uuid", 'it\'s "quoted"', "ключ 鍵"]
    store.add([TextNode(id_=node_id, text="text", embedding=NORTH) for node_id in wanted])
    _same(sorted(nearest(store, NORTH)), sorted(wanted))


def new_metadata_key_later(store: BasePydanticVectorStore) -> None:
    """A later batch may bring keys and types the first did not have."""
    store.add([node("n1", NORTH, rank="a")])
    store.add([node("n2", EAST, rank=2, fresh="yes")])
    _same(nearest(store, NORTH, filters=equals("fresh", "yes")), ["n2"])
    _same(nearest(store, NORTH, filters=equals("rank", "a")), ["n1"])


def any_metadata(store: BasePydanticVectorStore) -> None:
    """Lists, objects, booleans, nulls and large numbers are metadata; the user's ``doc_id`` stays the user's."""
    store.add([node("n1", NORTH, doc="doc-1", tags=["x", "y"], deep={"k": [1, {"z": None}]}, big=2**70, flag=True)])
    store.add([node("n2", EAST, doc="doc-1", doc_id="mine", nothing=None)])
    _same(nearest(store, NORTH, filters=equals("doc_id", "mine")), ["n2"])
    if store.stores_text:
        found = store.query(VectorStoreQuery(query_embedding=NORTH, similarity_top_k=1)).nodes or ()
        wanted = {"tags": ["x", "y"], "deep": {"k": [1, {"z": None}]}, "big": 2**70, "flag": True}
        _same([n.metadata for n in found], [wanted])


def node_round_trip(store: BasePydanticVectorStore) -> None:
    """Relationships, excluded keys, templates and any text come back as they went in."""
    original = TextNode(
        id_=id_of("n1"),
        text="naïve café 中文用户 🙂 'quoted' \\ \n line",
        embedding=NORTH,
        metadata={"a": 1, "b": "two"},
        excluded_embed_metadata_keys=["a"],
        excluded_llm_metadata_keys=["b"],
        metadata_separator=" | ",
        metadata_template="{key}={value}",
        text_template="{metadata_str}::{content}",
        start_char_idx=3,
        end_char_idx=30,
        relationships={
            NodeRelationship.SOURCE: RelatedNodeInfo(node_id="doc-1", metadata={"m": 1}),
            NodeRelationship.NEXT: RelatedNodeInfo(node_id=id_of("n2")),
        },
    )
    store.add([original])
    answer = store.query(VectorStoreQuery(query_embedding=NORTH, similarity_top_k=1)).nodes or ()
    found = next(iter(answer), None)
    if not isinstance(found, TextNode):
        raise CheckFailed(f"expected a TextNode, got {type(found).__name__}")
    want, got = original.model_dump(exclude={"embedding"}), found.model_dump(exclude={"embedding"})
    different = [key for key in want if want[key] != got.get(key)]
    expect(not different, f"fields changed: {different}")


def dimensions_are_checked(store: BasePydanticVectorStore) -> None:
    """A vector of another length is refused by name of both lengths, at add and at query."""
    store.add(three())
    attempts: tuple[Callable[[], object], ...] = (
        lambda: store.add([node("n4", [1.0] * 5)]),
        lambda: nearest(store, [1.0] * 5),
    )
    for attempt in attempts:
        try:
            attempt()
        except ValueError as error:
            expect("3" in str(error) and "5" in str(error), f"the message names no lengths: {str(error)[:120]}")
        else:
            raise CheckFailed("a vector of 5 numbers was accepted among vectors of 3")
    _same_set(nearest(store, NORTH), "n1 n2 n3")


def own_async_methods(store: BasePydanticVectorStore) -> None:
    """No method leaves the work to the event loop's thread."""
    inherited = [m for m in NATIVE if getattr(type(store), m) is getattr(BasePydanticVectorStore, m)]
    expect(not inherited, f"inherited: {inherited}")


CHECKS: tuple[Check, ...] = (
    add_returns_ids_in_order,
    add_nothing,
    query_empty_store,
    readd_replaces,
    delete_by_document,
    delete_document_with_quote,
    delete_unknown_document,
    delete_nodes_by_id,
    delete_nodes_by_filter,
    delete_nodes_without_argument,
    get_nodes_by_id,
    get_nodes_by_filter,
    get_all_nodes,
    clear_and_reuse,
    clear_empty_store,
    doc_ids_restrict,
    node_ids_restrict,
    no_match_is_empty,
    any_string_is_an_id,
    new_metadata_key_later,
    any_metadata,
    node_round_trip,
    dimensions_are_checked,
    own_async_methods,
)
"""The checks, in the order they run; each gets a store of its own."""


def run(make_store: StoreFactory) -> SuiteReport:
    """Run all checks, each on a new store."""

    def on_new_store(check: Check) -> Callable[[], None]:
        return lambda: check(make_store())

    return SuiteReport("lifecycle", tuple(run_check(check.__name__, on_new_store(check)) for check in CHECKS))
