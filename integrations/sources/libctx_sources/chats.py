"""Chat exports: captured whole, read message by message with speaker, session and time."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from libctx_core.errors import SourceUnreadableError
from libctx_sources.material import InputT, MaterialAdapter, MaterialSource
from libctx_sources.passages import Passage
from libctx_sources.reading import parsed_json, read_file


class ChatMessage(NamedTuple):
    """One message of an export.

    Attributes:
        identity: Its id in the export, or its place.
        text: What was said.
        speaker: Who said it.
        session: Name of its conversation.
        occurred_at: When, seconds since the epoch, UTC.
        caption: Text of attachments.
    """

    identity: str
    text: str
    speaker: str
    session: str
    occurred_at: float | None = None
    caption: str | None = None


class ChatSource(MaterialSource):
    """A chat export.

    Attributes:
        messages: Messages with text.
    """

    messages: int = 0


ChatT = TypeVar("ChatT", bound=ChatSource)


class ChatAdapter(MaterialAdapter[InputT, ChatT], Generic[InputT, ChatT]):
    """Captures a JSON export whole; its passages are its messages."""

    @abstractmethod
    def path_of(self, value: InputT, /) -> Path:
        """Return the file of an input."""

    @abstractmethod
    def messages(self, document: Any, origin: str, /) -> Iterator[ChatMessage]:
        """Yield the messages of a parsed export.

        Raises:
            SourceUnreadableError: It is no such export.
        """

    def describe(self, value: InputT, /) -> ChatT:
        """Return a captured source of the export.

        Raises:
            SourceUnreadableError: It is truncated, no such export, or holds no messages.
        """
        found = read_file(self.path_of(value))
        count = sum(1 for _ in self.messages(parsed_json(found.data, found.origin), found.origin))
        if count == 0:
            raise SourceUnreadableError(found.origin, "holds no messages")
        return self.describe_material(found, capture=True, messages=count)

    def passages(self, source: ChatT, value: bytes, /) -> Iterator[Passage]:
        """Yield its messages, located by their ids."""
        for message in self.messages(parsed_json(value, source.origin), source.origin):
            yield Passage(
                message.text,
                locator=f"message {message.identity}",
                speaker=message.speaker,
                session=message.session,
                occurred_at=message.occurred_at,
                caption=message.caption,
            )


def text_or(value: Any, default: str) -> str:
    """Return a text that is not blank, else the default."""
    return value if isinstance(value, str) and value.strip() else default


def listed(value: Any, origin: str, what: str) -> list[dict[str, Any]]:
    """Return a list of objects.

    Raises:
        SourceUnreadableError: It is none.
    """
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise SourceUnreadableError(origin, f"has no list of {what}")
    return value


def seconds(value: Any) -> float | None:
    """Return a time as seconds since the epoch, from a number or from ISO 8601; None if it is neither."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None
