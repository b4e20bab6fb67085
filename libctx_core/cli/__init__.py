"""The command line, ``libctx``: one command per module, heavy imports inside."""

from libctx_core.cli.app import main

__all__ = ["main"]
