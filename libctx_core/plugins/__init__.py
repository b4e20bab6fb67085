"""Plugins: hooks, a loader that isolates what is broken, and typed access to what is loaded."""

from libctx_core.plugins.discovery import VARIABLE
from libctx_core.plugins.manager import Plugins
from libctx_core.plugins.markers import hookimpl
from libctx_core.plugins.status import Fault, PluginStatus

__all__ = ["VARIABLE", "Fault", "PluginStatus", "Plugins", "hookimpl"]
