"""Values that every room speaks: ids, content blocks, events, hits and watermarks."""

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from libctx_core.errors import (
    BlankContentError,
    InvalidIdentifierError,
    InvalidInputError,
    InvalidTextError,
    UnknownRoleError,
)

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
Block: TypeAlias = dict[str, Any]
Content: TypeAlias = str | Sequence[str | Mapping[str, Any]]
Clock: TypeAlias = Callable[[], float]

ROLES: tuple[Role, ...] = ("system", "developer", "user", "assistant", "tool")
HEAD_ROLES = frozenset({"system", "developer"})
"""Roles that may stand only at the head of a request, and are protected by default."""

BLOCK_TYPES = frozenset({"text", "reasoning", "tool_call", "tool_result", "image", "audio", "video", "file"})
"""Content blocks the library understands, named as LangChain's standard content blocks."""

MAX_ID_LENGTH = 512
"""Characters of an event, session, collection or user id."""

REPLACEMENT = "\ufffd"


def new_id(prefix: str) -> str:
    """Return a fresh identifier such as ``evt_019ad0…``: 48 bits of milliseconds, then 80 random ones.

    Ids made one after another are neighbours in an index, so that a store with a
    million of them still appends to the page it wrote last.
    """
    return f"{prefix}_{time.time_ns() // 1_000_000:012x}{os.urandom(10).hex()}"


def system_clock() -> float:
    """Return seconds since the epoch, UTC."""
    return time.time()


def check_identifier(field_name: str, value: object) -> str:
    """Return `value` if it can name something; ids are compared code point by code point.

    Raises:
        InvalidIdentifierError: Not exactly a ``str``, blank, over 512 characters, or
            holding NUL or a lone surrogate.
    """
    if type(value) is not str:
        raise InvalidIdentifierError(field_name, f"must be a str, not {type(value).__name__}")
    if not value or value.isspace():
        raise InvalidIdentifierError(field_name, "must not be blank")
    if len(value) > MAX_ID_LENGTH:
        raise InvalidIdentifierError(field_name, f"has {len(value)} characters; at most {MAX_ID_LENGTH} are allowed")
    if not is_storable(value):
        raise InvalidIdentifierError(field_name, "holds a NUL character or a lone surrogate")
    return value


def check_role(value: object) -> Role:
    """Return `value` if it is one of the five roles.

    Raises:
        UnknownRoleError: It is not.
    """
    for role in ROLES:
        if type(value) is str and value == role:
            return role
    raise UnknownRoleError("role", f"must be one of {', '.join(ROLES)}")


