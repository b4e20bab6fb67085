"""Counts equal tiktoken's own, whatever the text; bounds never fall below them."""

import base64
import hashlib
import lzma
import random
import threading

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from libctx_core.data import data_files, read_data
from libctx_core.errors import InvalidInputError
from libctx_core.tokens import TokenCounter, Utf8Bound
from libctx_core.tokens.encodings import slices

ENCODINGS = ("cl100k_base", "o200k_base")

PUBLISHED = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}

KINDS = (
    "The quick brown fox doesn't jump; it's 12,345.67 metres away.",
    "def f(x: int) -> str:\n    return f'{x!r}'\n\n\n",
    '{"id": 17, "tags": ["a", "b"], "ok": true, "v": 0.25}\r\n',
    "人工智能是计算机科学的一个分支，它企图了解智能的实质。",
    "機械学習は、データから学ぶシステムだ！",
    "기계 학습은 인공지능의 한 분야이다.",
    "Машинное обучение — это класс методов.",
    "การเรียนรู้ของเครื่อง",
    "👩‍👩‍👧‍👦🏳️‍🌈👍🏽🇩🇪",
    "<|endoftext|><|im_start|>",
    "https://example.org/a/b?c=1//\n//comment\n/",
    "aGVsbG8gd29ybGQ4f9K2/+==",
    "\t \u00a0\u3000\u2028\x1c\x85 ",
    "\n\n \n\n\n",
    "e\u0301\u0323 ZA\u030a",
    "\ud83d \udc4d \ud800",
)

TEXTS = st.one_of(
    st.text(),
    st.text(alphabet=st.characters()),
    st.lists(st.sampled_from(KINDS), max_size=8).map("".join),
    st.text(alphabet=" \n\t\r\u00a0a1/.，中'S", max_size=60),
)

PROPERTY = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=ENCODINGS)
def encoding(request):
    return request.param


def tokens_of(reference, text):
    return len(reference.encode(text, disallowed_special=()))


