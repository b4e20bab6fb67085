"""What words of a text become terms, and what a question asks for."""

import pytest

from libctx_core.search import flags
from libctx_core.search.analysis import MAX_TERM, analyse_document, analyse_question, analyse_word


def terms(text, **fields):
    return set(analyse_document(text, **fields).terms)


def test_inflected_words_share_a_term():
    assert terms("She was painting") & terms("two painted walls") == {"paint"}


def test_stop_words_and_possessives_leave_no_term():
    assert terms("The cat's toy is on it") == {"cat", "toy"}


def test_accents_and_width_do_not_matter():
    assert terms("Siân drank ＣＡＦＥ") == terms("sian DRANK café")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getHTTPResponse", {"get", "http", "respons"} - {"get"}),
        ("foo_bar", {"foo_bar", "foo", "bar"}),
        ("C++", {"c++"}),
        ("C#", {"c#"}),
        ("node.js", {"node", "js"}),
        ("sha256", {"sha256", "sha", "256"}),
    ],
)
def test_identifiers_are_found_whole_and_by_their_parts(text, expected):
    assert expected <= terms(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("部署天気", {"部署", "署天", "天気"}),
        ("カタカナ", {"カタ", "タカ", "カナ"}),
        ("데이터베이스", {"데이", "이터", "터베", "베이", "이스"}),
        ("水", {"水"}),
        ("ภาษา", {"ภา", "าษ", "ษา"}),
    ],
)
def test_scripts_without_spaces_become_bigrams(text, expected):
    assert terms(text) == expected


def test_mixed_scripts_are_cut_where_they_meet():
    assert {"docker", "部署"} <= terms("Docker部署")


def test_captions_and_dates_are_searchable():
    document = analyse_document("Look!", caption="a photo of a lighthouse", occurred_at=1_683_554_160.0)
    assert {"lighthous", "may", "2023", "8"} <= set(document.terms)
    assert document.date == ("may", "2023", "8")


@pytest.mark.parametrize("moment", [float("inf"), float("nan"), 1e300, -1e18])
def test_a_time_no_calendar_holds_has_no_words(moment):
    assert analyse_document("text", occurred_at=moment).date == ()


def test_long_words_are_found_by_their_beginning():
    assert all(len(term) <= MAX_TERM for term in terms("a" * 5_000 + " " + "x1" * 500))


def test_flags_say_what_a_record_is():
    bits = analyse_document("Did I tell you about yesterday?").bits
    assert bits == flags.QUESTION | flags.TIME | flags.FIRST_PERSON
    assert analyse_document("The door is green.").bits == 0


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("When did she leave?", True),
        ("How long was the trip?", True),
        ("What time is it", True),
        ("Which year was that?", True),
        ("What did she buy?", False),
        ("How many cats?", False),
    ],
)
def test_questions_that_ask_for_a_time(question, asks):
    assert analyse_question(question).asks_time is asks


def test_words_are_remembered_by_their_spelling():
    assert analyse_word("Painting") == analyse_word("Painting")
    assert analyse_word("PAINTING").terms == analyse_word("painting").terms
