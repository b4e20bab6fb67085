"""All adapters of this package, by the names they are registered under."""

from collections.abc import Callable, Mapping
from typing import Any

from libctx_core.sources import AnySourceAdapter
from libctx_sources.claude_export import ClaudeExportAdapter
from libctx_sources.directories import DirectoryAdapter
from libctx_sources.files import FileAdapter, TextAdapter
from libctx_sources.git import GitAdapter
from libctx_sources.html import HtmlAdapter
from libctx_sources.langchain import LangChainDocumentAdapter, LangChainLoaderAdapter
from libctx_sources.llamaindex import LlamaIndexDocumentAdapter, LlamaIndexReaderAdapter
from libctx_sources.locomo import LocomoAdapter
from libctx_sources.notebooks import NotebookAdapter
from libctx_sources.openai_export import OpenAIExportAdapter

ADAPTERS: Mapping[str, Callable[[], Any]] = {
    adapter.name: adapter
    for adapter in (
        TextAdapter,
        FileAdapter,
        DirectoryAdapter,
        GitAdapter,
        HtmlAdapter,
        NotebookAdapter,
        OpenAIExportAdapter,
        ClaudeExportAdapter,
        LocomoAdapter,
        LangChainDocumentAdapter,
        LangChainLoaderAdapter,
        LlamaIndexDocumentAdapter,
        LlamaIndexReaderAdapter,
    )
}


def default_adapters() -> tuple[AnySourceAdapter, ...]:
    """Return one adapter of each kind."""
    return tuple(make() for make in ADAPTERS.values())
