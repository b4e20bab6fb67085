"""Governed context and memory for LangChain and LangGraph.

Names are imported when they are first used, so that none of the optional frameworks is
needed for the rest: classic chains (``[classic]``), agents (``[agents]``) and LangGraph
(``[langgraph]``).
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_libctx.chat_message_histories import LibraryChatMessageHistory
    from langchain_libctx.checkpoint import LibrarySaver, LibrarySerializer
    from langchain_libctx.memory import LibraryMemory
    from langchain_libctx.messages import to_langchain
    from langchain_libctx.sessions import configurable_session
    from langchain_libctx.store import AsyncLibraryStore, LibraryStore

__version__ = "0.1.0"

_WHERE = {
    "AsyncLibraryStore": "store",
    "LibraryChatMessageHistory": "chat_message_histories",
    "LibraryMemory": "memory",
    "LibrarySaver": "checkpoint",
    "LibrarySerializer": "checkpoint",
    "LibraryStore": "store",
    "configurable_session": "sessions",
    "to_langchain": "messages",
}

__all__ = [
    "AsyncLibraryStore",
    "LibraryChatMessageHistory",
    "LibraryMemory",
    "LibrarySaver",
    "LibrarySerializer",
    "LibraryStore",
    "configurable_session",
    "to_langchain",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
