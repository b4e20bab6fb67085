"""Chat messages: each kind comes back as it went in, and says what it says to search."""

import base64
import json

import pytest
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)
from llama_index_libctx.messages import content_of, native_of, prompt_message, restore, role_of

from libctx_core.models import normalise_content, text_of

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CALL = ToolCallBlock(tool_call_id="c1", tool_name="weather", tool_kwargs={"city": "Rome"})
OLD_CALL = {"id": "c2", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}

MESSAGES = {
    "text": ChatMessage(role="user", content="hi"),
    "several texts": ChatMessage(role="user", blocks=[TextBlock(text="a"), TextBlock(text="b")]),
    "empty answer": ChatMessage(role="assistant", content=""),
    "no content": ChatMessage(role="assistant", content=None),
    "system": ChatMessage(role="system", content="rules"),
    "developer": ChatMessage(role="developer", content="rules"),
    "model": ChatMessage(role="model", content="hello"),
    "chatbot": ChatMessage(role="chatbot", content="hello"),
    "function": ChatMessage(role="function", content="42"),
    "tool call": ChatMessage(role="assistant", blocks=[TextBlock(text="wait"), CALL]),
    "tool call alone": ChatMessage(role="assistant", blocks=[CALL]),
    "older tool call": ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": [OLD_CALL]}),
    "tool result": ChatMessage(role="tool", content="sunny", additional_kwargs={"tool_call_id": "c1"}),
    "named result": ChatMessage(role="tool", content="x", additional_kwargs={"tool_call_id": "c1", "name": "w"}),
    "result without id": ChatMessage(role="tool", content="sunny"),
    "result in blocks": ChatMessage(
        role="tool", blocks=[TextBlock(text="a"), ImageBlock(image=PNG)], additional_kwargs={"tool_call_id": "c1"}
    ),
    "thinking": ChatMessage(
        role="assistant",
        blocks=[
            ThinkingBlock(content="hmm", num_tokens=3, additional_information={"signature": "s"}),
            TextBlock(text="ok"),
        ],
    ),
    "image bytes": ChatMessage(role="user", blocks=[TextBlock(text="see"), ImageBlock(image=PNG)]),
    "image url": ChatMessage(role="user", blocks=[ImageBlock(url="http://host/y.png", detail="low")]),
    "audio": ChatMessage(role="user", blocks=[AudioBlock(audio=b"RIFF0000WAVE", format="wav")]),
    "video": ChatMessage(role="user", blocks=[VideoBlock(video=b"0000ftypisom", video_mimetype="video/mp4")]),
    "document": ChatMessage(role="user", blocks=[DocumentBlock(data=b"hello", title="notes.txt")]),
    "cache point": ChatMessage(
        role="user", blocks=[TextBlock(text="z"), CachePoint(cache_control=CacheControl(type="ephemeral"))]
    ),
    "citable": ChatMessage(role="user", blocks=[CitableBlock(title="T", source="s", content="body")]),
    "citation": ChatMessage(
        role="assistant",
        blocks=[CitationBlock(cited_content="body", source="s", title="T", additional_location_info={"page": 1})],
    ),
    "kwargs": ChatMessage(role="user", content="hi", additional_kwargs={"any": {"thing": [1, None]}}),
}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES.keys())
def test_round_trip(message):
    content = normalise_content(role_of(message), content_of(message)).value if content_of(message) else ""
    assert restore(role_of(message), content, native_of(message)) == message


def test_plain_text_needs_no_second_copy():
    assert native_of(MESSAGES["text"]) is None
    assert content_of(MESSAGES["text"]) == "hi"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("several texts", "a\nb"),
        ("tool call", 'wait\nweather({"city":"Rome"})'),
        ("older tool call", 'weather({"city": "Oslo"})'),
        ("tool result", "sunny"),
        ("citable", "T\nbody"),
        ("citation", "body"),
    ],
)
def test_words_are_searchable(name, words):
    assert text_of(content_of(MESSAGES[name])).strip() == words


def test_pairing_ids_are_kept():
    assert content_of(MESSAGES["tool call"])[1]["id"] == "c1"
    assert content_of(MESSAGES["tool result"])[0]["tool_call_id"] == "c1"


def test_a_restored_message_is_a_new_one():
    message = MESSAGES["kwargs"]
    native = native_of(message)
    first = restore("user", "hi", native)
    first.additional_kwargs["any"]["thing"].append(2)
    first.blocks.clear()
    assert restore("user", "hi", native) == message


def test_another_doors_original_is_left_alone():
    native = json.dumps({"format": "somebody.else", "message": {"role": "system"}})
    assert restore("user", "hi", native) == ChatMessage(role="user", content="hi")


def test_a_message_whose_file_is_gone_keeps_its_words(tmp_path):
    picture = tmp_path / "picture.png"
    picture.write_bytes(PNG)
    message = ChatMessage(role="user", blocks=[TextBlock(text="see"), ImageBlock(path=picture, detail="low")])
    content, native = content_of(message), native_of(message)
    picture.unlink()
    assert restore("user", content, native).content == "see"


def test_prompt_messages_become_chat_messages():
    call = {
        "role": "assistant",
        "content": [{"type": "tool_call", "id": "c1", "name": "weather", "args": {"city": "Rome"}}],
    }
    assert prompt_message(call) == MESSAGES["tool call alone"]
    result = {"role": "tool", "tool_call_id": "c1", "content": "sunny", "is_error": True}
    assert prompt_message(result) == MESSAGES["tool result"]
    named = {"role": "user", "content": "hi", "name": "Ann"}
    assert prompt_message(named) == ChatMessage(role="user", content="hi", additional_kwargs={"name": "Ann"})


def test_objects_without_json_are_described():
    message = ChatMessage(role="user", content="hi", additional_kwargs={"raw": object()})
    assert "object object" in json.loads(native_of(message))["message"]["additional_kwargs"]["raw"]
