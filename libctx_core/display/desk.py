"""The reading desk: what retrieval put there, and how it changed."""

from collections.abc import Sequence
from typing import Any

from libctx_core.display.markup import Html, element, table, view
from libctx_core.display.plain import columns, number, preview
from libctx_core.display.shapes import DeskItemShape, DeskShape

_HEAD = ("id", "change", "score", "tokens", "found by", "text")


def desk_summary(desk: DeskShape) -> str:
    """Return a desk in one line."""
    return (
        f"desk {len(desk.items)} · in {len(desk.swapped_in)} · kept {len(desk.retained)} · out {len(desk.swapped_out)}"
    )


def desk_text(desk: DeskShape) -> str:
    """Return a desk as a table."""
    rows = [_cells(desk, item, 72) for item in desk.items]
    return "\n".join([desk_summary(desk), *columns(_HEAD, rows, right=(2, 3)), *_gone(desk)])


def desk_html(desk: DeskShape) -> Html:
    """Return a desk for a notebook."""
    rows = [_cells(desk, item, 160) for item in desk.items]
    gone = [element("div", line, class_="dim") for line in _gone(desk)]
    return view(element("div", desk_summary(desk)), table(_HEAD, rows, right=(2, 3)), *gone)


def desk_records(desk: DeskShape) -> list[dict[str, Any]]:
    """Return one mapping per item, and one per item that left, for data frames."""
    shown = [
        {
            "record_id": item.hit.record_id,
            "change": _change(desk, item),
            "score": item.hit.score,
            "tokens": item.tokens,
            "matched_by": tuple(item.hit.matched_by),
            "text": item.hit.text,
        }
        for item in desk.items
    ]
    gone = [
        {"record_id": record, "change": "out", "score": None, "tokens": 0, "matched_by": (), "text": ""}
        for record in desk.swapped_out
    ]
    return shown + gone


def _change(desk: DeskShape, item: DeskItemShape) -> str:
    return "in" if item.hit.record_id in desk.swapped_in else "kept"


def _cells(desk: DeskShape, item: DeskItemShape, limit: int) -> Sequence[str]:
    hit = item.hit
    text = preview(hit.text, limit) + (" [cut]" if item.cut else "")
    return hit.record_id, _change(desk, item), number(hit.score), number(item.tokens), "+".join(hit.matched_by), text


def _gone(desk: DeskShape) -> list[str]:
    if not desk.swapped_out:
        return []
    listed = ", ".join(preview(record, 40) for record in desk.swapped_out[:20])
    rest = f" … {len(desk.swapped_out) - 20} more" if len(desk.swapped_out) > 20 else ""
    return [f"no longer on the desk: {listed}{rest}"]
