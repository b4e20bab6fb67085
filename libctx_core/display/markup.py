"""HTML built from elements, so that nothing is markup unless this module made it."""

import html
from collections.abc import Iterable, Sequence

from libctx_core.display.plain import MAX_ROWS, more, preview


class Html(str):
    """Text that is markup already; every other text is escaped when it becomes a child."""

    __slots__ = ()


MAX_TEXT = 400
"""Characters of any one text in a view."""

_VOID = frozenset({"br", "line"})

STYLE = Html(
    "<style>"
    ".libctx{font:13px/1.45 system-ui,sans-serif;max-width:60rem}"
    ".libctx table{border-collapse:collapse;width:100%;font-size:12px}"
    ".libctx th,.libctx td{text-align:left;padding:2px 8px 2px 0;vertical-align:top;"
    "border-bottom:1px solid rgba(128,128,128,.25);overflow-wrap:anywhere}"
    ".libctx td.n,.libctx th.n{text-align:right;white-space:nowrap}"
    ".libctx .bar{display:flex;height:14px;border-radius:3px;overflow:hidden;"
    "background:rgba(128,128,128,.18);margin:4px 0}"
    ".libctx .key{display:inline-block;width:9px;height:9px;border-radius:2px;margin:0 4px 0 10px}"
    ".libctx .dim{opacity:.65}.libctx .alert{color:#c62828}"
    ".libctx summary{cursor:pointer}"
    ".libctx .over{background:repeating-linear-gradient(45deg,#c62828 0 4px,#ffcdd2 4px 8px)}"
    "</style>"
)

COLOURS = {
    "system": "#607d8b",
    "protected": "#8e24aa",
    "recent": "#1e88e5",
    "desk": "#43a047",
    "turn": "#fb8c00",
    "synthetic": "#9e9e9e",
    "frame": "#6d4c41",
}
"""Colour of each share of a request."""


def element(tag: str, *children: str, **attributes: str) -> Html:
    """Return one element; children that are no `Html` are escaped, and so are attributes.

    Args:
        tag: Name of the element.
        children: Text or markup.
        attributes: Values; a trailing underscore and inner underscores become what HTML
            spells (``class_``, ``stroke_width``).
    """
    listed = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(preview(value, MAX_TEXT))}"'
        for name, value in attributes.items()
    )
    if tag in _VOID:
        return Html(f"<{tag}{listed}/>")
    return Html(f"<{tag}{listed}>{''.join(escape(child) for child in children)}</{tag}>")


def escape(text: str) -> Html:
    """Return text as markup: `Html` as it is, anything else as a safe line, capped and escaped."""
    return text if isinstance(text, Html) else Html(html.escape(preview(text, MAX_TEXT)))


def view(*children: str) -> Html:
    """Return a whole view: the style and the children in one scoped block."""
    return element("div", STYLE, *children, class_="libctx")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[int] = ()) -> Html:
    """Return a table, capped at `MAX_ROWS` rows.

    Args:
        head: Column titles.
        rows: Cells, text or markup.
        right: Indexes of the columns that are aligned right.
    """
    numeric = frozenset(right)
    body = list(rows)
    lines = [_row("td", cells, numeric) for cells in body[:MAX_ROWS]]
    if len(body) > MAX_ROWS:
        cell = element("td", more(len(body) - MAX_ROWS), colspan=str(len(head)), class_="dim")
        lines.append(element("tr", cell))
    return element("table", element("thead", _row("th", head, numeric)), element("tbody", *lines))


def _row(tag: str, cells: Sequence[str], numeric: frozenset[int]) -> Html:
    return element(
        "tr",
        *(
            element(tag, cell, class_="n") if index in numeric else element(tag, cell)
            for index, cell in enumerate(cells)
        ),
    )


def fold(summary: str, *children: str, open_: bool = False) -> Html:
    """Return a block that opens on a click, without a script."""
    head = element("summary", summary)
    return element("details", head, *children, open="open") if open_ else element("details", head, *children)


def stacked_bar(shares: Iterable[tuple[str, str, int]], total: int) -> Html:
    """Return a horizontal bar.

    Args:
        shares: Title, colour and amount each.
        total: What the whole bar stands for. What goes beyond it is drawn as a hatched end.
    """
    parts = [(title, colour, amount) for title, colour, amount in shares if amount > 0]
    whole = max(total, sum(amount for _, _, amount in parts), 1)
    segments = [
        element("div", title=f"{title}: {amount:,}", style=f"width:{100 * amount / whole:.2f}%;background:{colour}")
        for title, colour, amount in parts
    ]
    if whole > total:
        segments.append(element("div", class_="over", title="over the budget", style="width:1rem"))
    return element("div", *segments, class_="bar")


def legend(entries: Iterable[tuple[str, str]]) -> Html:
    """Return the key of a bar: title and colour each."""
    return element(
        "div",
        *(
            Html(element("span", class_="key", style=f"background:{colour}") + escape(title))
            for title, colour in entries
        ),
        class_="dim",
    )
