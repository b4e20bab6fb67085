"""What pictures, sound, film and files cost: estimates from published rules, never from base64 text.

Sources: OpenAI's image rule (85 tokens, plus 170 for each 512-pixel tile after scaling to fit 2048 × 2048
and a shortest side of 768); Google's rates for sound (32 tokens a second) and film (258 a frame, one frame
a second, plus its sound); Anthropic's range for a PDF page (1,500 to 3,000 tokens).
"""

import base64
import binascii
import math
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

IMAGE_BASE: Final = 85
"""Tokens of any image, and of one asked for in low detail."""
IMAGE_TILE: Final = 170
"""Tokens of each 512-pixel tile of an image in high detail."""
IMAGE_DEFAULT: Final = IMAGE_BASE + 4 * IMAGE_TILE
"""Tokens of an image of unknown size: that of 1024 × 1024 pixels."""

AUDIO_PER_SECOND: Final = 32
VIDEO_PER_SECOND: Final = 290
DEFAULT_SECONDS: Final = 20
"""Length assumed for sound or film that names neither a duration nor carries its bytes."""
AUDIO_BYTES_PER_SECOND: Final = 8_000
"""64 kbit/s, a low rate for speech, so that the length is estimated high."""
VIDEO_BYTES_PER_SECOND: Final = 125_000
"""1 Mbit/s."""

FILE_PAGE: Final = 3_000
FILE_BYTES_PER_PAGE: Final = 50_000

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_HEADER_CHARS: Final = 262_144
_JPEG_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_tokens(block: Mapping[str, Any]) -> int:
    """Estimate an image block from its detail, its stated size, or the header of its bytes."""
    if _detail(block) == "low":
        return IMAGE_BASE
    size = _stated_size(block) or _header_size(payload_of(block))
    return IMAGE_DEFAULT if size is None else tiled(*size)


def tiled(width: int, height: int) -> int:
    """Return the tokens of an image of `width` × `height` pixels in high detail."""
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / (min(width, height)))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return IMAGE_BASE + IMAGE_TILE * tiles


def audio_tokens(block: Mapping[str, Any]) -> int:
    """Estimate a sound block from its duration, or from the number of its bytes."""
    return _seconds(block, AUDIO_BYTES_PER_SECOND) * AUDIO_PER_SECOND


def video_tokens(block: Mapping[str, Any]) -> int:
    """Estimate a film block from its duration, or from the number of its bytes."""
    return _seconds(block, VIDEO_BYTES_PER_SECOND) * VIDEO_PER_SECOND


def file_tokens(block: Mapping[str, Any], count: Callable[[str], int]) -> int:
    """Estimate a file block: a text file by its own text, any other by pages of its bytes."""
    payload = payload_of(block)
    if str(_field(block, "mime_type", "media_type") or "").startswith(("text/", "application/json")):
        text = _decoded_text(payload)
        if text is not None:
            return count(text)
    return FILE_PAGE * max(1, math.ceil(len(payload) * 3 / 4 / FILE_BYTES_PER_PAGE))


def payload_of(block: Mapping[str, Any]) -> str:
    """Return the base64 text that a media block carries, in any of the usual shapes, or an empty string."""
    for holder in _holders(block):
        for key in ("base64", "data", "file_data"):
            value = holder.get(key)
            if isinstance(value, str):
                return value.split(",", 1)[-1] if value.startswith("data:") else value
        url = holder.get("url", holder.get("image_url"))
        if isinstance(url, str) and url.startswith("data:"):
            return url.split(",", 1)[-1]
    return ""


def _holders(block: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the block and the nested mappings in which providers put the payload."""
    nested = (block.get(key) for key in ("source", "image_url", "input_audio", "file", "video_url", "extras"))
    return [block, *(value for value in nested if isinstance(value, Mapping))]


def _field(block: Mapping[str, Any], *names: str) -> Any:
    return next((h[n] for h in _holders(block) for n in names if h.get(n) is not None), None)


def _detail(block: Mapping[str, Any]) -> Any:
    return _field(block, "detail")


def _stated_size(block: Mapping[str, Any]) -> tuple[int, int] | None:
    width, height = _field(block, "width"), _field(block, "height")
    if isinstance(width, int) and isinstance(height, int) and width > 0 and height > 0:
        return width, height
    return None


def _seconds(block: Mapping[str, Any], bytes_per_second: int) -> int:
    stated = _field(block, "duration", "duration_seconds", "seconds")
    if isinstance(stated, int | float) and 0 < stated < math.inf:
        return math.ceil(stated)
    payload = payload_of(block)
    return max(1, math.ceil(len(payload) * 3 / 4 / bytes_per_second)) if payload else DEFAULT_SECONDS


def _decoded_text(payload: str) -> str | None:
    try:
        return base64.b64decode(payload).decode("utf-8", "replace") if payload else None
    except (binascii.Error, ValueError):
        return None


def _header_size(payload: str) -> tuple[int, int] | None:
    """Return width and height from the first bytes of a PNG, GIF, WebP or JPEG, else None."""
    head = payload[: _HEADER_CHARS - _HEADER_CHARS % 4]
    try:
        data = base64.b64decode(head + "=" * (-len(head) % 4))
        size = _dimensions(data)
    except (binascii.Error, ValueError, struct.error, IndexError):
        return None
    return size if size is not None and min(size) > 0 else None


def _dimensions(data: bytes) -> tuple[int, int] | None:
    if data.startswith(_PNG):
        width, height = struct.unpack(">II", data[16:24])
        return int(width), int(height)
    if data[:6] in {b"GIF87a", b"GIF89a"}:
        width, height = struct.unpack("<HH", data[6:10])
        return int(width), int(height)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _webp(data)
    return _jpeg(data) if data.startswith(b"\xff\xd8") else None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8 ":
        width, height = struct.unpack("<HH", data[26:30])
        return int(width) & 0x3FFF, int(height) & 0x3FFF
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    position = 2
    while data[position] == 0xFF:
        marker = data[position + 1]
        length = int.from_bytes(data[position + 2 : position + 4], "big")
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return int(width), int(height)
        position += 2 + length
    return None
