"""The two pluggy markers of this project."""

import pluggy

PROJECT = "libctx"
"""Project name of the hooks, and entry-point group of the plugins."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
