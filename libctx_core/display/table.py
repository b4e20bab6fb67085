"""A plain table of mappings: plugins, reports, figures."""

from collections.abc import Mapping, Sequence
from typing import Any

from libctx_core.display.markup import Html, element, table, view
from libctx_core.display.plain import columns, number, preview


def table_text(title: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as an aligned table under a title; the first row names the columns."""
    head, right = _shape(rows)
    return "\n".join(
        [
            preview(title),
            *columns(
                [preview(name) for name in head], ([_cell(row.get(name)) for name in head] for row in rows), right=right
            ),
        ]
    )


def table_html(title: str, rows: Sequence[Mapping[str, Any]]) -> Html:
    """Return rows as a table for a notebook; the first row names the columns."""
    head, right = _shape(rows)
    cells = [[_cell(row.get(name)) for name in head] for row in rows]
    return view(element("div", element("b", title)), table(head, cells, right=right))


def _shape(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[int]]:
    head = list(rows[0]) if rows else []
    right = [
        index
        for index, name in enumerate(head)
        if all(isinstance(row.get(name), int | float) and not isinstance(row.get(name), bool) for row in rows)
    ]
    return head, right


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list | tuple):
        return preview(", ".join(str(item) for item in value))
    return preview(value)
