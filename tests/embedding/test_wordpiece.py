"""Words and pieces as BERT's uncased tokenizer makes them."""

import lzma

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libctx_core.data import read_data
from libctx_core.embedding.wordpiece import WordPiece, basic_words

VOCABULARY = lzma.decompress(read_data("libctx-static-256.vocab.xz")).decode().split("\n")


@pytest.fixture(scope="module")
def pieces():
    return WordPiece(VOCABULARY)


def spelled(pieces, text):
    return [VOCABULARY[number] for number in pieces.ids(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hello, World!", ["hello", ",", "world", "!"]),
        ("unaffable", ["una", "##ffa", "##ble"]),
        ("Café naïve ÅNGSTRÖM", ["cafe", "naive", "ang", "##strom"]),
        ("don't", ["don", "'", "t"]),
        ("中文 text", ["中", "文", "text"]),
        ("e\u0301\u200dx", ["ex"]),
        ("a\x00b\ufffdc", ["abc"]),
        ("x\ud800y", ["x", "##y"]),
        ("", []),
        (" \t\n", []),
        ("🙂", ["[UNK]"]),
        ("a" * 101, ["[UNK]"]),
    ],
)
def test_known_splits(pieces, text, expected):
    assert spelled(pieces, text) == expected


def test_words_carry_their_pieces(pieces):
    words = list(pieces.words("Embeddings, please"))
    assert [word for word, _ in words] == ["embeddings", ",", "please"]
    assert [number for _, ids in words for number in ids] == pieces.ids("Embeddings, please")


@settings(max_examples=40, deadline=None)
@given(text=st.text())
def test_remembered_words_split_as_new_ones(pieces, text):
    assert WordPiece(VOCABULARY).ids(text) == pieces.ids(text) == pieces.ids(text)


@settings(max_examples=200, deadline=None)
@given(text=st.text(alphabet=st.characters()))
def test_any_text_has_lower_case_words_without_blanks(text):
    for word in basic_words(text):
        assert word
        assert not any(character.isspace() for character in word)
        assert word == "".join(character.lower() for character in word)


def test_memory_is_bounded(pieces):
    for number in range(70_000):
        pieces.ids(f"w{number}")
    assert len(pieces._remembered) <= 65_536


# Scripts that every Unicode table in use knows alike; control characters separate words here.
SETTLED = st.one_of(
    st.characters(max_codepoint=0x4FF, exclude_categories=("Cc", "Cn")),
    st.sampled_from("中文字カなﾊ한글🙂👍🏽\u200d\ufe0f\ufffd\u3000’“—…€™ﬁ"),
)


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet=SETTLED))
def test_same_ids_as_the_tokenizers_package(pieces, text):
    tokenizers = pytest.importorskip("tokenizers", reason="the reference implementation is not installed")
    reference = tokenizers.BertWordPieceTokenizer(
        vocab={piece: number for number, piece in enumerate(VOCABULARY)}, lowercase=True
    )
    assert pieces.ids(text) == reference.encode(text, add_special_tokens=False).ids
