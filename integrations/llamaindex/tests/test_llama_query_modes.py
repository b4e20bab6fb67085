"""Query modes: each does what it says, or refuses."""

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index_libctx import LibraryVectorStore

from libctx_core.errors import InvalidInputError

M = VectorStoreQueryMode


@pytest.fixture
def filled(store):
    texts = ["apples and pears", "pears and plums", "trains at night", "night music"]
    vectors = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    store.add(
        [
            TextNode(id_=f"n{i}", text=text, embedding=vector, metadata={"even": 1 - i % 2})
            for i, (text, vector) in enumerate(zip(texts, vectors, strict=True))
        ]
    )
    return store


def ask(store, mode, **fields):
    options = fields.pop("options", {})
    return store.query(VectorStoreQuery(mode=mode, **fields), **options)


@pytest.mark.parametrize("mode", [M.SPARSE, M.TEXT_SEARCH])
def test_text_modes_search_words_and_need_no_vector(filled, mode):
    result = ask(filled, mode, query_str="night trains", similarity_top_k=5)
    assert result.ids[0] == "n2"
    assert set(result.ids) == {"n2", "n3"}
    assert all(0.0 <= score <= 1.0 for score in result.similarities)
    with pytest.raises(InvalidInputError, match="query_str"):
        ask(filled, mode, query_embedding=[1.0, 0.0, 0.0])


def test_text_modes_see_later_writes_and_restrictions(filled):
    filled.add([TextNode(id_="n9", text="night owls", embedding=[1.0, 1.0, 1.0])])
    filled.delete_nodes(["n2"])
    assert set(ask(filled, M.SPARSE, query_str="night", similarity_top_k=5).ids) == {"n3", "n9"}
    assert ask(filled, M.SPARSE, query_str="night", similarity_top_k=5, node_ids=["n9"]).ids == ["n9"]
    assert ask(filled, M.SPARSE, query_str="night", similarity_top_k=5, sparse_top_k=1).ids in (["n3"], ["n9"])
    assert ask(filled, M.SPARSE, query_str="nothing like it", similarity_top_k=5).ids == []


@pytest.mark.parametrize("words", ['"unbalanced', "AND OR NOT", "a* NEAR(b)", "(", "--", "'; DROP TABLE record", ""])
def test_hostile_words_are_words(filled, words):
    assert isinstance(ask(filled, M.TEXT_SEARCH, query_str=words, similarity_top_k=3).ids, list)


def test_alpha_0_is_the_words_alone_and_1_the_vector_alone(filled):
    question = {"query_str": "night music", "query_embedding": [1.0, 0.0, 0.0], "similarity_top_k": 4}
    words = ask(filled, M.SPARSE, **question).ids
    assert ask(filled, M.HYBRID, alpha=0.0, **question).ids == words
    assert ask(filled, M.HYBRID, alpha=1.0, **question).ids == ask(filled, M.DEFAULT, **question).ids
    mixed = ask(filled, M.HYBRID, alpha=0.5, **question).ids
    assert {"n0", "n3"} <= set(mixed[:3])


async def test_alpha_0_in_async(filled):
    query = VectorStoreQuery(
        mode=M.HYBRID, alpha=0.0, query_str="night", query_embedding=[1.0, 0.0, 0.0], similarity_top_k=4
    )
    assert (
        (await filled.aquery(query)).ids
        == filled.query(query).ids
        == ask(filled, M.SPARSE, query_str="night", similarity_top_k=4).ids
    )


def test_the_size_of_a_hybrid_answer(filled):
    question = {"query_str": "night", "query_embedding": [1.0, 0.0, 0.0], "similarity_top_k": 1, "sparse_top_k": 1}
    assert len(ask(filled, M.HYBRID, hybrid_top_k=2, **question).ids) == 2
    assert len(ask(filled, M.HYBRID, **question).ids) == 1


def test_hybrid_needs_both_sides_unless_one_has_no_weight(filled):
    with pytest.raises(InvalidInputError, match="query_str"):
        ask(filled, M.HYBRID, query_embedding=[1.0, 0.0, 0.0])
    with pytest.raises(InvalidInputError, match="query_embedding"):
        ask(filled, M.HYBRID, query_str="night")
    assert ask(filled, M.HYBRID, query_str="night", alpha=0.0, similarity_top_k=2).ids


