"""LangGraph checkpoints in a library file.

Needs the extra ``langchain-libctx[langgraph]``.
"""

from langchain_libctx.checkpoint.saver import LibrarySaver
from langchain_libctx.checkpoint.serde import LibrarySerializer, UnrevivedValue, UnrevivedValueError

__all__ = ["LibrarySaver", "LibrarySerializer", "UnrevivedValue", "UnrevivedValueError"]
