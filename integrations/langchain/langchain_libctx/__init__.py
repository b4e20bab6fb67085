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
    from langchain_libctx.document_loaders import SourceLoader, shelve_documents
    from langchain_libctx.embeddings import LangChainEmbedder, LibraryEmbeddings
    from langchain_libctx.generators import ChatModelGenerator
    from langchain_libctx.memory import LibraryMemory
    from langchain_libctx.messages import to_langchain
    from langchain_libctx.middleware import ContextGovernorMiddleware
    from langchain_libctx.retrievers import LibraryRetriever
    from langchain_libctx.runnables import GovernedRunnable
    from langchain_libctx.sessions import configurable_session
    from langchain_libctx.store import AsyncLibraryStore, LibraryStore
    from langchain_libctx.stores import LibraryByteStore
    from langchain_libctx.tools import library_tools, secure_bank_tools
    from langchain_libctx.vectorstores import LibraryVectorStore

__version__ = "0.1.0"

_WHERE = {
    "AsyncLibraryStore": "store",
    "ChatModelGenerator": "generators",
    "ContextGovernorMiddleware": "middleware",
    "GovernedRunnable": "runnables",
    "LangChainEmbedder": "embeddings",
    "LibraryByteStore": "stores",
    "LibraryChatMessageHistory": "chat_message_histories",
    "LibraryEmbeddings": "embeddings",
    "LibraryMemory": "memory",
    "LibraryRetriever": "retrievers",
    "LibrarySaver": "checkpoint",
    "LibrarySerializer": "checkpoint",
    "LibraryStore": "store",
    "LibraryVectorStore": "vectorstores",
    "SourceLoader": "document_loaders",
    "configurable_session": "sessions",
    "library_tools": "tools",
    "secure_bank_tools": "tools",
    "shelve_documents": "document_loaders",
    "to_langchain": "messages",
}

__all__ = [
    "AsyncLibraryStore",
    "ChatModelGenerator",
    "ContextGovernorMiddleware",
    "GovernedRunnable",
    "LangChainEmbedder",
    "LibraryByteStore",
    "LibraryChatMessageHistory",
    "LibraryEmbeddings",
    "LibraryMemory",
    "LibraryRetriever",
    "LibrarySaver",
    "LibrarySerializer",
    "LibraryStore",
    "LibraryVectorStore",
    "SourceLoader",
    "configurable_session",
    "library_tools",
    "secure_bank_tools",
    "shelve_documents",
    "to_langchain",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