class TestExactCounts:
    @PROPERTY
    @given(text=TEXTS)
    def test_equal_tiktoken(self, encoding, reference, text):
        assert TokenCounter.for_encoding(encoding).count(text) == tokens_of(reference[encoding], text)

    @PROPERTY
    @given(text=TEXTS, size=st.integers(1, 40))
    def test_slices_have_together_the_tokens_of_the_whole(self, encoding, reference, text, size):
        pieces = list(slices(text, size))
        assert "".join(pieces) == text
        assert sum(tokens_of(reference[encoding], piece) for piece in pieces) == tokens_of(reference[encoding], text)

    def test_long_text_of_every_kind(self, encoding, reference):
        picker = random.Random(7)
        text = "".join(picker.choice(KINDS) for _ in range(6_000))
        assert len(text) > 2 * 65_536
        assert TokenCounter.for_encoding(encoding).count(text) == tokens_of(reference[encoding], text)

    def test_special_token_text_is_ordinary_text(self, encoding, reference):
        text = "a <|endoftext|> b <|fim_prefix|> <|endofprompt|>"
        count = TokenCounter.for_encoding(encoding).count(text)
        assert count == len(reference[encoding].encode_ordinary(text))
        assert count > 10

    def test_a_long_word_without_any_seam(self, encoding, reference):
        text = "a" * 300_000
        assert TokenCounter.for_encoding(encoding).count(text) == tokens_of(reference[encoding], text)

    @pytest.mark.parametrize("blank", [" ", "\t", "\u00a0"])
    def test_a_million_blanks_are_counted_and_nothing_is_printed(self, encoding, blank, capfd):
        text = blank * 1_000_000
        count = TokenCounter.for_encoding(encoding).count(text)
        assert 1_000_000 / 128 <= count <= len(text.encode())
        assert capfd.readouterr() == ("", "")

    def test_lone_surrogates_are_counted(self, encoding, reference):
        text = "x\ud800y\udfff" * 5
        assert TokenCounter.for_encoding(encoding).count(text) == tokens_of(reference[encoding], text)

    def test_an_encoder_that_panics_falls_to_the_bytes_of_that_slice(self, encoding, monkeypatch):
        class PanicException(BaseException):
            pass

        class Panicking:
            def encode_ordinary(self, text):
                raise PanicException

        counter = TokenCounter.for_encoding(encoding)
        monkeypatch.setattr(counter._backend, "_encoder", Panicking())
        assert counter.count("ü" * 1_000) == 2_000

    def test_an_interrupt_is_not_swallowed(self, encoding, monkeypatch):
        class Interrupted:
            def encode_ordinary(self, text):
                raise KeyboardInterrupt

        counter = TokenCounter.for_encoding(encoding)
        monkeypatch.setattr(counter._backend, "_encoder", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            counter.count("ü" * 1_000)

    def test_threads_agree(self, encoding):
        counter = TokenCounter.for_encoding(encoding)
        texts = [f"{kind} {number}" for number in range(50) for kind in KINDS]
        expected = [counter.count(text) for text in texts]
        results = []
        threads = [threading.Thread(target=lambda: results.append([counter.count(t) for t in texts])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [expected] * 4

    @PROPERTY
    @given(text=TEXTS, limit=st.integers(0, 60))
    def test_exceeds_agrees_with_count(self, encoding, text, limit):
        counter = TokenCounter.for_encoding(encoding)
        for sample in (text, text * 40):
            assert counter.exceeds(sample, limit) == (counter.count(sample) > limit)

    def test_exceeds_reads_no_more_than_it_needs(self, encoding):
        counter = TokenCounter.for_encoding(encoding)
        calls = []

        class Recording:
            def encode_ordinary(self, text):
                calls.append(len(text))
                return [0] * len(text)

        counter = TokenCounter(type(counter._backend)(encoding))
        counter._backend._encoder = Recording()
        assert counter.exceeds("word " * 1_000_000, 500)
        assert sum(calls) <= 65_536


class TestPackedVocabulary:
    def test_every_listed_file_is_there_and_right(self):
        assert {f"{name}.vocab.xz" for name in ENCODINGS} < set(data_files())
        assert all(read_data(name) for name in data_files())

    def test_holds_the_published_file(self, encoding):
        plain = lzma.decompress(read_data(f"{encoding}.vocab.xz"))
        count = {"cl100k_base": 100_256, "o200k_base": 199_998}[encoding]
        position, lines = count, []
        for rank in range(count):
            token = plain[position : position + plain[rank]]
            position += plain[rank]
            lines.append(b"%s %d\n" % (base64.b64encode(token), rank))
        assert position == len(plain)
        assert hashlib.sha256(b"".join(lines)).hexdigest() == PUBLISHED[encoding]

    def test_is_small(self, encoding):
        assert len(read_data(f"{encoding}.vocab.xz")) <= {"cl100k_base": 389_000, "o200k_base": 832_000}[encoding]


class TestWithoutVocabulary:
    @PROPERTY
    @given(text=TEXTS)
    def test_the_byte_bound_never_under_counts(self, reference, text):
        bound = Utf8Bound().count(text)
        assert bound >= max(tokens_of(reference[name], text) for name in ENCODINGS)

    def test_bytes_count_and_the_log_says_so_once(self, encoding, without_vocabulary):
        counter = TokenCounter.for_encoding(encoding)
        assert not counter.exact
        assert counter.count("héllo") == 6
        TokenCounter.for_encoding(encoding)
        assert len(without_vocabulary.records) == 1

    def test_a_model_and_no_model_fall_back_too(self, without_vocabulary):
        for model in ("gpt-4o", "claude-sonnet-4-5", None):
            counter = TokenCounter.for_model(model)
            assert not counter.exact
            assert counter.count("héllo") >= 6

    def test_an_altered_file_is_not_used(self, encoding, without_vocabulary, tmp_path):
        sums = f"{'0' * 64}  {encoding}.vocab.xz\n"
        (tmp_path / "SHA256SUMS").write_text(sums)
        (tmp_path / f"{encoding}.vocab.xz").write_bytes(b"altered")
        assert not TokenCounter.for_encoding(encoding).exact
        assert "checksum" in without_vocabulary.text


class TestUnknownModels:
    @PROPERTY
    @given(text=TEXTS)
    def test_no_model_holds_under_both_encodings(self, text):
        larger = max(TokenCounter.for_encoding(name).count(text) for name in ENCODINGS)
        assert TokenCounter.for_model(None).count(text) == larger

    @PROPERTY
    @given(text=TEXTS, model=st.sampled_from(["claude-opus-4-1", "qwen3:8b", "deepseek-chat", "llama-3.1-8b", "new"]))
    def test_a_family_estimate_is_never_below_the_larger_encoding(self, text, model):
        counter = TokenCounter.for_model(model)
        assert not counter.exact
        assert counter.count(text) >= TokenCounter.for_model(None).count(text)

    def test_an_unknown_encoding_is_refused(self):
        with pytest.raises(InvalidInputError, match="cl100k_base and o200k_base"):
            TokenCounter.for_encoding("p99k_base")


@pytest.mark.exhaustive
@settings(max_examples=20_000, deadline=None)
@given(text=TEXTS, size=st.integers(1, 200))
def test_counts_bounds_and_slices_at_full_size(reference, text, size):
    for name in ENCODINGS:
        expected = tokens_of(reference[name], text)
        assert TokenCounter.for_encoding(name).count(text) == expected <= Utf8Bound().count(text)
        assert sum(tokens_of(reference[name], piece) for piece in slices(text, size)) == expected
