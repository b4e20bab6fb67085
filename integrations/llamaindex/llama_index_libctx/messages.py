"""LlamaIndex chat messages as the library's content, and back without loss."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from llama_index.core.base.llms.types import (
    AudioBlock,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from pydantic import ValidationError

from libctx_core.models import Block, Role

NATIVE_FORMAT: Final = "llama_index.ChatMessage"
"""Marks a stored original as this door's; other doors' originals are left alone."""

_ROLES: Final[dict[MessageRole, Role]] = {
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "developer",
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
}


def role_of(message: ChatMessage) -> Role:
    """Return the library's role for a message's."""
    return _ROLES[message.role]


def content_of(message: ChatMessage) -> str | list[Block]:
    """Return a message's content: its text where it is nothing else, else content blocks.

    Tool calls of the older form, in ``additional_kwargs``, become tool-call blocks; the
    message of a tool becomes one result block with the id of the call it answers.
    """
    blocks = [canonical for block in message.blocks if (canonical := _block(block)) is not None]
    if role_of(message) == "tool":
        return _result(message, blocks)
    if not any(block["type"] == "tool_call" for block in blocks):
        blocks += [_older_call(call) for call in message.additional_kwargs.get("tool_calls") or ()]
    if not blocks:
        return ""
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return str(blocks[0]["text"])
    return blocks


def native_of(message: ChatMessage) -> str | None:
    """Return the message's own JSON, or None where the content alone restores it."""
    content = content_of(message)
    if to_message(role_of(message), content) == message:
        return None
    dumped = message.model_dump(mode="json", fallback=repr)
    return json.dumps({"format": NATIVE_FORMAT, "message": dumped}, ensure_ascii=False)


def restore(role: str, content: str | Sequence[Mapping[str, Any]], native: str | None) -> ChatMessage:
    """Return a new message equal to the one that was stored."""
    if native is not None:
        stored = json.loads(native)
        if isinstance(stored, dict) and stored.get("format") == NATIVE_FORMAT:
            try:
                return ChatMessage.model_validate(stored["message"])
            except ValidationError:
                # it names a file that is gone: the words are still there
                return to_message(role, content)
    return to_message(role, content)


def to_message(
    role: str,
    content: str | Sequence[Mapping[str, Any]],
    *,
    tool_call_id: str | None = None,
    name: str | None = None,
) -> ChatMessage:
    """Return a message with this content; `tool_call_id` names the call a tool answers."""
    extra: dict[str, Any] = {} if name is None else {"name": name}
    if not isinstance(content, str) and role == "tool" and content and content[0].get("type") == "tool_result":
        result = content[0]
        tool_call_id = result.get("tool_call_id") if tool_call_id is None else tool_call_id
        content = result.get("content", "")
    if tool_call_id is not None:
        extra["tool_call_id"] = tool_call_id
    blocks: list[ContentBlock]
    if not isinstance(content, str):
        blocks = [_content_block(block) for block in content]
    elif content or role != "assistant":
        blocks = [TextBlock(text=content)]
    else:
        blocks = []
    return ChatMessage(role=MessageRole(role), blocks=blocks, additional_kwargs=extra)


def prompt_message(message: Mapping[str, Any]) -> ChatMessage:
    """Return the message for one of a governed prompt."""
    return to_message(
        message["role"],
        message["content"],
        tool_call_id=message.get("tool_call_id"),
        name=message.get("name"),
    )


def _result(message: ChatMessage, blocks: list[Block]) -> str | list[Block]:
    call_id = message.additional_kwargs.get("tool_call_id")
    text_only = all(block["type"] == "text" for block in blocks)
    inner: str | list[Block] = "\n".join(block["text"] for block in blocks) if text_only else blocks
    if call_id is None:
        return inner
    return [{"type": "tool_result", "tool_call_id": str(call_id), "content": inner}]


def _block(block: ContentBlock) -> Block | None:
    """Return the canonical block, None for what says nothing to a reader."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ThinkingBlock():
            return {"type": "reasoning", "reasoning": block.content or ""}
        case ToolCallBlock():
            return {
                "type": "tool_call",
                "id": block.tool_call_id,
                "name": block.tool_name,
                "args": block.tool_kwargs,
            }
        case ImageBlock():
            return _media("image", block.image, block.url or block.path, block.image_mimetype)
        case AudioBlock():
            return _media("audio", block.audio, block.url or block.path, block.format and f"audio/{block.format}")
        case VideoBlock():
            return _media("video", block.video, block.url or block.path, block.video_mimetype)
        case DocumentBlock():
            media = _media("file", block.data, block.url or block.path, block.document_mimetype)
            return {**media, "filename": block.title} if block.title else media
        case CitableBlock():
            return {"type": "text", "text": f"{block.title}\n{_words(block.content)}"}
        case CitationBlock():
            return {"type": "text", "text": _words([block.cited_content])}
        case CachePoint():
            return None
    raise TypeError(f"unknown content block {type(block).__name__}")


def _words(blocks: Sequence[Any]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def _media(kind: str, data: object, place: object, mime_type: str | None) -> Block:
    block: Block = {"type": kind}
    if isinstance(data, bytes) and data:
        block["base64"] = data.decode("ascii", "replace")
    elif data is not None and hasattr(data, "read"):
        data.seek(0)  # type: ignore[attr-defined]
        block["base64"] = base64.b64encode(data.read()).decode()
    elif isinstance(place, Path):
        block["url"] = place.absolute().as_uri()
    elif place is not None:
        block["url"] = str(place)
    if mime_type:
        block["mime_type"] = mime_type
    return block


def _older_call(call: Any) -> Block:
    """Return the block of a tool call in OpenAI's shape, a mapping or an object of its client."""
    plain = call if isinstance(call, Mapping) else _plain(call)
    function = plain.get("function") or plain
    arguments = function.get("arguments", {})
    return {"type": "tool_call", "id": plain.get("id"), "name": str(function.get("name", "")), "args": arguments}


def _plain(call: Any) -> Mapping[str, Any]:
    dumped = call.model_dump() if hasattr(call, "model_dump") else {}
    return dumped if isinstance(dumped, Mapping) else {}


def _content_block(block: Mapping[str, Any]) -> ContentBlock:
    kind = block.get("type")
    match kind:
        case "text":
            return TextBlock(text=str(block.get("text", "")))
        case "reasoning":
            return ThinkingBlock(content=block.get("reasoning") or None)
        case "tool_call":
            return ToolCallBlock(
                tool_call_id=block.get("id"), tool_name=str(block.get("name", "")), tool_kwargs=block.get("args") or {}
            )
        case "image":
            return ImageBlock(image=_bytes(block), url=block.get("url"), image_mimetype=block.get("mime_type"))
        case "audio":
            subtype = str(block.get("mime_type") or "").partition("/")[2] or None
            return AudioBlock(audio=_bytes(block), url=block.get("url"), format=subtype)
        case "video":
            return VideoBlock(video=_bytes(block), url=block.get("url"), video_mimetype=block.get("mime_type"))
        case "file":
            return DocumentBlock(
                data=_bytes(block),
                url=block.get("url"),
                title=block.get("filename"),
                document_mimetype=block.get("mime_type"),
            )
    return TextBlock(text=json.dumps(dict(block), ensure_ascii=False))


def _bytes(block: Mapping[str, Any]) -> bytes | None:
    data = block.get("base64")
    return data.encode() if isinstance(data, str) else None
