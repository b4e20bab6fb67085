"""LangGraph's long-term store in a library file.

Needs the extra ``langchain-libctx[langgraph]``.
"""

from langchain_libctx.store.aio import AsyncLibraryStore
from langchain_libctx.store.store import LibraryStore

__all__ = ["AsyncLibraryStore", "LibraryStore"]
