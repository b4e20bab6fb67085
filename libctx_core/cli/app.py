"""Finds the commands, the library's own and those of installed packages, and runs one."""

import importlib.metadata
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import Any

import typer

from libctx_core.cli.output import complain
from libctx_core.display import visible
from libctx_core.errors import LibctxError

GROUP = "libctx.commands"
"""Entry-point group of further commands; each entry is a function for typer, named ``command``."""

OWN = ("doctor", "stats", "threads", "history", "consult", "export", "import", "reindex")
"""The commands of this package, in the order of the help page; each is a module here."""

DEBUG = "LIBCTX_DEBUG"
"""Environment variable that adds the traceback to an error's line."""

EXIT_ERROR = 1

Command = Callable[..., Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Exit codes: 0 done, 1 error, 2 wrong usage, 3 `doctor` found a fault, 130 interrupted.
    """
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code; an error becomes one line on stderr."""
    try:
        application(arguments)(list(arguments), prog_name="libctx")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else EXIT_ERROR
    except LibctxError as error:
        return _fail(error.code, error)
    except OSError as error:
        return _fail("os", error)
    except Exception as error:  # noqa: BLE001 - the last line of defence of a program: one line, and how to see more
        return _fail("unexpected", error)
    return 0


def application(arguments: Sequence[str]) -> typer.Typer:
    """Return the application with the command the arguments name, or with all if they name none."""
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(_root)
    installed = {entry.name: entry for entry in importlib.metadata.entry_points(group=GROUP)}
    names = [*OWN, *sorted(installed.keys() - set(OWN))]
    wanted = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name in names if wanted not in names else [wanted]:
        app.command(name)(_own(name) if name in OWN else _foreign(installed[name]))
    return app


def _root() -> None:
    """Governed context and memory in one SQLite file."""


def _own(name: str) -> Command:
    command: Command = import_module(f"libctx_core.cli.{'import_' if name == 'import' else name}").command
    return command


def _foreign(entry: EntryPoint) -> Command:
    """Return the command of another package; one that is broken says so when it is run."""
    try:
        command: Command = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a package does when it is imported
        reason = visible(f"{type(error).__name__}: {error}")
        owner = entry.dist.name if entry.dist is not None else entry.value

        def broken() -> None:
            complain("command", f"{entry.name} of {owner} cannot be loaded: {reason}")
            raise typer.Exit(EXIT_ERROR)

        broken.__doc__ = f"Cannot be loaded: {reason}"
        return broken
    return command


def _fail(code: str, error: Exception) -> int:
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    hint = f" ({type(error).__name__}; set {DEBUG}=1 for the traceback)" if code == "unexpected" else ""
    complain(code, f"{str(error) or type(error).__name__}{hint}")
    return EXIT_ERROR
