"""What the views show, what they leave out, and that nothing they show can act."""

from html.parser import HTMLParser
from types import SimpleNamespace as Values

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libctx_core import display
from libctx_core.display import plain
from libctx_core.models import Hit, ThreadKey, Watermarks

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x1b[31m\x07\u202ereversed\x00 & more"
VOID = {"br", "line"}


class Outline(HTMLParser):
    """Collects tags, attributes and text, and checks that tags are balanced."""

    def __init__(self, markup):
        super().__init__()
        self.tags, self.attributes, self.words, self.stack = [], [], [], []
        self.feed(markup)
        self.close()
        assert not self.stack

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def part(origin="recent", text="hello", tokens=10, **changes):
    values = {"role": "user", "event_id": "e1", "record_ids": (), "cut": False, "note": "", **changes}
    return Values(origin=origin, tokens=tokens, preview=text, **values)


def hit(text="a line", record="r1", **changes):
    return Hit(record_id=record, event_id="e1", text=text, score=1.5, matched_by=("lexical", "vector"), **changes)


def desk(items=(), gone=()):
    return Values(
        items=[Values(hit=item, tokens=7, cut=False) for item in items],
        swapped_in=[item.record_id for item in items[:1]],
        swapped_out=list(gone),
        retained=[item.record_id for item in items[1:]],
    )


def prompt(parts=(), **changes):
    values = {
        "parts": list(parts),
        "token_count": sum(each.tokens for each in parts),
        "token_budget": 8000,
        "tokenizer": "cl100k",
        "exact": True,
        "omitted_protected": [],
        "omitted": [],
        "paged_out_events": 0,
        "desk": desk(),
        "watermarks": Watermarks(18, 16, 16),
    }
    return Values(**{**values, **changes})


def status(failed=(), error=None, thread="s"):
    return Values(
        thread=ThreadKey("default", thread),
        watermarks=Watermarks(20, 20, 10),
        pending=10,
        quarantined=failed,
        indexer_error=error,
    )


def every_view(text):
    """Every text and HTML view, each with `text` in every place that can hold a stored text."""
    found = hit(text, text, speaker=text, role=text, citation=text, signals={text: 1.0})
    omitted = [Values(reason=text, count=3, first_sequence=1, last_sequence=9)]
    lost = [Values(event_id=text, tokens=5, reason=text)]
    shown = desk([found], [text])
    poor = status([Values(event_id=text, sequence=3, attempts=8, error=text)], text, text)
    texts = [
        display.desk_text(shown),
        display.hits_text([found]),
        display.table_text(text, [{"a": text, "b": 1}]),
        display.status_text(poor),
    ]
    html = [
        display.desk_html(shown),
        display.hits_html([found]),
        display.table_html(text, [{"a": text, "b": 1}]),
        display.status_html(poor),
    ]
    parts = [part(text=text, role=text, event_id=text, note=text, cut=True)]
    parts.append(part("desk", text, event_id=None, record_ids=(text,)))
    drawn = prompt(parts, omitted=omitted, omitted_protected=lost, tokenizer=text)
    return [*texts, display.prompt_text(drawn)], [*html, display.prompt_html(drawn)]


def check_harmless(texts, html):
    for text in texts:
        assert all(letter.isprintable() or letter in "\n\u200d" for letter in text)
    for markup in html:
        outline = Outline(markup)
        assert not {"script", "img", "iframe", "link", "object"} & set(outline.tags)
        assert not [name for name, _ in outline.attributes if name.startswith("on") or name in ("href", "src")]
        assert "\x1b" not in markup
        assert "\u202e" not in markup


def test_hostile_text_cannot_act_in_any_view():
    texts, html = every_view(HOSTILE)
    check_harmless(texts, html)
    assert any("&lt;script&gt;" in markup for markup in html)


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=100))
def test_no_text_can_act_in_any_view(text):
    check_harmless(*every_view(text))


# -- the request ------------------------------------------------------------------


def test_the_summary_of_a_prompt_says_what_matters():
    parts = [part("protected")] * 2 + [part("recent", tokens=100)] * 14 + [part("turn", tokens=20)]
    line = display.prompt_summary(
        prompt(parts, paged_out_events=231, desk=desk([hit(record=str(n)) for n in range(5)]))
    )
    assert line == "GovernedPrompt 1,440/8,000 tokens · protected 2 · recent 14 · desk 5 · paged out 231"


def test_omitted_protected_events_are_an_alert():
    lost = [Values(event_id="e7", tokens=900, reason="larger than the protected budget")]
    drawn = prompt([part()], omitted_protected=lost)
    assert "PROTECTED BUT OMITTED 1" in display.prompt_summary(drawn)
    assert "! protected e7 (900 tokens): larger than the protected budget" in display.prompt_text(drawn)
    markup = display.prompt_html(drawn)
    assert 'class="alert"' in markup
    assert "e7 (900 tokens)" in markup


def test_a_prompt_says_what_was_left_out_and_why():
    left = [Values(reason="outside the recent window", count=231, first_sequence=1, last_sequence=231)]
    drawn = prompt([part()], omitted=left, paged_out_events=231)
    for shown in (display.prompt_text(drawn), display.prompt_html(drawn)):
        assert "left out 231 events, 1–231: outside the recent window" in shown


def test_tool_schemas_and_the_frame_take_their_share_of_the_bar():
    drawn = prompt([part(tokens=100)], token_count=180)
    assert "f frame 80" in display.prompt_text(drawn)
    assert 'title="frame: 80"' in display.prompt_html(drawn)


