"""LangChain messages as events of a thread, and back, byte for byte.

An event holds the library's canonical content. What that cannot express (usage, response
metadata, a provider's own blocks, artifacts) is kept beside it as the difference between
the message and what the canonical content alone would rebuild, so a plain message costs
nothing extra and a rich one returns exactly as it was.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
)

from libctx_core.errors import InvalidInputError
from libctx_core.models import MAX_ID_LENGTH, ContextEvent, canonical_json, is_storable, repaired

if TYPE_CHECKING:
    from libctx_core.governor.envelope import GovernedPrompt

FORMAT = "langchain"
"""Key of the native form, so that another framework's adapter knows it is not its own."""

_CLASSES: Mapping[str, type[BaseMessage]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
    "function": FunctionMessage,
    "chat": ChatMessage,
}
_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool"}
_CHAT_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
}
_DEVELOPER_MARK = "__openai_role__"


# -- towards the library ------------------------------------------------------------


def event_fields(message: BaseMessage, *, event_id: str | None = None) -> dict[str, Any]:
    """Return the arguments of `record_many` that store a message.

    Args:
        message: A message of any kind but `RemoveMessage`; a chunk is closed first.
        event_id: Id to store it under; by default the message's own, if it can be one.

    Raises:
        InvalidInputError: It is no message that can be stored.
    """
    if isinstance(message, RemoveMessage) or not isinstance(message, BaseMessage):
        raise InvalidInputError("messages", f"{type(message).__name__} cannot be stored")
    if isinstance(message, BaseMessageChunk):
        message = message_chunk_to_message(message)
    role, content = role_of(message), canonical_content(message)
    name = event_id if event_id is not None else usable_id(message.id)
    speaker = message.name if role in ("user", "assistant") and usable_id(message.name) else None
    fields: dict[str, Any] = {"role": role, "content": content, "event_id": name}
    if speaker:
        fields["speaker"] = speaker
    native = _native(message, _rebuild(role, content, name, speaker))
    if native is not None:
        fields["native"] = native
    return fields


def usable_id(value: object) -> str | None:
    """Return a value if it can name an event, else None."""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_ID_LENGTH or not is_storable(value):
        return None
    return value


def role_of(message: BaseMessage) -> str:
    """Return the library's role of a message."""
    if isinstance(message, ChatMessage):
        return _CHAT_ROLES.get(message.role.lower(), "user")
    if isinstance(message, SystemMessage) and message.additional_kwargs.get(_DEVELOPER_MARK) == "developer":
        return "developer"
    return _ROLES.get(message.type.removesuffix("MessageChunk").lower(), "user")


def canonical_content(message: BaseMessage) -> str | list[dict[str, Any]]:
    """Return what a message says, as text or as the library's content blocks."""
    if isinstance(message, ToolMessage):
        result: dict[str, Any] = {
            "type": "tool_result",
            "tool_call_id": message.tool_call_id,
            "content": message.content if isinstance(message.content, str) else _blocks(message),
        }
        if message.name:
            result["name"] = message.name
        if message.status == "error":
            result["is_error"] = True
        return [result]
    calls = tool_call_blocks(message) if isinstance(message, AIMessage) else []
    if isinstance(message.content, str):
        if not calls:
            return message.content
        return [{"type": "text", "text": message.content}, *calls] if message.content else calls
    blocks = _blocks(message)
    if not calls:
        return blocks
    return [block for block in blocks if block["type"] not in ("tool_call", "invalid_tool_call")] + calls


def tool_call_blocks(message: AIMessage) -> list[dict[str, Any]]:
    """Return the calls a message makes; a call that could not be parsed keeps its arguments as text."""
    calls: list[dict[str, Any]] = [
        {"type": "tool_call", "name": call["name"], "args": call["args"], "id": call["id"]}
        for call in message.tool_calls
    ]
    calls.extend(
        {"type": "tool_call", "name": call["name"] or "", "args": call["args"] or "", "id": call["id"], "invalid": True}
        for call in message.invalid_tool_calls
    )
    return calls


def _blocks(message: BaseMessage) -> list[dict[str, Any]]:
    """Return a message's content as standard blocks, whatever shape the provider gave it."""
    if all(isinstance(part, str) for part in message.content):
        return [{"type": "text", "text": str(part)} for part in message.content]
    return [_without_made_up_id(dict(block)) for block in message.content_blocks]


def _without_made_up_id(block: dict[str, Any]) -> dict[str, Any]:
    """Drop the random id that LangChain gives to blocks it translates: it differs at every reading."""
    if str(block.get("id", "")).startswith("lc_"):
        del block["id"]
    return block


def _native(message: BaseMessage, base: BaseMessage) -> str | None:
    """Return what `base` lacks to be `message`, as JSON; None if nothing."""
    if type(base) is type(message):
        plain = base.model_dump()
        fields = {key: value for key, value in message.model_dump().items() if key not in plain or plain[key] != value}
    else:
        fields = message.model_dump(exclude_defaults=True)
    fields.pop("type", None)
    if not fields and type(base) is type(message):
        return None
    text = _json({FORMAT: {"type": message.type, "fields": fields}})
    return text if is_storable(text) else repaired(text)


