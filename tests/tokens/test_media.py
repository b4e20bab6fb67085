"""Media are estimates by published rules; their base64 text never counts as text."""

import base64
import struct

import pytest

from libctx_core.tokens import TokenCounter
from libctx_core.tokens.media import IMAGE_DEFAULT, tiled

COUNTER = TokenCounter.for_encoding("cl100k_base")
NOISE = base64.b64encode(bytes(range(256)) * 4_000).decode()


def b64(data):
    return base64.b64encode(data).decode()


def png(width, height):
    return b64(
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", width, height) + b"\x08\x06" + b"\x00" * 5_000
    )


def gif(width, height):
    return b64(b"GIF89a" + struct.pack("<HH", width, height) + b"\x00" * 90)


def jpeg(width, height):
    skipped = b"\xff\xe0\x00\x10" + b"J" * 14
    frame = b"\xff\xc0\x00\x11\x08" + struct.pack(">HH", height, width) + b"\x03" + b"\x00" * 9
    return b64(b"\xff\xd8" + skipped + frame + b"\x00" * 90)


def webp(kind, width, height):
    body = {
        b"VP8X": b"\x00" * 8 + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
        b"VP8 ": b"\x00" * 7 + b"\x9d\x01\x2a" + struct.pack("<HH", width, height),
        b"VP8L": b"\x00" * 4 + b"\x2f" + ((width - 1) | (height - 1) << 14).to_bytes(4, "little"),
    }[kind]
    return b64(b"RIFF\x00\x00\x00\x00WEBP" + kind + body + b"\x00" * 60)


@pytest.mark.parametrize(
    ("width", "height", "tokens"),
    [(1024, 1024, 765), (2048, 4096, 1105), (512, 512, 255), (1, 1, 255), (100, 9_000, 765)],
)
def test_tiles_follow_the_published_rule(width, height, tokens):
    assert tiled(width, height) == tokens


@pytest.mark.parametrize(
    "data",
    [
        png(600, 500),
        gif(600, 500),
        jpeg(600, 500),
        webp(b"VP8X", 600, 500),
        webp(b"VP8 ", 600, 500),
        webp(b"VP8L", 600, 500),
    ],
)
def test_the_size_is_read_from_the_header(data):
    expected = tiled(600, 500)
    assert expected != IMAGE_DEFAULT
    shapes = (
        {"type": "image", "base64": data, "mime_type": "image/png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{data}"},
    )
    assert {COUNTER.count_block(shape) for shape in shapes} == {expected}


def test_stated_size_and_low_detail():
    assert COUNTER.count_block({"type": "image", "url": "u", "extras": {"width": 512, "height": 512}}) == 255
    assert COUNTER.count_block({"type": "image_url", "image_url": {"url": "u", "detail": "low"}}) == 85


@pytest.mark.parametrize(
    "data", ["", "!!!not base64!!!", b64(b"\xff\xd8\xff"), b64(b"\x89PNG\r\n\x1a\n"), png(0, 0), NOISE]
)
def test_an_unreadable_picture_costs_the_default(data):
    assert COUNTER.count_block({"type": "image", "base64": data}) == IMAGE_DEFAULT


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "base64": NOISE},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{NOISE}"}},
        {"type": "audio", "base64": NOISE, "mime_type": "audio/wav"},
        {"type": "input_audio", "input_audio": {"data": NOISE, "format": "wav"}},
        {"type": "video", "base64": NOISE, "mime_type": "video/mp4"},
        {"type": "file", "base64": NOISE, "mime_type": "application/pdf"},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": NOISE}},
        {"type": "unheard_of", "payload": f"data:x/y;base64,{NOISE}", "base64": NOISE},
        {"type": "tool_result", "tool_call_id": "c", "content": [{"type": "image", "base64": NOISE}]},
    ],
)
def test_base64_is_never_counted_as_text(block):
    assert COUNTER.count_block(block) < COUNTER.count(NOISE) / 8


def test_sound_and_film_by_duration():
    assert COUNTER.count_block({"type": "audio", "url": "u", "extras": {"duration": 10}}) == 320
    assert COUNTER.count_block({"type": "video", "url": "u", "extras": {"seconds": 2.5}}) == 870
    assert COUNTER.count_block({"type": "audio", "url": "u"}) > 0


def test_files_by_their_text_or_by_pages():
    text = "plain words in a file. " * 50
    as_file = {"type": "file", "mime_type": "text/plain", "base64": b64(text.encode())}
    as_source = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": text}}
    as_block = {"type": "text-plain", "text": text}
    assert {COUNTER.count_block(block) for block in (as_file, as_source, as_block)} == {COUNTER.count(text)}
    assert COUNTER.count_block({"type": "file", "file_id": "f"}) == 3_000


def test_captions_count_as_text():
    bare = {"type": "image", "url": "u"}
    assert COUNTER.count_block({**bare, "caption": "a red door"}) == COUNTER.count_block(bare) + COUNTER.count(
        "a red door"
    )
