"""The bounded request: an immutable value that can say why each message is there."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from libctx_core import display
from libctx_core.governor.providers import to_anthropic, to_openai
from libctx_core.governor.rendering import Message
from libctx_core.models import ContextEvent, Hit, ThreadKey, Watermarks

Origin = Literal["system", "protected", "recent", "desk", "turn", "synthetic"]


@dataclass(frozen=True, slots=True)
class Part:
    """Why a message is in the request.

    Attributes:
        origin: Which share it was paid from.
        role: Role of the message.
        tokens: Its tokens, overhead included.
        event_id: The event it shows, if it shows one.
        record_ids: The records it shows, for the desk and for pinned events.
        cut: Whether text was left out of it.
        note: What was changed, if anything.
        preview: Its first words.
        event: The stored event itself, if the message shows one; adapters find its native form here.
    """

    origin: Origin
    role: str
    tokens: int
    event_id: str | None = None
    record_ids: tuple[str, ...] = ()
    cut: bool = False
    note: str = ""
    preview: str = ""
    event: ContextEvent | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class OmittedProtected:
    """A protected event that found no room; always reported.

    Attributes:
        event_id: The event.
        tokens: What it would have taken.
        reason: Why it did not fit.
    """

    event_id: str
    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class Omission:
    """Events that are not in the request, and why; each can be paged in again.

    Attributes:
        reason: Why.
        count: How many.
        first_sequence: Lowest sequence among them.
        last_sequence: Highest sequence among them.
        event_ids: Their ids where there are few.
    """

    reason: str
    count: int
    first_sequence: int
    last_sequence: int
    event_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeskItem:
    """A retrieved item as it is shown.

    Attributes:
        hit: What was found.
        tokens: Tokens of its line.
        cut: Whether its text was shortened.
    """

    hit: Hit
    tokens: int
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Desk:
    """The retrieved items of a request and how they differ from the thread's last desk.

    Attributes:
        items: What is shown, in order of sequence.
        swapped_in: Record ids that were not on the last desk.
        swapped_out: Record ids of the last desk that are gone.
        retained: Record ids that stayed.
    """

    items: tuple[DeskItem, ...] = ()
    swapped_in: tuple[str, ...] = ()
    swapped_out: tuple[str, ...] = ()
    retained: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[DeskItem]:
        return iter(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernedPrompt:
    """One bounded, valid request; send `messages`, and nothing else, to the model.

    Attributes:
        messages: Plain messages with text or content blocks.
        parts: For every message, why it is there.
        token_count: Tokens of messages, tools and reply head under `tokenizer`.
        token_budget: Tokens it may hold.
        recent_event_ids: Events shown directly from the end of the thread, the running turn included.
        protected_event_ids: Protected events shown directly.
        omitted_protected: Protected events that found no room.
        omitted: Every other event that is not shown, by reason.
        paged_out_events: Number of the thread's events that are not shown directly.
        desk: Retrieved items and how the desk changed.
        watermarks: How far the thread is durable and searchable.
        replaces_compaction: Paging controls the request; the provider's compaction is not needed.
        tokenizer: Name of the counter.
        exact: Whether it counts as the model does; otherwise it never counts less.
        thread: The thread.
        event_id: The user event the request ends with; hand it to ``commit(reply_to=…)``.
        answer: The stored reply to that event, when the turn was answered before.
    """

    messages: tuple[Message, ...]
    parts: tuple[Part, ...]
    token_count: int
    token_budget: int
    recent_event_ids: tuple[str, ...]
    protected_event_ids: tuple[str, ...]
    omitted_protected: tuple[OmittedProtected, ...]
    omitted: tuple[Omission, ...]
    paged_out_events: int
    desk: Desk
    watermarks: Watermarks
    tokenizer: str
    exact: bool
    thread: ThreadKey
    event_id: str | None = None
    answer: ContextEvent | None = field(default=None, repr=False)
    replaces_compaction: bool = True

    def to_openai(self) -> list[dict[str, Any]]:
        """Return the messages in the shape of OpenAI's chat completions."""
        return to_openai(self.messages)

    def to_anthropic(self, *, cache: bool = True) -> dict[str, Any]:
        """Return ``system`` and ``messages`` in Anthropic's shape.

        Args:
            cache: Mark the end of the stable prefix with a cache breakpoint.
        """
        return to_anthropic(self.messages, stable=self.stable_messages if cache else 0)

    @property
    def stable_messages(self) -> int:
        """Messages before the desk and the running turn: what the next request repeats."""
        for index, part in enumerate(self.parts):
            if part.origin in ("desk", "turn"):
                return index
        return len(self.parts)

    def explain(self) -> str:
        """Return, line by line, why each message is there and what was left out."""
        return display.prompt_text(self)

    def to_records(self) -> list[dict[str, Any]]:
        """Return one mapping per message, for data frames."""
        return display.prompt_records(self)

    def __str__(self) -> str:
        return display.prompt_summary(self)

    def __repr__(self) -> str:
        return f"<{self}>"

    def _repr_html_(self) -> str:
        return display.prompt_html(self)
