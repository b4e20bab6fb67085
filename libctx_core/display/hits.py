"""Search hits, best first."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from libctx_core.display.markup import Html, element, fold, table, view
from libctx_core.display.plain import columns, number, preview
from libctx_core.models import Hit

_HEAD = ("#", "score", "found by", "who", "id", "text")


def hits_text(hits: Sequence[Hit]) -> str:
    """Return hits as a table; the parts of a score follow its line when they were asked for."""
    lines = columns(_HEAD, (_cells(rank, hit, 72) for rank, hit in enumerate(hits, 1)), right=(0, 1))
    explained = [f"{rank}: {_signals(hit)}" for rank, hit in enumerate(hits, 1) if hit.signals]
    return "\n".join([*lines, *explained[: len(lines)]])


def hits_html(hits: Sequence[Hit]) -> Html:
    """Return hits for a notebook."""
    rows = []
    for rank, hit in enumerate(hits, 1):
        *cells, text = _cells(rank, hit, 160)
        rows.append((*cells, fold(text, element("span", _signals(hit), class_="dim")) if hit.signals else text))
    return view(element("div", f"{len(hits)} hits"), table(_HEAD, rows, right=(0, 1)))


def hits_records(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """Return one mapping per hit, each part of its score in a column of its own, for data frames."""
    return [
        {
            "rank": rank,
            "record_id": hit.record_id,
            "score": hit.score,
            "matched_by": tuple(hit.matched_by),
            "sequence": hit.sequence,
            "role": hit.role,
            "speaker": hit.speaker,
            "occurred_at": hit.occurred_at,
            "citation": hit.citation,
            "text": hit.text,
            **{f"signal_{name}": value for name, value in hit.signals.items()},
        }
        for rank, hit in enumerate(hits, 1)
    ]


def _cells(rank: int, hit: Hit, limit: int) -> tuple[str, ...]:
    who = " ".join(filter(None, (hit.speaker or hit.role, _day(hit.occurred_at))))
    found_by = "+".join(hit.matched_by)
    return str(rank), number(float(hit.score)), found_by, preview(who, 40), hit.record_id, preview(hit.text, limit)


def _day(occurred_at: float | None) -> str:
    if occurred_at is None:
        return ""
    return dt.datetime.fromtimestamp(occurred_at, dt.UTC).date().isoformat()


def _signals(hit: Hit) -> str:
    return " · ".join(
        f"{preview(name, 40)} {value:+.3f}" for name, value in sorted(hit.signals.items(), key=lambda pair: -pair[1])
    )
