"""Which documents of a run are new, changed, repeated or gone."""

from llama_index.core.ingestion import DocstoreStrategy
from llama_index.core.schema import Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index_libctx.ingestion_plan import document_id, fingerprint, plan_ingestion

UPSERTS, DELETE, DUPLICATES = (
    DocstoreStrategy.UPSERTS,
    DocstoreStrategy.UPSERTS_AND_DELETE,
    DocstoreStrategy.DUPLICATES_ONLY,
)


def doc(doc_id, text="text", **metadata):
    return Document(id_=doc_id, text=text, metadata=metadata)


def part(node_id, of, text):
    return TextNode(id_=node_id, text=text, relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=of)})


def plan(nodes, strategy=UPSERTS, stored=None):
    stored = stored or {}
    return plan_ingestion(nodes, strategy, stored=stored, stored_hashes=stored.values())


def test_new_and_changed_documents_run_and_unchanged_ones_do_not():
    same, changed, new = doc("same"), doc("changed", "new text"), doc("new")
    result = plan([same, changed, new], stored={"same": same.hash, "changed": doc("changed").hash})
    assert [node.id_ for node in result.nodes] == ["changed", "new"]
    assert dict(result.hashes) == {"changed": changed.hash, "new": new.hash}
    assert result.outdated == {"changed", "new"}
    assert result.gone == frozenset()


def test_a_metadata_change_is_a_change():
    assert plan([doc("a", tag="new")], stored={"a": doc("a", tag="old").hash}).nodes


def test_documents_that_are_not_named_go_only_when_asked():
    stored = {"a": doc("a").hash, "b": doc("b").hash}
    assert plan([doc("b")], UPSERTS, stored).gone == frozenset()
    assert plan([doc("b")], DELETE, stored).gone == {"a"}
    assert plan([], DELETE, stored).gone == {"a", "b"}


def test_equal_content_is_two_documents():
    stored = {"a": doc("a").hash, "b": doc("b").hash}
    assert stored["a"] == stored["b"]
    result = plan([doc("b")], DELETE, stored)
    assert (result.gone, result.nodes) == ({"a"}, ())


def test_the_last_of_two_inputs_with_one_id_counts():
    result = plan([doc("a", "one"), doc("a", "two")])
    assert [node.get_content() for node in result.nodes] == ["two"]
    assert dict(result.hashes) == {"a": doc("a", "two").hash}


def test_all_nodes_of_a_document_that_is_already_cut_run_together():
    nodes = [part(f"n{i}", "doc", f"chunk {i}") for i in range(4)]
    first = plan(nodes)
    assert len(first.nodes) == 4
    assert plan(nodes, stored=dict(first.hashes)).nodes == ()
    nodes[2] = part("n2", "doc", "other")
    assert len(plan(nodes, stored=dict(first.hashes)).nodes) == 4


def test_duplicates_only_runs_each_new_content_once():
    result = plan([doc("a", "one"), doc("b", "one"), doc("c", "two")], DUPLICATES, {"z": doc("z", "two").hash})
    assert [node.id_ for node in result.nodes] == ["a"]
    assert (result.outdated, result.gone) == (frozenset(), frozenset())


def test_ids_and_fingerprints():
    node = part("n", "doc", "text")
    assert document_id(node) == "doc"
    assert document_id(doc("a")) == "a"
    assert fingerprint([node]) == node.hash
    assert fingerprint([node, part("m", "doc", "more")]) == fingerprint([part("m", "doc", "more"), node]) != node.hash
