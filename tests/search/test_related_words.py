"""The shipped list of related words fits the analysis and the table it was made from."""

import lzma

from libctx_core.data import read_data
from libctx_core.search.analysis import analyse_word
from libctx_core.search.related import CLOSE, FILE, MAX_RELATED, related_terms
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from tests.search.library import HashEmbedder, add, records_of


def lines():
    return lzma.decompress(read_data(FILE)).decode("utf-8").split("\n")


def test_every_line_is_a_term_and_what_is_close_to_it():
    for line in lines():
        term, listed = line.split("\t")
        near = related_terms(term)
        assert 0 < len(near) == len(listed.split()) <= MAX_RELATED
        assert [closeness for _, closeness in near] == sorted((closeness for _, closeness in near), reverse=True)
        assert all(100 * CLOSE <= closeness < 100 and other != term for other, closeness in near)


def test_the_list_knows_everyday_words_in_any_form():
    for words, expected in (("trip trips", "journey"), ("doctor doctors", "physician"), ("hobby hobbies", "leisure")):
        for word in words.split():
            near = dict(related_terms(analyse_word(word).terms[0]))
            assert analyse_word(expected).terms[0] in near


def test_an_unknown_term_has_no_relations():
    assert related_terms("qqzzx") == ()


def test_a_record_is_found_by_a_word_of_like_meaning(database):
    lines = ["We saw a physician about the cough.", *(f"Filler about topic number{at}." for at in range(20))]
    owner, _ = add(database, "one", records_of(lines), embedder=HashEmbedder())
    request = SearchRequest(text="Which doctor?", owners=[owner], k=1, explain=True)
    found = Searcher(database, HashEmbedder()).search(request)[0]
    assert found.key == "r0"
    assert found.signals["related"] > 0
    assert "lexical" not in found.matched_by
