"""The command: plays a conversation twice, and prints what the difference is."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_BUDGET = 2_000
"""Tokens a request may hold: about a quarter of the conversation that ships with the package."""


def command(
    source: Annotated[
        Path | None,
        typer.Option(
            "--input", "-i", exists=True, dir_okay=False, help="A chat export of OpenAI or Claude, or a LoCoMo file."
        ),
    ] = None,
    *,
    budget: Annotated[int, typer.Option("--budget", "-b", min=200, help="Tokens a request may hold.")] = DEFAULT_BUDGET,
    turns: Annotated[bool, typer.Option("--turns", "-v", help="Show each turn: what the model saw.")] = False,
    library: Annotated[Path | None, typer.Option("--library", help="Keep the library in this new file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for machines.")] = False,
) -> None:
    """Play a long conversation through a LangChain chain, then ask what was said long ago."""
    from langchain_libctx.extras import extra

    with extra("classic", "libctx demo"):
        from langchain_libctx.demo.show import Show
    if library is not None:
        Show(source, budget=budget, turns=turns, json=json).run(library)
        return
    with tempfile.TemporaryDirectory(prefix="libctx-demo-") as folder:
        Show(source, budget=budget, turns=turns, json=json).run(Path(folder) / "demo.sqlite")
