"""Claude data exports."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from libctx_core.sources import Value
from libctx_sources.chats import ChatAdapter, ChatMessage, ChatSource, listed, seconds, text_or


class ClaudeExport(Value):
    """``conversations.json`` of a Claude data export.

    Attributes:
        path: The file.
    """

    path: Path


class ClaudeExportSource(ChatSource):
    """A Claude data export."""


def claude_messages(document: Any, origin: str) -> Iterator[ChatMessage]:
    """Yield the messages of every conversation, in order.

    Raises:
        SourceUnreadableError: It is no such export.
    """
    for number, conversation in enumerate(listed(document, origin, "conversations"), start=1):
        messages = listed(conversation.get("chat_messages"), origin, f"messages in conversation {number}")
        session = text_or(conversation.get("name"), text_or(conversation.get("uuid"), f"conversation {number}"))
        for at, message in enumerate(messages, start=1):
            text = _claude_text(message)
            names = [
                item["file_name"]
                for key in ("attachments", "files")
                for item in message.get(key) or ()
                if isinstance(item, dict) and isinstance(item.get("file_name"), str)
            ]
            if text.strip():
                yield ChatMessage(
                    text_or(message.get("uuid"), f"{number}.{at}"),
                    text,
                    text_or(message.get("sender"), "unknown"),
                    session,
                    seconds(message.get("created_at")),
                    ", ".join(names) or None,
                )


def _claude_text(message: dict[str, Any]) -> str:
    blocks = message.get("content")
    if isinstance(blocks, list):
        words = [
            block["text"]
            for block in blocks
            if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
        ]
        if words:
            return "\n".join(words)
    return text_or(message.get("text"), "")


class ClaudeExportAdapter(ChatAdapter[ClaudeExport, ClaudeExportSource]):
    """Captures a Claude data export."""

    input_class = ClaudeExport
    name = "claude-export"
    source_class = ClaudeExportSource

    def path_of(self, value: ClaudeExport, /) -> Path:
        """Return the file of an input."""
        return value.path

    def messages(self, document: Any, origin: str, /) -> Iterator[ChatMessage]:
        """Yield its messages; see `claude_messages`."""
        return claude_messages(document, origin)
