"""Where the events of a thread live now: one tick per event, by sequence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from libctx_core.display.markup import COLOURS, Html, element, legend, view
from libctx_core.display.plain import number
from libctx_core.models import Watermarks

Place = Literal["prompt", "desk", "searchable", "pending", "quarantined", "redacted"]

PLACES: dict[Place, str] = {
    "prompt": COLOURS["recent"],
    "desk": COLOURS["desk"],
    "searchable": "#b0bec5",
    "pending": "#fdd835",
    "quarantined": "#c62828",
    "redacted": "#424242",
}
"""Where an event can be, and its colour."""

_LETTERS: dict[Place, str] = {
    "prompt": "#",
    "desk": "D",
    "searchable": "·",
    "pending": "?",
    "quarantined": "!",
    "redacted": "x",
}

MAX_TICKS = 600
"""Newest events that are drawn; earlier ones are counted."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One event, by sequence, and where it is."""

    sequence: int
    place: Place


def timeline_text(ticks: Sequence[Tick], marks: Watermarks, *, cells: int = 72) -> str:
    """Return the newest events, one letter each, and what the letters mean."""
    shown = ticks[-cells:]
    letters = "".join(_LETTERS[tick.place] for tick in shown)
    key = "  ".join(f"{_LETTERS[place]} {place} {number(_count(ticks, place))}" for place in PLACES)
    earlier = "" if len(shown) == len(ticks) else f"… {number(len(ticks) - len(shown))} earlier "
    return f"{earlier}{letters}\n{key}\n{_marks(marks)}"


def timeline_html(ticks: Sequence[Tick], marks: Watermarks) -> Html:
    """Return the thread as an inline SVG with the two watermarks as lines."""
    shown = ticks[-MAX_TICKS:]
    step = max(1.0, min(12.0, 720 / max(len(shown), 1)))
    first = shown[0].sequence if shown else 1
    drawn: list[str] = [
        element(
            "rect",
            element("title", f"{tick.sequence}: {tick.place}"),
            x=f"{index * step:.1f}",
            y="4",
            width=f"{max(step - 1, 0.8):.1f}",
            height="26",
            fill=PLACES[tick.place],
        )
        for index, tick in enumerate(shown)
    ]
    for through, colour in ((marks.recorded_through, "#212121"), (marks.indexed_through, COLOURS["turn"])):
        place = f"{max(0, through - first + 1) * step:.1f}"
        drawn.append(element("line", x1=place, x2=place, y1="0", y2="34", stroke=colour, stroke_width="1.5"))
    span = f"{max(len(shown) * step, 1) + 2:.0f}"
    earlier = len(ticks) - len(shown)
    return view(
        element("svg", *drawn, width=span, height="34", role="img", aria_label=_marks(marks)),
        legend((f"{place} {number(_count(ticks, place))}", colour) for place, colour in PLACES.items()),
        element("div", _marks(marks) + (f"; {number(earlier)} earlier events not drawn" if earlier else "")),
    )


def timeline_records(ticks: Sequence[Tick]) -> list[dict[str, Any]]:
    """Return one mapping per event, for data frames."""
    return [{"sequence": tick.sequence, "place": tick.place} for tick in ticks]


def _count(ticks: Sequence[Tick], place: Place) -> int:
    return sum(tick.place == place for tick in ticks)


def _marks(marks: Watermarks) -> str:
    return f"recorded through {number(marks.recorded_through)}, searchable through {number(marks.indexed_through)}"
