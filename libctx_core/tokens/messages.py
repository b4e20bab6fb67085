"""What a message costs beyond its plain text: framing, names, tool calls, media, tool schemas.

Everything here is a pure function of the message and a text counter. Framing follows OpenAI's published
rule (3 tokens a message plus its role, 3 once for the reply), which was 81 of 80 tokens really rendered
and of 81 to 85 counted by other libraries on one six-message chat.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from libctx_core.tokens.media import audio_tokens, file_tokens, image_tokens, video_tokens

CountText = Callable[[str], int]

MESSAGE_FRAME: Final = 3
"""Tokens around every message, beside those of its role."""
REPLY_FRAME: Final = 3
"""Tokens that open the model's reply, once a request."""
NAME_FRAME: Final = 1
"""Tokens beside a participant's name, or beside the id of the call a message answers."""
CALL_FRAME: Final = 3
"""Tokens around a tool call, beside those of its JSON form."""
TOOL_FRAME: Final = 8
"""Tokens around one tool schema, beside those of its JSON form."""
TOOLS_FRAME: Final = 12
"""Tokens around a non-empty list of tool schemas."""

_TEXT: Final = frozenset({"text", "text-plain", "input_text", "output_text", "refusal"})
_REASONING: Final = frozenset({"reasoning", "thinking", "redacted_thinking"})
_CALLS: Final = frozenset(
    {"tool_call", "tool_use", "function_call", "server_tool_call", "server_tool_use", "invalid_tool_call"}
)
_RESULTS: Final = frozenset({"tool_result", "server_tool_result", "function_call_output"})
_IMAGES: Final = frozenset({"image", "image_url", "input_image"})
_AUDIO: Final = frozenset({"audio", "input_audio"})
_VIDEO: Final = frozenset({"video", "video_url"})
_FILES: Final = frozenset({"file", "document", "input_file"})
_MEDIA: Final = _IMAGES | _AUDIO | _VIDEO | _FILES
_CAPTIONS: Final = ("title", "filename", "name", "caption", "alt", "context")


def message_tokens(message: Mapping[str, Any], count: CountText) -> int:
    """Return the tokens of one message with its frame.

    Args:
        message: A plain dict: ``role``, ``content`` (a string, blocks, or None), and where present
            ``name``, ``tool_calls`` (flat ``{id, name, args}`` or OpenAI's nested form), ``tool_call_id``.
        count: Counts plain text.
    """
    total = MESSAGE_FRAME + max(1, count(str(message.get("role") or "")))
    for key in ("name", "tool_call_id"):
        if value := message.get(key):
            total += NAME_FRAME + count(str(value))
    calls = message.get("tool_calls") or ()
    total += sum(call_tokens(call, count) for call in calls)
    counted = {call.get("id") for call in calls if call.get("id")}
    return total + _content_tokens(message.get("content"), count, counted)


def messages_tokens(messages: Iterable[Mapping[str, Any]], count: CountText) -> int:
    """Return the tokens of a whole request without its tool schemas."""
    return REPLY_FRAME + sum(message_tokens(message, count) for message in messages)


def tools_tokens(tools: Sequence[Mapping[str, Any]], count: CountText) -> int:
    """Return the tokens of tool schemas, each as the JSON that is sent."""
    if not tools:
        return 0
    return TOOLS_FRAME + sum(TOOL_FRAME + count(wire_json(tool)) for tool in tools)


def call_tokens(call: Mapping[str, Any], count: CountText) -> int:
    """Return the tokens of a tool call, flat or nested, as its nested JSON form, the longest in use."""
    function = call.get("function")
    inner: Mapping[str, Any] = function if isinstance(function, Mapping) else call
    arguments: Any = next((inner[key] for key in ("args", "arguments", "input") if inner.get(key) is not None), {})
    nested = {
        "id": call.get("id") or call.get("call_id"),
        "type": "function",
        "function": {
            "name": inner.get("name"),
            "arguments": arguments if isinstance(arguments, str) else wire_json(arguments),
        },
    }
    return CALL_FRAME + count(wire_json(nested))


def block_tokens(block: Mapping[str, Any] | str, count: CountText) -> int:
    """Return the tokens of one content block, named as LangChain's standard blocks or a provider's own.

    Pictures, sound, film and files are estimates (see `libctx_core.tokens.media`); their base64 text
    never counts. A kind that is not known counts as its JSON form without such payloads.
    """
    if isinstance(block, str):
        return count(block)
    kind = str(block.get("type", ""))
    if kind in _TEXT:
        return _strings(block, ("text", "refusal", "title", "context"), count)
    if kind in _REASONING:
        return _strings(block, ("reasoning", "thinking", "text"), count) + _content_tokens(block.get("summary"), count)
    if kind in _CALLS:
        return call_tokens(block, count)
    if kind in _RESULTS:
        return _result_tokens(block, count)
    if kind in _MEDIA:
        return _strings(block, _CAPTIONS, count) + _media_tokens(kind, block, count)
    return count(wire_json(block))


def wire_json(value: Any) -> str:
    """Return `value` as JSON with its payloads (bytes, ``data:`` URLs, base64 fields) left out."""
    return json.dumps(_without_payloads(value), ensure_ascii=False, default=str)


def _content_tokens(content: Any, count: CountText, counted_calls: frozenset[Any] | set[Any] = frozenset()) -> int:
    if content is None:
        return 0
    if isinstance(content, str):
        return count(content)
    if isinstance(content, Mapping):
        return block_tokens(content, count)
    if not isinstance(content, Sequence):
        return count(wire_json(content))
    total = 0
    for block in content:
        if not isinstance(block, str | Mapping):
            total += count(wire_json(block))
        elif isinstance(block, str) or block.get("type") not in _CALLS or block.get("id") not in counted_calls:
            total += block_tokens(block, count)
    return total


def _strings(block: Mapping[str, Any], keys: Iterable[str], count: CountText) -> int:
    return sum(count(value) for key in keys if isinstance(value := block.get(key), str))


def _result_tokens(block: Mapping[str, Any], count: CountText) -> int:
    keys = ("tool_call_id", "tool_use_id", "call_id", "name")
    ids = sum(NAME_FRAME + count(value) for key in keys if isinstance(value := block.get(key), str))
    content = block.get("content", block.get("output"))
    if isinstance(content, Mapping) and "type" not in content:
        return ids + count(wire_json(content))
    return ids + _content_tokens(content, count)


def _media_tokens(kind: str, block: Mapping[str, Any], count: CountText) -> int:
    if kind in _IMAGES:
        return image_tokens(block)
    if kind in _AUDIO:
        return audio_tokens(block)
    if kind in _VIDEO:
        return video_tokens(block)
    source = block.get("source")
    if isinstance(source, Mapping) and source.get("type") in {"text", "content"}:
        return _content_tokens(source.get("data", source.get("content")), count)
    if isinstance(text := block.get("text"), str):
        return count(text)
    return file_tokens(block, count)


def _without_payloads(value: Any) -> Any:
    if isinstance(value, str):
        return "" if value.startswith("data:") and ";base64," in value[:128] else value
    if isinstance(value, bytes | bytearray | memoryview):
        return ""
    if isinstance(value, Mapping):
        return {
            str(key): "" if key == "base64" and isinstance(item, str) else _without_payloads(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_without_payloads(item) for item in value]
    return value