def is_storable(text: str) -> bool:
    """Tell whether text survives a round trip through UTF-8 and a C string."""
    if "\x00" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def repaired(text: str) -> str:
    """Return `text` with NUL and lone surrogates replaced by U+FFFD."""
    return text.replace("\x00", REPLACEMENT).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def canonical_json(value: object) -> str:
    """Return compact JSON with sorted keys; tuples become lists.

    Raises:
        TypeError: The value holds something JSON cannot express.
        ValueError: It holds NaN or an infinity, or refers to itself.
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


@dataclass(frozen=True, slots=True)
class NormalContent:
    """Content as it is stored.

    Attributes:
        value: Plain text, or a list of blocks.
        repaired: Whether characters had to be replaced.
    """

    value: str | list[Block]
    repaired: bool = False

    @property
    def stored(self) -> str:
        """The text of the content column: the text itself, or the blocks as JSON."""
        return self.value if isinstance(self.value, str) else canonical_json(self.value)


def normalise_content(role: Role, content: Content) -> NormalContent:
    """Check what a caller wrote; repair, never refuse, what a model or a tool returned.

    Raises:
        BlankContentError: A user, system or developer turn without text and attachments.
        InvalidTextError: Such a turn holds NUL or a lone surrogate.
        InvalidInputError: The content is no text and no list of blocks.
    """
    trusted_shape = role in ("assistant", "tool")
    if isinstance(content, str):
        if trusted_shape:
            return NormalContent(content) if is_storable(content) else NormalContent(repaired(content), repaired=True)
        if not content or content.isspace():
            raise BlankContentError("content", f"a {role} turn needs text or an attachment")
        if not is_storable(content):
            raise InvalidTextError("content", _text_defect(content))
        return NormalContent(content)
    if not isinstance(content, list | tuple):
        raise InvalidInputError("content", f"must be text or a list of content blocks, not {type(content).__name__}")
    blocks = [_normalise_block(index, block) for index, block in enumerate(content)]
    if not trusted_shape and not any(_says_something(block) for block in blocks):
        raise BlankContentError("content", f"a {role} turn needs text or an attachment")
    try:
        text = canonical_json(blocks)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("content", "a block holds something JSON cannot express") from error
    if is_storable(text) and "\\u0000" not in text:
        return NormalContent(blocks)
    if not trusted_shape:
        raise InvalidTextError("content", "a block holds a NUL character or a lone surrogate")
    return NormalContent(_repair_tree(blocks), repaired=True)


def _text_defect(text: str) -> str:
    kind = "a NUL character" if "\x00" in text else "a lone surrogate"
    return f"holds {kind} ({len(text)} characters in all); remove it or replace it"


def _normalise_block(index: int, block: str | Mapping[str, Any]) -> Block:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
        raise InvalidInputError(f"content[{index}]", "must be text or a mapping with a 'type'")
    return dict(block)


def _says_something(block: Block) -> bool:
    if block["type"] != "text":
        return True
    text = block.get("text")
    return isinstance(text, str) and bool(text) and not text.isspace()


def _repair_tree(value: Any) -> Any:
    if isinstance(value, str):
        return value if is_storable(value) else repaired(value)
    if isinstance(value, Mapping):
        return {_repair_tree(key): _repair_tree(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_repair_tree(item) for item in value]
    return value


def normalise_metadata(metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return metadata as JSON holds it: tuples as lists, keys as text.

    Raises:
        InvalidInputError: It is no mapping, or holds something JSON cannot express.
    """
    if metadata is None:
        return None
    if not isinstance(metadata, Mapping):
        raise InvalidInputError("metadata", f"must be a mapping, not {type(metadata).__name__}")
    try:
        text = canonical_json(dict(metadata))
    except (TypeError, ValueError) as error:
        raise InvalidInputError("metadata", "holds something JSON cannot express") from error
    if not is_storable(text):
        raise InvalidTextError("metadata", "holds a lone surrogate")
    plain: dict[str, Any] = json.loads(text)
    return plain


def text_of(content: str | Sequence[Mapping[str, Any]]) -> str:
    """Return the words of a content: what is searched and previewed, without binary data."""
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, (_block_text(block) for block in content)))


