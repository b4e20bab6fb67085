"""``libctx doctor``: is everything in order, and if not, what to do."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from libctx_core.cli.files import AsJson
from libctx_core.cli.output import emit_json, emit_table

EXIT_FAULT = 3
"""Exit code when a check found a fault."""

_MARKS = {"ok": "✓", "warning": "!", "fault": "✗"}


def command(
    library: Annotated[
        Path | None, typer.Argument(metavar="[LIBRARY]", help="A library file to look at too.", show_default=False)
    ] = None,
    *,
    json: AsJson = False,
) -> None:
    """Check the installation, and a library file; say what is wrong and what to do."""
    from libctx_core.cli.examination import library_findings
    from libctx_core.cli.installation import installation_findings

    findings = installation_findings() + ([] if library is None else library_findings(library))
    if json:
        emit_json([dataclasses.asdict(finding) for finding in findings])
    else:
        rows = [
            {"": _MARKS[finding.state], "check": finding.check, "found": finding.found, "what to do": finding.advice}
            for finding in findings
        ]
        worst = max((finding.state for finding in findings), key=list(_MARKS).index)
        emit_table({"ok": "all well", "warning": "usable", "fault": "not well"}[worst], rows)
    if any(finding.state == "fault" for finding in findings):
        raise typer.Exit(EXIT_FAULT)