@pytest.mark.parametrize(
    ("in_query", "options", "expected"),
    [
        (0.0, {}, ["a", "c"]),
        (0.25, {}, ["a", "c"]),
        (1.0, {}, ["a", "b"]),
        (None, {}, ["a", "b"]),
        (None, {"mmr_threshold": 0.0}, ["a", "c"]),
        (None, {"mmr_threshold": 1.0}, ["a", "b"]),
        (1.0, {"mmr_threshold": 0.0}, ["a", "c"]),
        (0.0, {"mmr_threshold": 1.0}, ["a", "b"]),
        (0.0, {"mmr_threshold": None}, ["a", "b"]),
    ],
)
def test_where_the_mmr_threshold_comes_from(store, in_query, options, expected):
    store.add([TextNode(id_=i, embedding=v) for i, v in zip("abc", ([1.0, 0.0], [1.0, 0.0], [0.0, 1.0]), strict=True)])
    result = ask(store, M.MMR, query_embedding=[1.0, 0.0], similarity_top_k=2, mmr_threshold=in_query, options=options)
    assert result.ids == expected
    assert len(result.similarities) == 2


def test_mmr_candidates(filled):
    question = {"query_embedding": [1.0, 0.0, 0.0], "similarity_top_k": 2, "mmr_threshold": 0.1}
    assert len(ask(filled, M.MMR, **question).ids) == 2
    assert ask(filled, M.MMR, options={"mmr_prefetch_k": 2}, **question).ids == ["n0", "n1"]
    assert ask(filled, M.MMR, options={"mmr_prefetch_factor": 1.0}, **question).ids == ["n0", "n1"]
    with pytest.raises(ValueError, match="mmr_prefetch"):
        ask(filled, M.MMR, options={"mmr_prefetch_k": 16, "mmr_prefetch_factor": 2.0}, **question)
    with pytest.raises(InvalidInputError, match="mmr_threshold"):
        ask(filled, M.MMR, query_embedding=[1.0, 0.0, 0.0], mmr_threshold=1.5)
    with pytest.raises(InvalidInputError, match="query_embedding"):
        ask(filled, M.MMR, query_str="night")


@pytest.mark.parametrize("mode", [M.SVM, M.LINEAR_REGRESSION, M.LOGISTIC_REGRESSION])
def test_learner_modes(filled, mode):
    nothing = ask(filled, mode, query_embedding=[1.0, 0.0, 0.0], doc_ids=[])
    assert (nothing.ids, nothing.similarities) == ([], [])
    if mode is not M.LINEAR_REGRESSION:
        pytest.importorskip("sklearn")
    assert ask(filled, mode, query_embedding=[1.0, 0.0, 0.0], similarity_top_k=1).ids == ["n0"]


@pytest.mark.parametrize("mode", [M.SVM, M.LOGISTIC_REGRESSION])
def test_learner_modes_say_what_they_need(filled, mode, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match="scikit-learn"):
        ask(filled, mode, query_embedding=[1.0, 0.0, 0.0])


def test_a_mode_that_is_not_offered_is_refused_by_name(filled):
    with pytest.raises(InvalidInputError, match=r"semantic_hybrid.*hybrid"):
        ask(filled, M.SEMANTIC_HYBRID, query_str="night", query_embedding=[1.0, 0.0, 0.0])


@pytest.mark.parametrize("name", ["filter", "filters", "where", "top_k", "alpha"])
def test_a_misplaced_option_is_refused(filled, name):
    with pytest.raises(InvalidInputError, match=name):
        ask(filled, M.DEFAULT, query_embedding=[1.0, 0.0, 0.0], options={name: None})


def test_a_query_without_vector_and_restriction_returns_any_nodes(filled):
    assert len(ask(filled, M.DEFAULT, similarity_top_k=2).ids) == 2
    assert ask(filled, M.DEFAULT, similarity_top_k=9, node_ids=["n3"]).ids == ["n3"]


def test_modes_through_a_retriever(path, embedder):
    store = LibraryVectorStore(path)
    index = VectorStoreIndex(
        [TextNode(id_="a", text="night trains"), TextNode(id_="b", text="plums")],
        storage_context=_context(store),
        embed_model=embedder,
    )
    for mode in ("default", "sparse", "text_search", "hybrid", "mmr"):
        retriever = index.as_retriever(vector_store_query_mode=mode, similarity_top_k=1)
        assert [found.node.node_id for found in retriever.retrieve("night trains")] == ["a"]


def _context(store):
    from llama_index.core import StorageContext

    return StorageContext.from_defaults(vector_store=store)
