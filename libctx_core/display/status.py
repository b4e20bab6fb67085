"""How a thread is doing: watermarks, what waits, what failed."""

from collections.abc import Sequence
from typing import Any

from libctx_core.display.markup import Html, element, stacked_bar, table, view
from libctx_core.display.plain import bar, columns, number, preview
from libctx_core.display.shapes import QuarantinedShape, StatusShape

_HEAD = ("sequence", "event", "attempts", "error")
_MARKS = (("recorded", "#455a64"), ("embedded", "#1e88e5"), ("indexed", "#43a047"))


def status_summary(status: StatusShape) -> str:
    """Return a thread's status in one line."""
    marks = status.watermarks
    facts = [
        f"{preview(status.thread.collection, 40)}/{preview(status.thread.session_id, 60)}",
        f"recorded {number(marks.recorded_through)}",
        f"searchable {number(marks.indexed_through)} (lag {number(marks.lag)})",
        f"pending {number(status.pending)}",
    ]
    if status.quarantined:
        facts.append(f"QUARANTINED {len(status.quarantined)}")
    if status.indexer_error is not None:
        facts.append(f"indexer: {preview(status.indexer_error)}")
    return " · ".join(facts)


def status_text(status: StatusShape) -> str:
    """Return a thread's status: the line, a bar for each watermark, and what failed."""
    whole = max(status.watermarks.recorded_through, 1)
    lines = [status_summary(status)]
    lines += [f"{name:9} [{bar([('#', through)], whole)}] {number(through)}" for name, _, through in _levels(status)]
    if status.quarantined:
        lines += columns(_HEAD, [_cells(event) for event in status.quarantined], right=(0, 2))
    return "\n".join(lines)


def status_html(status: StatusShape) -> Html:
    """Return a thread's status for a notebook."""
    whole = max(status.watermarks.recorded_through, 1)
    bars = [
        element("div", f"{name} {number(through)}", stacked_bar([(name, colour, through)], whole))
        for name, colour, through in _levels(status)
    ]
    failed: list[str] = []
    if status.quarantined:
        failed = [
            element("div", "Not searchable until retry_failed(event_id) succeeds:", class_="alert"),
            table(_HEAD, [_cells(event) for event in status.quarantined], right=(0, 2)),
        ]
    return view(element("div", status_summary(status)), *bars, *failed)


def status_records(status: StatusShape) -> list[dict[str, Any]]:
    """Return one mapping for the thread and one per quarantined event, for data frames."""
    marks = status.watermarks
    whole: dict[str, Any] = {
        "row": "thread",
        "sequence": marks.recorded_through,
        "embedded_through": marks.embedded_through,
        "indexed_through": marks.indexed_through,
        "pending": status.pending,
        "event_id": None,
        "attempts": None,
        "error": status.indexer_error,
    }
    failed = [
        {
            **dict.fromkeys(whole),
            "row": "quarantined",
            "sequence": event.sequence,
            "event_id": event.event_id,
            "attempts": event.attempts,
            "error": event.error,
        }
        for event in status.quarantined
    ]
    return [whole, *failed]


def _levels(status: StatusShape) -> list[tuple[str, str, int]]:
    marks = status.watermarks
    reached = (marks.recorded_through, marks.embedded_through, marks.indexed_through)
    return [(name, colour, through) for (name, colour), through in zip(_MARKS, reached, strict=True)]


def _cells(event: QuarantinedShape) -> Sequence[str]:
    return number(event.sequence), preview(event.event_id, 60), number(event.attempts), preview(event.error)
