"""What the demo prints: turns on request, answers, and the two runs side by side."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from langchain_libctx.demo.play import Request, Run
from libctx_core.display import preview

Facts = Mapping[str, str | int | float | bool]
"""What the library told its observers about one request."""


def print_turn(console: Console, request: Request, facts: Facts, *, budget: int) -> None:
    """Print what the model saw in one turn, what was paged out and what came back."""
    head = Text(f"turn {request.number}", style="bold")
    head.append(
        f" · {request.tokens:,}/{budget:,} tokens · {len(request.messages)} messages"
        f" · paged out {facts.get('libctx.paged_out', 0):,} · came back {facts.get('libctx.desk', 0)}"
        f" · {request.seconds * 1000:.1f} ms",
        style="dim",
    )
    console.print(head, soft_wrap=True)
    for message in request.messages:
        console.print(Text(f"  {message.type:6} {preview(message.text, 100)}"), soft_wrap=True)


def print_answer(console: Console, governed: Request, window: Request) -> None:
    """Print one question, and who still knew."""
    assert governed.question is not None, "only questions have answers"
    line = Text("  ")
    line.append("✓" if governed.found == 1.0 else "✗", style="green" if governed.found == 1.0 else "red")
    line.append(" ✓ " if window.found == 1.0 else " ✗ ", style="green" if window.found == 1.0 else "red")
    line.append(preview(governed.question.text, 70))
    line.append(f"  (turn {governed.question.turn + 1}: {preview(', '.join(governed.question.evidence), 40)})", "dim")
    console.print(line, soft_wrap=True)


def print_comparison(console: Console, governed: Run, window: Run, *, budget: int) -> None:
    """Print the figures of both runs."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column(governed.name, justify="right")
    table.add_column(window.name, justify="right")
    for title, *values in _rows([governed, window], budget):
        table.add_row(title, *values)
    console.print(table)


def as_record(governed: Run, window: Run, *, title: str, budget: int) -> dict[str, Any]:
    """Return the figures of both runs for machines."""
    return {
        "conversation": title,
        "token_budget": budget,
        "runs": {
            run.name: {
                "requests": len(run.requests),
                "questions": len(run.asked),
                "answered": run.found,
                "recall": round(run.recall, 4),
                "largest_request_tokens": run.largest,
                "tokens_sent": run.sent,
                "prefix_reuse": round(run.prefix_reuse, 4),
                "milliseconds_per_turn": round(run.milliseconds, 3),
            }
            for run in (governed, window)
        },
    }


def _rows(runs: Sequence[Run], budget: int) -> list[tuple[str, ...]]:
    rows = [
        ("requests", *(f"{len(run.requests):,}" for run in runs)),
        (f"largest request, tokens (budget {budget:,})", *(f"{run.largest:,}" for run in runs)),
        ("tokens sent", *(f"{run.sent:,}" for run in runs)),
        ("of them repeating the request before", *(f"{run.prefix_reuse:.0%}" for run in runs)),
        ("milliseconds a turn, CPU, median", *(f"{run.milliseconds:.1f}" for run in runs)),
    ]
    if runs[0].asked:
        rows.insert(1, ("facts in view when asked for", *(f"{run.found}/{len(run.asked)}" for run in runs)))
    return rows