def _json(value: dict[str, Any]) -> str:
    """Return JSON; what JSON cannot express (an artifact held as an object) is left out."""
    try:
        return canonical_json(value)
    except (TypeError, ValueError):
        fields = value[FORMAT]["fields"]
        kept = {key: item for key, item in fields.items() if _is_json(item)}
        return canonical_json({FORMAT: {**value[FORMAT], "fields": kept}})


def _is_json(value: Any) -> bool:
    try:
        canonical_json(value)
    except (TypeError, ValueError):
        return False
    return True


# -- back from the library ----------------------------------------------------------


def message_from_event(event: ContextEvent) -> BaseMessage:
    """Return the message an event holds, exactly as it was stored where it came from LangChain."""
    base = _rebuild(event.role, event.content, event.event_id, event.speaker)
    native = None if event.native is None or event.redacted else json.loads(event.native)
    if not isinstance(native, dict) or FORMAT not in native:
        return base
    form = native[FORMAT]
    target = _CLASSES[form["type"]]
    if type(base) is target:
        return target(**{**base.model_dump(exclude={"type"}), **form["fields"]})
    fields = {"content": base.content, "id": event.event_id, **form["fields"]}
    return target(**fields)


def message_from_prompt(message: Mapping[str, Any], event_id: str | None = None) -> BaseMessage:
    """Return a plain message of a governed prompt as a LangChain message."""
    role, content = message["role"], message["content"]
    if role == "tool":
        block: dict[str, Any] = {"type": "tool_result", "tool_call_id": message["tool_call_id"], "content": content}
        if message.get("is_error"):
            block["is_error"] = True
        return _rebuild(role, [block], event_id, None)
    return _rebuild(role, content, event_id, message.get("name"))


def to_langchain(prompt: "GovernedPrompt", *, origins: Iterable[str] | None = None) -> list[BaseMessage]:
    """Return a governed prompt as LangChain messages, each event's own message verbatim.

    Args:
        prompt: The prompt.
        origins: Only messages of these origins, e.g. everything but the running turn.
    """
    wanted = None if origins is None else frozenset(origins)
    return [
        message_from_event(part.event)
        if part.event is not None and not part.cut
        else message_from_prompt(message, part.event_id)
        for message, part in zip(prompt.messages, prompt.parts, strict=True)
        if wanted is None or part.origin in wanted
    ]


def _rebuild(
    role: str, content: str | Sequence[Mapping[str, Any]], event_id: str | None, speaker: str | None
) -> BaseMessage:
    """Return the message that canonical content alone stands for."""
    if role == "assistant":
        return _rebuild_assistant(content, event_id, speaker)
    if role == "tool":
        return _rebuild_tool(content, event_id)
    plain: Any = content if isinstance(content, str) else [dict(block) for block in content]
    if role == "user":
        return HumanMessage(content=plain, id=event_id, name=speaker)
    if role == "developer":
        return SystemMessage(content=plain, id=event_id, additional_kwargs={_DEVELOPER_MARK: "developer"})
    return SystemMessage(content=plain, id=event_id)


def _rebuild_assistant(
    content: str | Sequence[Mapping[str, Any]], event_id: str | None, speaker: str | None
) -> AIMessage:
    if isinstance(content, str):
        return AIMessage(content=content, id=event_id, name=speaker)
    calls = [block for block in content if block.get("type") == "tool_call"]
    rest = [dict(block) for block in content if block.get("type") != "tool_call"]
    only_text = len(rest) <= 1 and all(
        block.get("type") == "text" and block.keys() == {"type", "text"} for block in rest
    )
    said: Any = "".join(block["text"] for block in rest) if only_text else rest
    return AIMessage(
        content=said,
        id=event_id,
        name=speaker,
        tool_calls=[
            {"name": call["name"], "args": call["args"], "id": call.get("id"), "type": "tool_call"}
            for call in calls
            if not call.get("invalid") and isinstance(call.get("args"), dict)
        ],
        invalid_tool_calls=[
            {"name": call.get("name"), "args": str(call.get("args", "")), "id": call.get("id"), "error": None}
            for call in calls
            if call.get("invalid") or not isinstance(call.get("args"), dict)
        ],
    )


def _rebuild_tool(content: str | Sequence[Mapping[str, Any]], event_id: str | None) -> BaseMessage:
    if isinstance(content, str):
        return ToolMessage(content=content, tool_call_id="", id=event_id)
    for block in content:
        if block.get("type") == "tool_result":
            return ToolMessage(
                content=block.get("content", ""),
                tool_call_id=str(block.get("tool_call_id")),
                name=block.get("name"),
                status="error" if block.get("is_error") else "success",
                id=event_id,
            )
    return ToolMessage(content=[dict(block) for block in content], tool_call_id="", id=event_id)


# -- whatever a chain passes around -------------------------------------------------


def as_human(value: Any) -> BaseMessage:
    """Return a chain's input as the user's message."""
    return _as_message(value, HumanMessage)


def as_ai(value: Any) -> BaseMessage:
    """Return a chain's output as the model's message."""
    return _as_message(value, AIMessage)


def _as_message(value: Any, kind: type[HumanMessage] | type[AIMessage]) -> BaseMessage:
    if isinstance(value, BaseMessage):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str) and value and isinstance(value[-1], BaseMessage):
        last: BaseMessage = value[-1]
        return last
    content: Any = value if isinstance(value, str) or _is_block_list(value) else str(value)
    return kind(content=content)


def _is_block_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and "type" in item for item in value)
