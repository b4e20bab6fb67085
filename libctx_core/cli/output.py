"""What commands print: tables for people, one JSON object for machines, progress on stderr."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from libctx_core.display import preview, visible

PIPED_WIDTH = 140
"""Cells of a table that does not go to a terminal."""


class Advance(Protocol):
    """Moves a progress bar."""

    def __call__(self, done: int, total: int | None = None) -> None:
        """Show that `done` of `total` steps are done."""
        ...


def emit_json(value: object) -> None:
    """Print one JSON document in one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, default=str) + "\n")


def emit_table(title: str, rows: Sequence[Mapping[str, Any]], *, empty: str = "nothing") -> None:
    """Print mappings as a table; the first row names the columns."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
    if not rows:
        console.print(Text(f"{visible(title)}: {empty}"))
        return
    table = Table(title=Text(visible(title)), title_justify="left", header_style="bold", box=None, pad_edge=False)
    for name, value in rows[0].items():
        right = isinstance(value, int | float) and not isinstance(value, bool)
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_shown(value)) for value in row.values()))
    console.print(table)


def emit_lines(lines: Sequence[str]) -> None:
    """Print lines as they are; whoever wrote them made them safe."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def complain(code: str, message: str) -> None:
    """Print one line about an error on stderr."""
    sys.stderr.write(f"error[{code}]: {visible(message)}\n")


def notice(message: str) -> None:
    """Print one line on stderr that is no error."""
    sys.stderr.write(f"{visible(message)}\n")


@contextmanager
def progress(title: str, *, quiet: bool = False) -> Iterator[Advance]:
    """Show a progress bar on stderr while the block runs; none if `quiet` or not at a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda done, total=None: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    with bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total=None: bar.update(task, completed=done, total=total)


def _shown(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.2f}"
    return preview(value)
