"""The plugin that brings the source adapters; they load when one is asked for."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from libctx_core.plugins import hookimpl

__all__ = ["register_source_adapters"]

NAMES = (
    "text",
    "file",
    "directory",
    "git",
    "html",
    "notebook",
    "openai-export",
    "claude-export",
    "locomo",
    "langchain-document",
    "langchain-loader",
    "llamaindex-document",
    "llamaindex-reader",
)


@hookimpl
def register_source_adapters() -> Mapping[str, Callable[[], Any]]:
    """Bring an adapter for every kind of source this package knows."""
    return {name: partial(_adapter, name) for name in NAMES}


def _adapter(name: str) -> Any:
    from libctx_sources.adapters import ADAPTERS

    return ADAPTERS[name]()
