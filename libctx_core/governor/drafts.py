"""From what a caller says to an event that can be stored: checks, hooks, identity, tokens."""

import datetime as dt
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from libctx_core.errors import InvalidInputError, InvalidTextError
from libctx_core.governor.rendering import message_of
from libctx_core.models import (
    HEAD_ROLES,
    Content,
    NormalContent,
    Role,
    ThreadKey,
    canonical_json,
    check_identifier,
    check_role,
    is_storable,
    new_id,
    normalise_content,
    normalise_metadata,
)
from libctx_core.plugins import Plugins
from libctx_core.ports import IncomingEvent
from libctx_core.store.events import EventDraft
from libctx_core.tokens import TokenCounter

Moment = float | int | dt.datetime


class EventFields(TypedDict, total=False):
    """What may be said about an event besides its role and content.

    Attributes:
        event_id: The caller's id, so that a repeated call stores nothing twice.
        speaker: Name of who speaks, where roles do not tell.
        occurred_at: When it was said; seconds since the epoch or a datetime.
        turn_id: The turn it belongs to.
        reply_to: The user event it answers.
        parent_event_id: The event it follows, where the thread forks.
        attachments: Further content blocks.
        metadata: The caller's JSON object; ``session`` in it names the sitting.
        importance: 0 to 1; ranks protected events against each other.
        protected: Whether it has priority in later requests; by default system and developer events have.
        native: The framework's own JSON form, returned verbatim.
        label: A name for it.
    """

    event_id: str | None
    speaker: str | None
    occurred_at: Moment | None
    turn_id: str | None
    reply_to: str | None
    parent_event_id: str | None
    attachments: Sequence[Mapping[str, Any]]
    metadata: Mapping[str, Any] | None
    importance: float | None
    protected: bool | None
    native: object
    label: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventOptions:
    """The same with its defaults; see `EventFields`."""

    event_id: str | None = None
    speaker: str | None = None
    occurred_at: Moment | None = None
    turn_id: str | None = None
    reply_to: str | None = None
    parent_event_id: str | None = None
    attachments: Sequence[Mapping[str, Any]] = ()
    metadata: Mapping[str, Any] | None = None
    importance: float | None = None
    protected: bool | None = None
    native: object = None
    label: str | None = None


def draft_event(
    key: ThreadKey,
    role: str,
    content: Content,
    options: EventOptions,
    *,
    plugins: Plugins,
    counter: TokenCounter,
    now: float,
) -> EventDraft:
    """Check, sanitise and count an event.

    Raises:
        InvalidInputError: A field cannot be used; the error names it and its size or kind.
        PluginError: A `sanitize_event` hook failed, or refused the event.
    """
    checked = check_role(role)
    normal = normalise_content(checked, _with_attachments(content, options.attachments))
    metadata = normalise_metadata(options.metadata)
    speaker = _speaker(options.speaker)
    if plugins.implements("sanitize_event"):
        incoming = IncomingEvent(key.collection, key.session_id, checked, normal.value, speaker, metadata or {})
        outgoing = plugins.sanitize_event(incoming)
        if outgoing is not incoming:
            normal = normalise_content(checked, outgoing.content)
            metadata = normalise_metadata(outgoing.metadata) if outgoing.metadata or metadata else None
            speaker = _speaker(outgoing.speaker)
    stored = normal.stored
    return EventDraft(
        event_id=new_id("evt") if options.event_id is None else check_identifier("event_id", options.event_id),
        fresh=options.event_id is None,
        identity=identity_of(checked, stored),
        role=checked,
        content=stored,
        is_blocks=not isinstance(normal.value, str),
        metadata=None if metadata is None else canonical_json(metadata),
        importance=check_importance(options.importance),
        protected=checked in HEAD_ROLES if options.protected is None else bool(options.protected),
        tokens=count_content(checked, normal, speaker, counter),
        counter=counter.name,
        created_at=now,
        speaker=speaker,
        occurred_at=moment(options.occurred_at),
        turn_id=_optional_id("turn_id", options.turn_id),
        reply_to=_optional_id("reply_to", options.reply_to),
        parent_event_id=_optional_id("parent_event_id", options.parent_event_id),
        label=_label(options.label),
        native=native_json(options.native),
        repaired=normal.repaired,
    )


def identity_of(role: Role, stored: str) -> bytes:
    """Return the digest that tells a repeated event from a conflicting one."""
    return hashlib.sha256(f"{role}\n{stored}".encode()).digest()


def count_content(role: Role, normal: NormalContent, speaker: str | None, counter: TokenCounter) -> int:
    """Return the tokens of the message an event will be shown as."""
    return counter.count_message(message_of(role, normal.value, speaker))


def check_importance(value: float | None) -> float:
    """Return a finite importance between 0 and 1; 0.5 where none is given.

    Raises:
        InvalidInputError: It is out of range.
    """
    if value is None:
        return 0.5
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInputError("importance", "must be a number from 0 to 1")
    return float(value)


def moment(value: Moment | None) -> float | None:
    """Return a time as seconds since the epoch; a naive datetime is taken as UTC.

    Raises:
        InvalidInputError: It is no finite time.
    """
    if value is None:
        return None
    if isinstance(value, dt.datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        return aware.timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInputError("occurred_at", "must be a datetime or finite seconds since the epoch")
    return float(value)


def native_json(value: object) -> str | None:
    """Return the framework's own form as JSON text; text is taken as JSON already.

    Raises:
        InvalidInputError: It is not JSON.
    """
    if value is None:
        return None
    try:
        if isinstance(value, str):
            json.loads(value)
            return value
        return canonical_json(value)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("native", "must be JSON, or something JSON can express") from error


def _with_attachments(content: Content, attachments: Sequence[Mapping[str, Any]]) -> Content:
    if not attachments:
        return content
    blocks: list[str | Mapping[str, Any]] = [content] if isinstance(content, str) and content else []
    if not isinstance(content, str):
        blocks.extend(content)
    return [*blocks, *attachments]


def _speaker(value: object) -> str | None:
    if value is None or value == "":
        return None
    return check_identifier("speaker", value)


def _optional_id(field: str, value: str | None) -> str | None:
    return None if value is None else check_identifier(field, value)


def _label(value: str | None) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not is_storable(value):
        raise InvalidTextError("label", "must be text without NUL characters and lone surrogates")
    return value
