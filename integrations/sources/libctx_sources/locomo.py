"""Files of LoCoMo conversations."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from libctx_core.errors import SourceUnreadableError
from libctx_core.sources import Value
from libctx_sources.chats import ChatAdapter, ChatMessage, ChatSource, listed, seconds, text_or


class LocomoFile(Value):
    """A file of LoCoMo conversations.

    Attributes:
        path: The file.
    """

    path: Path


class LocomoSource(ChatSource):
    """A file of LoCoMo conversations."""


def locomo_messages(document: Any, origin: str) -> Iterator[ChatMessage]:
    """Yield the turns of every conversation, dated by their session.

    Raises:
        SourceUnreadableError: It is no such file.
    """
    for number, sample in enumerate(listed(document, origin, "conversations"), start=1):
        talk = sample.get("conversation")
        if not isinstance(talk, dict):
            raise SourceUnreadableError(origin, f"conversation {number} has no sessions")
        name = text_or(sample.get("sample_id"), f"conversation {number}")
        sessions = sorted(
            (key for key, value in talk.items() if key.startswith("session_") and isinstance(value, list)),
            key=lambda key: (len(key), key),
        )
        for key in sessions:
            at = _locomo_time(talk.get(f"{key}_date_time"))
            for turn in listed(talk[key], origin, f"turns in {key}"):
                text = text_or(turn.get("text"), "")
                if text:
                    yield ChatMessage(
                        f"{name} {text_or(turn.get('dia_id'), key)}",
                        text,
                        text_or(turn.get("speaker"), "unknown"),
                        f"{name} {key}",
                        at,
                        turn.get("blip_caption") if isinstance(turn.get("blip_caption"), str) else None,
                    )


def _locomo_time(value: Any) -> float | None:
    try:
        return datetime.strptime(value, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).timestamp()
    except (TypeError, ValueError):
        return seconds(value)


class LocomoAdapter(ChatAdapter[LocomoFile, LocomoSource]):
    """Captures a file of LoCoMo conversations."""

    input_class = LocomoFile
    name = "locomo"
    source_class = LocomoSource

    def path_of(self, value: LocomoFile, /) -> Path:
        """Return the file of an input."""
        return value.path

    def messages(self, document: Any, origin: str, /) -> Iterator[ChatMessage]:
        """Yield its messages; see `locomo_messages`."""
        return locomo_messages(document, origin)