def test_the_bar_is_as_long_as_the_budget():
    text = display.prompt_text(prompt([part("system", tokens=25), part("recent", tokens=50)], token_budget=100))
    assert f"[{'s' * 10}{'r' * 20}{'·' * 10}]" in text


def test_a_prompt_over_its_budget_is_hatched():
    assert 'class="over"' in display.prompt_html(prompt([part(tokens=200)], token_budget=100))
    assert 'class="over"' not in display.prompt_html(prompt([part(tokens=100)], token_budget=100))


def test_an_upper_bound_is_called_one():
    assert "upper bound" in display.prompt_text(prompt([part()], exact=False))
    assert "upper bound" not in display.prompt_text(prompt([part()]))


def test_records_hold_one_row_per_message():
    rows = display.prompt_records(prompt([part(), part("desk", event_id=None, record_ids=["r1", "r2"])]))
    assert [row["origin"] for row in rows] == ["recent", "desk"]
    assert rows[1]["record_ids"] == ("r1", "r2")


@pytest.mark.parametrize("count", [200, 201, 5000])
def test_long_tables_are_capped(count):
    drawn = prompt([part()] * count)
    markup = display.prompt_html(drawn)
    assert markup.count("<tr>") == min(count, 200) + (count > 200) + 1
    rest = f"… {count - 200:,} more"
    assert (rest in markup) is (count > 200)
    assert (rest in display.prompt_text(drawn)) is (count > 200)


def test_previews_are_capped():
    huge = "word " * 100_000
    texts, html = every_view(huge)
    assert max(map(len, (*texts, *html))) < 20_000


# -- desk, hits, timeline, tables -------------------------------------------------


def test_a_desk_says_what_came_stayed_and_left():
    shown = desk([hit(record="r1"), hit(record="r2")], gone=["r0"])
    assert display.desk_summary(shown) == "desk 2 · in 1 · kept 1 · out 1"
    assert "no longer on the desk: r0" in display.desk_text(shown)
    assert [(row["record_id"], row["change"]) for row in display.desk_records(shown)] == [
        ("r1", "in"),
        ("r2", "kept"),
        ("r0", "out"),
    ]


def test_hits_show_the_parts_of_their_score_when_asked_for():
    found = [hit(occurred_at=0.0, speaker="Ada", signals={"bm25": 0.7, "recency": 0.8}), hit(record="r2")]
    text = display.hits_text(found)
    assert "Ada 1970-01-01" in text
    assert "1: recency +0.800 · bm25 +0.700" in text
    assert "<details>" in display.hits_html(found)
    assert display.hits_records(found)[0]["signal_bm25"] == 0.7
    assert display.hits_text([]).startswith("#")


def test_a_status_shows_watermarks_and_what_failed():
    failed = [Values(event_id="e3", sequence=3, attempts=8, error="ValueError: no vector")]
    line = display.status_summary(status(failed, "disk full"))
    assert line == (
        "default/s · recorded 20 · searchable 10 (lag 10) · pending 10 · QUARANTINED 1 · indexer: disk full"
    )
    text = display.status_text(status(failed))
    assert f"[{'#' * 20}{'·' * 20}] 10" in text
    assert "ValueError: no vector" in text
    assert 'class="alert"' in display.status_html(status(failed))
    assert 'class="alert"' not in display.status_html(status())
    assert [row["row"] for row in display.status_records(status(failed))] == ["thread", "quarantined"]


def test_a_timeline_draws_one_tick_per_event_and_two_watermarks():
    ticks = [display.Tick(n, "searchable" if n < 7 else "pending") for n in range(1, 11)]
    markup = display.timeline_html(ticks, Watermarks(10, 6, 6))
    assert markup.count("<rect") == 10
    assert markup.count("<line") == 2
    Outline(markup)
    text = display.timeline_text(ticks, Watermarks(10, 6, 6))
    assert text.startswith("······????")
    assert "pending 4" in text
    assert display.timeline_records(ticks)[0] == {"sequence": 1, "place": "searchable"}


def test_a_long_timeline_draws_the_newest_events_and_counts_the_rest():
    ticks = [display.Tick(n, "searchable") for n in range(1, 5001)]
    markup = display.timeline_html(ticks, Watermarks(5000, 5000, 5000))
    assert markup.count("<rect") == 600
    assert "4,400 earlier events not drawn" in markup
    assert display.timeline_text(ticks, Watermarks(5000, 5000, 5000)).startswith("… 4,928 earlier ")
    Outline(display.timeline_html([], Watermarks(0, 0, 0)))


def test_tables_align_numbers_and_wide_letters():
    rows = [{"name": "表", "rows": 1200, "ok": True, "names": ("a", "b")}, {"name": "ascii", "rows": 5, "ok": False}]
    assert display.table_text("t", rows).splitlines() == [
        "t",
        "name    rows  ok   names",
        "表     1,200  yes  a, b",
        "ascii      5  no",
    ]
    assert "1,200" in display.table_html("t", rows)
    assert display.table_text("empty", []).splitlines()[0] == "empty"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\tc", "a b c"),
        ("\x1b[2Jgone", "[2Jgone"),
        ("👨\u200d👩", "👨\u200d👩"),
        ("x" * 200, "x" * 159 + "…"),
        (" " * 900 + "late", "…"),
    ],
)
def test_previews_are_one_safe_line(text, shown):
    assert plain.preview(text) == shown
