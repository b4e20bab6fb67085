"""ChatGPT data exports."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from libctx_core.errors import SourceUnreadableError
from libctx_core.sources import Value
from libctx_sources.chats import ChatAdapter, ChatMessage, ChatSource, listed, seconds, text_or


class OpenAIExport(Value):
    """``conversations.json`` of a ChatGPT data export.

    Attributes:
        path: The file.
    """

    path: Path


class OpenAIExportSource(ChatSource):
    """A ChatGPT data export."""


def openai_messages(document: Any, origin: str) -> Iterator[ChatMessage]:
    """Yield the messages of the branch that each conversation shows.

    Raises:
        SourceUnreadableError: It is no such export.
    """
    for number, conversation in enumerate(listed(document, origin, "conversations"), start=1):
        nodes = conversation.get("mapping")
        if not isinstance(nodes, dict):
            raise SourceUnreadableError(origin, f"conversation {number} has no mapping of messages")
        session = text_or(
            conversation.get("title"), text_or(conversation.get("conversation_id"), f"conversation {number}")
        )
        for identity, message in _branch(nodes, conversation.get("current_node")):
            author = message.get("author")
            speaker = author.get("name") or author.get("role") if isinstance(author, dict) else None
            text, caption = _openai_parts(message.get("content"))
            if text.strip():
                yield ChatMessage(
                    identity, text, text_or(speaker, "unknown"), session, seconds(message.get("create_time")), caption
                )


def _branch(nodes: dict[str, Any], current: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return the messages from the root to the current node; a loop ends where it closes."""
    found: list[tuple[str, dict[str, Any]]] = []
    seen: set[str] = set()
    if not isinstance(current, str) or current not in nodes:
        leaves = [key for key, node in nodes.items() if isinstance(node, dict) and not node.get("children")]
        current = leaves[-1] if leaves else None
    while isinstance(current, str) and current in nodes and current not in seen:
        seen.add(current)
        node = nodes[current]
        if not isinstance(node, dict):
            break
        if isinstance(node.get("message"), dict):
            found.append((current, node["message"]))
        current = node.get("parent")
    return found[::-1]


def _openai_parts(content: Any) -> tuple[str, str | None]:
    """Return the words of a message and what is said about its attachments."""
    if not isinstance(content, dict):
        return "", None
    parts = content.get("parts")
    if not isinstance(parts, list):
        return text_or(content.get("text"), ""), None
    words = [part for part in parts if isinstance(part, str) and part.strip()]
    attached = [
        text_or(part.get("name"), text_or(part.get("content_type"), "attachment"))
        for part in parts
        if isinstance(part, dict)
    ]
    return "\n".join(words), ", ".join(attached) or None


class OpenAIExportAdapter(ChatAdapter[OpenAIExport, OpenAIExportSource]):
    """Captures a ChatGPT data export."""

    input_class = OpenAIExport
    name = "openai-export"
    source_class = OpenAIExportSource

    def path_of(self, value: OpenAIExport, /) -> Path:
        """Return the file of an input."""
        return value.path

    def messages(self, document: Any, origin: str, /) -> Iterator[ChatMessage]:
        """Yield its messages; see `openai_messages`."""
        return openai_messages(document, origin)
