"""A cut text fits, keeps the promised part, and breaks at readable places."""

import random
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libctx_core.tokens import MARKER, TokenCounter, Utf8Bound, truncate_text

COUNTERS = (
    TokenCounter.for_encoding("cl100k_base"),
    TokenCounter.for_encoding("o200k_base"),
    TokenCounter.for_model("claude-sonnet-4-5"),
    TokenCounter(Utf8Bound()),
    TokenCounter(lambda text: len(text.split()), name="words"),
)
MODES = ("top", "middle", "bottom")

PARTS = (
    "The quick brown fox. ",
    "人工智能是计算机科学的一个分支，",
    "👩‍👩‍👧‍👦",
    "🇩🇪🇫🇷🇯🇵",
    "e\u0301\u0323",
    "नमस्ते ",
    "한글",
    "\r\n",
    "    return x\n",
    "aGVsbG8gd29ybGQ4f9K2",
    "\ud83d\udc4d",
    "1234567890",
)
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from(PARTS), max_size=40).map("".join))


@settings(max_examples=400, deadline=None)
@given(
    text=TEXTS,
    room=st.integers(-2, 80),
    counter=st.sampled_from(COUNTERS),
    where=st.sampled_from(MODES),
    marker=st.sampled_from((MARKER, "", "…", " [cut here, ask for more] ")),
)
def test_the_result_fits_and_is_made_of_the_text(text, room, counter, where, marker):
    result, cut = truncate_text(text, room, counter, where=where, marker=marker)
    assert counter.count(result) <= max(0, room)
    if not cut:
        assert result == text
        return
    assert result == "" or counter.count(text) > room
    head, found, tail = result.partition(marker) if marker and marker in result else (result, "", "")
    if not found:
        head, tail = (result, "") if where == "bottom" else ("", result) if where == "top" else (result, "")
    if where == "bottom":
        assert text.startswith(head)
    elif where == "top":
        assert text.endswith(tail)
    elif found:
        assert text.startswith(head)
        assert text.endswith(tail)


@pytest.mark.parametrize("where", MODES)
@pytest.mark.parametrize("room", [0, -5])
def test_no_room_gives_no_text(where, room):
    assert truncate_text("something", room, COUNTERS[0], where=where) == ("", True)
    assert truncate_text("", room, COUNTERS[0], where=where) == ("", False)


@pytest.mark.parametrize("where", MODES)
def test_a_text_that_fits_is_returned_as_it_is(where):
    assert truncate_text("short enough", 50, COUNTERS[0], where=where) == ("short enough", False)


@pytest.mark.parametrize("counter", COUNTERS[:3], ids=lambda counter: counter.name)
@pytest.mark.parametrize("where", MODES)
def test_the_room_is_used(counter, where):
    picker = random.Random(3)
    text = " ".join(picker.choice(("alpha", "beta", "人工智能", "x = 1;", "Zürich", "7,431")) for _ in range(20_000))
    for room in (40, 400, 4_000):
        result, cut = truncate_text(text, room, counter, where=where)
        assert cut
        assert 0.85 * room <= counter.count(result) <= room


def test_each_mode_keeps_its_side():
    text = "START " + "filler words here " * 500 + "END"
    kept = {where: truncate_text(text, 40, COUNTERS[0], where=where)[0] for where in MODES}
    assert kept["bottom"].startswith("START ") and kept["bottom"].endswith(MARKER)
    assert kept["top"].endswith("END") and kept["top"].startswith(MARKER)
    assert kept["middle"].startswith("START ") and kept["middle"].endswith("END") and MARKER in kept["middle"]
    head, tail = kept["middle"].split(MARKER)
    assert 0.5 < len(head) / len(tail) < 2


@pytest.mark.parametrize("where", MODES)
def test_words_stay_whole(where):
    words = [f"word{number}" for number in range(2_000)]
    result, _ = truncate_text(" ".join(words), 60, COUNTERS[0], where=where, marker="|")
    assert set(result.replace("|", " ").split()) <= set(words)


@pytest.mark.parametrize("where", MODES)
@pytest.mark.parametrize("unit", ["👩‍👩‍👧‍👦", "🇩🇪", "e\u0301\u0323", "👍🏽", "한", "\r\n", "\ud83d\udc4d", "क्षि"])
def test_visible_characters_stay_whole(where, unit):
    unit = unicodedata.normalize("NFD", unit)
    for room in range(1, 60):
        result, _ = truncate_text(unit * 400, room, COUNTERS[1], where=where, marker="")
        assert result == unit * (len(result) // len(unit))


def test_a_marker_that_takes_too_much_room_is_left_out():
    result, cut = truncate_text("one two three four five six seven", 3, COUNTERS[0], marker="[a very long marker here]")
    assert cut
    assert "[" not in result
    assert result


@pytest.mark.parametrize("where", MODES)
def test_the_work_follows_the_result_not_the_text(where):
    counted = []

    def spy(text):
        counted.append(len(text))
        return len(text)

    size = 1_000_000
    truncate_text("x" * size, 1_000, TokenCounter(spy, name="characters"), where=where)
    assert sum(counted) <= size + 60_000
