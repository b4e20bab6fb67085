"""Choosing the adapter of a file by its name and, for JSON, by its shape."""

from pathlib import Path
from typing import Any

from libctx_sources.claude_export import ClaudeExport
from libctx_sources.files import FileInput
from libctx_sources.html import HtmlInput
from libctx_sources.locomo import LocomoFile
from libctx_sources.notebooks import NotebookInput
from libctx_sources.openai_export import OpenAIExport
from libctx_sources.reading import parsed_json, read_file


def input_for(path: Path, *, capture: bool = True) -> Any:
    """Return the input under which a file is best taken in.

    Args:
        path: The file.
        capture: Keep the bytes of plain files; pages, notebooks and chats are always kept.

    Raises:
        SourceUnreadableError: It cannot be read, or is named like JSON and is none.
    """
    suffix = path.suffix.lower()
    if suffix in (".html", ".htm", ".xhtml"):
        return HtmlInput(path=path)
    if suffix == ".ipynb":
        return NotebookInput(path=path)
    if suffix == ".json":
        return _chat(path) or FileInput(path=path, capture=capture)
    return FileInput(path=path, capture=capture)


def _chat(path: Path) -> OpenAIExport | ClaudeExport | LocomoFile | None:
    found = read_file(path)
    document = parsed_json(found.data, found.origin)
    first = document[0] if isinstance(document, list) and document else None
    if not isinstance(first, dict):
        return None
    if "mapping" in first:
        return OpenAIExport(path=path)
    if "chat_messages" in first:
        return ClaudeExport(path=path)
    if isinstance(first.get("conversation"), dict):
        return LocomoFile(path=path)
    return None
