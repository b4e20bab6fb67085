"""The operation × selector grid of a scope, as text and as HTML."""

from html import escape

from libctx_core.access.rights import SELECTABLE, Rights
from libctx_core.access.scope import Scope, grant_of
from libctx_core.access.selectors import Boundary, Contained, Selector

MAX_ROWS = 200


def _label(selector: Selector) -> tuple[str, str]:
    if type(selector) is Contained:
        return ("contained", f"{selector.resource_id} in {selector.boundary_id}")
    return ("boundary" if type(selector) is Boundary else "resource", getattr(selector, "id", ""))


def rights_grid(rights: Rights) -> list[tuple[str, str, tuple[bool, ...]]]:
    """Return one row per selector: its type, its id, and for each operation whether it grants it."""
    selectors = {selector for operation in SELECTABLE for selector in rights.selectors(operation)}
    return [
        (*_label(selector), tuple(selector in rights.selectors(operation) for operation in SELECTABLE))
        for selector in sorted(selectors, key=_label)
    ]


def scope_text(scope: Scope) -> str:
    """Return a scope as a table of text; layers follow one another."""
    grant = grant_of(scope)
    lines = [f"{grant.principal.id} · {grant.mode} · delegable: {'yes' if grant.delegable() else 'no'}"]
    for layer in grant.layers:
        rows = rights_grid(layer)
        width = max([len(f"{kind} {name}") for kind, name, _ in rows[:MAX_ROWS]], default=8)
        lines.append(" " * width + "  " + "  ".join(operation.lower() for operation in SELECTABLE))
        for kind, name, granted in rows[:MAX_ROWS]:
            cells = "  ".join(
                ("x" if yes else "·").center(len(operation)) for operation, yes in zip(SELECTABLE, granted, strict=True)
            )
            lines.append(f"{kind} {name}".ljust(width) + "  " + cells)
        if len(rows) > MAX_ROWS:
            lines.append(f"… {len(rows) - MAX_ROWS} more")
    return "\n".join(lines)


def scope_html(scope: Scope) -> str:
    """Return a scope as an HTML table, everything escaped."""
    grant = grant_of(scope)
    head = "".join(f"<th>{operation.lower()}</th>" for operation in SELECTABLE)
    tables = []
    for layer in grant.layers:
        rows = rights_grid(layer)
        body = "".join(
            f"<tr><td>{kind} <code>{escape(name)}</code></td>"
            + "".join(f"<td>{'✓' if yes else ''}</td>" for yes in granted)
            + "</tr>"
            for kind, name, granted in rows[:MAX_ROWS]
        )
        more = len(rows) - MAX_ROWS
        tail = f"<tr><td colspan='6'>… {more} more</td></tr>" if more > 0 else ""
        tables.append(f"<table><tr><th>selector</th>{head}</tr>{body}{tail}</table>")
    delegable = "delegable" if grant.delegable() else "not delegable"
    return (
        f"<div><b>{escape(grant.principal.id)}</b> · {grant.mode} · {delegable}" + "<p>and</p>".join(tables) + "</div>"
    )
