"""Plain messages in the shapes of two providers; no provider's package is needed."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from libctx_core.models import text_of

_NAME = re.compile(r"[\s<|\\/>]+")


def to_openai(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return chat-completions messages: calls beside the content, names cleaned, reasoning left out."""
    return [_openai_message(message) for message in messages]


def _openai_message(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message["content"]
    result: dict[str, Any] = {"role": message["role"]}
    if message["role"] == "tool":
        result["tool_call_id"] = message["tool_call_id"]
        result["content"] = content if isinstance(content, str) else text_of(content)
        return result
    if isinstance(content, str):
        result["content"] = content
    else:
        calls = [_openai_call(block) for block in content if block.get("type") == "tool_call"]
        parts = [part for part in map(_openai_part, content) if part is not None]
        if message["role"] == "assistant":
            result["content"] = "\n".join(part["text"] for part in parts if part["type"] == "text") or None
        else:
            result["content"] = parts
        if calls:
            result["tool_calls"] = calls
    name = _NAME.sub("_", message.get("name") or "").strip("_")
    if name:
        result["name"] = name[:64]
    return result


def _openai_call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = block.get("args", {})
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": str(block.get("id")), "type": "function",
            "function": {"name": str(block.get("name", "")), "arguments": text}}  # fmt: skip


def _openai_part(block: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": str(block.get("text", ""))}
    if kind == "image":
        if url := block.get("url"):
            return {"type": "image_url", "image_url": {"url": url}}
        if isinstance(block.get("image_url"), Mapping):
            return {"type": "image_url", "image_url": dict(block["image_url"])}
        if data := block.get("base64"):
            mime = block.get("mime_type", "image/png")
            return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}
        if file_id := block.get("file_id"):
            return {"type": "file", "file": {"file_id": file_id}}
    if kind == "audio" and block.get("base64"):
        form = str(block.get("mime_type", "audio/wav")).rpartition("/")[2]
        return {"type": "input_audio", "input_audio": {"data": block["base64"], "format": form}}
    if kind == "file":
        if file_id := block.get("file_id"):
            return {"type": "file", "file": {"file_id": file_id}}
        if data := block.get("base64"):
            mime = block.get("mime_type", "application/octet-stream")
            name = block.get("filename", "file")
            return {"type": "file", "file": {"filename": name, "file_data": f"data:{mime};base64,{data}"}}
    if kind in ("tool_call", "tool_result", "reasoning"):
        return None
    return {"type": "text", "text": f"[{kind} attachment]"}


def to_anthropic(messages: Sequence[Mapping[str, Any]], *, stable: int) -> dict[str, Any]:
    """Return ``system`` and alternating ``messages``.

    Args:
        messages: Plain messages.
        stable: How many of them the next request repeats; the last of these gets a
            cache breakpoint, and so does the last system block.
    """
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    breakpoint_block: dict[str, Any] | None = None
    for index, message in enumerate(messages):
        if message["role"] in ("system", "developer"):
            system.append({"type": "text", "text": text_of(message["content"])})
            continue
        blocks = _anthropic_blocks(message)
        role = "assistant" if message["role"] == "assistant" else "user"
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"].extend(blocks)
        else:
            turns.append({"role": role, "content": blocks})
        if index < stable and blocks:
            breakpoint_block = blocks[-1]
    if stable:
        for block in (system[-1] if system else None, breakpoint_block):
            if block is not None and block["type"] not in ("thinking", "redacted_thinking"):
                block["cache_control"] = {"type": "ephemeral"}
    return {"system": system, "messages": turns}


def _anthropic_blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    if message["role"] == "tool":
        inner = content if isinstance(content, str) else [_anthropic_block(block) for block in content]
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": inner}
        if message.get("is_error"):
            block["is_error"] = True
        return [block]
    if isinstance(content, str):
        # Anthropic refuses an empty text block
        return [{"type": "text", "text": content or "…"}]
    return [_anthropic_block(block) for block in content] or [{"type": "text", "text": "…"}]


def _anthropic_block(block: Mapping[str, Any]) -> dict[str, Any]:
    kind = block.get("type")
    if kind == "text":
        return {"type": "text", "text": str(block.get("text", "")) or "…"}
    if kind == "tool_call":
        arguments = block.get("args", {})
        return {"type": "tool_use", "id": str(block.get("id")), "name": str(block.get("name", "")),
                "input": json.loads(arguments) if isinstance(arguments, str) else arguments}  # fmt: skip
    if kind == "reasoning":
        extras = block.get("extras")
        signature = block.get("signature") or (extras.get("signature") if isinstance(extras, Mapping) else None)
        if signature:
            return {"type": "thinking", "thinking": str(block.get("reasoning", "")), "signature": signature}
        return {"type": "text", "text": str(block.get("reasoning", "")) or "…"}
    if kind in ("image", "file"):
        outer = "image" if kind == "image" else "document"
        mime = block.get("mime_type", "image/png" if kind == "image" else "application/pdf")
        if data := block.get("base64"):
            return {"type": outer, "source": {"type": "base64", "media_type": mime, "data": data}}
        if url := block.get("url"):
            return {"type": outer, "source": {"type": "url", "url": url}}
        if file_id := block.get("file_id"):
            return {"type": outer, "source": {"type": "file", "file_id": file_id}}
    return {"type": "text", "text": f"[{kind} attachment]"}