def _block_text(block: Mapping[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "tool_call":
        arguments = block.get("args", {})
        return f"{block.get('name', '')}({arguments if isinstance(arguments, str) else canonical_json(arguments)})"
    if kind == "tool_result":
        inner = block.get("content", "")
        return inner if isinstance(inner, str) else text_of(inner)
    return ""


def caption_of(content: str | Sequence[Mapping[str, Any]]) -> str | None:
    """Return the words that describe attachments: captions, titles and file names."""
    if isinstance(content, str):
        return None
    words = [
        str(block[key])
        for block in content
        if block.get("type") in ("image", "audio", "video", "file")
        for key in ("caption", "title", "filename", "name")
        if isinstance(block.get(key), str)
    ]
    return " ".join(words) or None


@dataclass(frozen=True, slots=True)
class ThreadKey:
    """Names one thread: a session within a collection."""

    collection: str
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextEvent:
    """One durable event of a thread.

    Attributes:
        event_id: Id within the thread.
        uid: Id within the library; ``e<uid>`` is its recall id.
        sequence: Place in the thread, from 1, without gaps.
        role: Who spoke.
        content: Text, or a list of content blocks.
        metadata: The caller's JSON object.
        importance: 0 to 1; ranks protected events against each other.
        protected: Whether it has priority for direct residence in the prompt.
        token_count: Tokens of its message under the counter named in `counter`.
        counter: Name of that counter.
        created_at: When it was stored, seconds since the epoch.
        speaker: Name of who spoke, where roles do not tell.
        occurred_at: When it happened, seconds since the epoch.
        turn_id: The turn it belongs to.
        reply_to: Event id of the user event it answers.
        parent_event_id: Event it follows, where the thread was forked.
        label: Name given by `protect`.
        native: The provider's or framework's own JSON, returned verbatim.
        redacted: Whether its text was removed.
        repaired: Whether characters were replaced when it was stored.
        running_total: Tokens of the thread up to and including it.
        branch: Branch of the thread it stands on; 0 is the trunk.
        revision: How often it was amended.
    """

    event_id: str
    uid: int
    sequence: int
    role: Role
    content: str | list[Block]
    metadata: dict[str, Any] | None = None
    importance: float = 0.5
    protected: bool = False
    token_count: int = 0
    counter: str = ""
    created_at: float = 0.0
    speaker: str | None = None
    occurred_at: float | None = None
    turn_id: str | None = None
    reply_to: str | None = None
    parent_event_id: str | None = None
    label: str | None = None
    native: str | None = field(default=None, repr=False)
    redacted: bool = False
    repaired: bool = False
    running_total: int = 0
    branch: int = 0
    revision: int = 0

    @property
    def text(self) -> str:
        """The words of the event, without binary data."""
        return text_of(self.content)

    @property
    def recall_id(self) -> str:
        """The id by which the model and `open_event` bring it back."""
        return f"e{self.uid}"

    @property
    def tool_calls(self) -> list[Block]:
        """The tool calls it makes."""
        if isinstance(self.content, str):
            return []
        return [block for block in self.content if block.get("type") == "tool_call"]

    @property
    def tool_call_id(self) -> str | None:
        """The call it answers, for a tool event."""
        if self.role != "tool" or isinstance(self.content, str):
            return None
        for block in self.content:
            if block.get("type") == "tool_result":
                return str(block.get("tool_call_id"))
        return None


@dataclass(frozen=True, slots=True)
class Watermarks:
    """How far a thread got; sequences, 0 for none.

    Attributes:
        recorded_through: Newest durable event.
        embedded_through: Every event up to here has its vector, or is quarantined.
        indexed_through: Every event up to here is searchable, or is quarantined.
    """

    recorded_through: int
    embedded_through: int
    indexed_through: int

    @property
    def lag(self) -> int:
        """Events that are durable and not yet searchable."""
        return self.recorded_through - self.indexed_through


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Something the library found.

    Attributes:
        record_id: Library-wide id of the record, as text; open or forget it by this.
        event_id: Id of the event it came from, if it is one.
        text: What it says.
        score: Rank value; comparable within one search only.
        relevance: Calibrated, 0 to 1; comparable across searches.
        signals: Each signal's part of the score, when asked to explain.
        matched_by: Channels that found it: ``lexical``, ``vector``.
        kind: ``event``, ``book``, ``chunk``, ``entry`` or ``node``.
        thread: The thread it stands in, if any.
        sequence: Its place in the thread.
        role: Who spoke.
        speaker: Name of who spoke.
        occurred_at: When it happened, seconds since the epoch.
        citation: Where it comes from, ready to be shown.
        metadata: The caller's JSON object.
    """

    record_id: str
    event_id: str | None
    text: str
    score: float
    relevance: float = 0.0
    signals: Mapping[str, float] = field(default_factory=dict)
    matched_by: tuple[str, ...] = ()
    kind: str = "event"
    thread: ThreadKey | None = None
    sequence: int | None = None
    role: str | None = None
    speaker: str | None = None
    occurred_at: float | None = None
    citation: str = ""
    metadata: Mapping[str, Any] | None = None
