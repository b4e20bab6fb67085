"""Source adapters for libctx: text, files, directories, git commits, saved pages, notebooks, chats, documents.

Public names load with their first use, so that the plugin costs nothing until it is asked.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from libctx_sources.adapters import ADAPTERS, default_adapters
    from libctx_sources.chunking import Chunk, chunks
    from libctx_sources.claude_export import ClaudeExport
    from libctx_sources.directories import DirectoryInput, walk
    from libctx_sources.files import FileInput, TextInput
    from libctx_sources.git import GitInput, git_files
    from libctx_sources.html import HtmlInput
    from libctx_sources.ingestion import Ingested, Ingestion
    from libctx_sources.langchain import LangChainDocument, LangChainLoader
    from libctx_sources.llamaindex import LlamaIndexDocument, LlamaIndexReader
    from libctx_sources.locomo import LocomoFile
    from libctx_sources.notebooks import NotebookInput
    from libctx_sources.openai_export import OpenAIExport
    from libctx_sources.passages import Passage

_HOMES = {
    "ADAPTERS": "adapters",
    "Chunk": "chunking",
    "ClaudeExport": "claude_export",
    "DirectoryInput": "directories",
    "FileInput": "files",
    "GitInput": "git",
    "HtmlInput": "html",
    "Ingested": "ingestion",
    "Ingestion": "ingestion",
    "LangChainDocument": "langchain",
    "LangChainLoader": "langchain",
    "LlamaIndexDocument": "llamaindex",
    "LlamaIndexReader": "llamaindex",
    "LocomoFile": "locomo",
    "NotebookInput": "notebooks",
    "OpenAIExport": "openai_export",
    "Passage": "passages",
    "TextInput": "files",
    "chunks": "chunking",
    "default_adapters": "adapters",
    "git_files": "git",
    "walk": "directories",
}

__all__ = [
    "ADAPTERS",
    "Chunk",
    "ClaudeExport",
    "DirectoryInput",
    "FileInput",
    "GitInput",
    "HtmlInput",
    "Ingested",
    "Ingestion",
    "LangChainDocument",
    "LangChainLoader",
    "LlamaIndexDocument",
    "LlamaIndexReader",
    "LocomoFile",
    "NotebookInput",
    "OpenAIExport",
    "Passage",
    "TextInput",
    "chunks",
    "default_adapters",
    "git_files",
    "walk",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
