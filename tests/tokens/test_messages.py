"""What a request costs beyond its text: frames, names, tool calls, results, schemas."""

import json

import pytest

from libctx_core.tokens import TokenCounter

CHAT = [
    {"role": "system", "content": "You are a helpful travel assistant."},
    {"role": "user", "content": "I want to fly from Oslo to Rome in May."},
    {"role": "assistant", "content": "How many people are travelling?"},
    {"role": "user", "content": "Two adults and a child."},
    {"role": "assistant", "content": "Do you prefer mornings?"},
    {"role": "user", "content": "Yes, please."},
]


@pytest.fixture(params=["cl100k_base", "o200k_base"])
def counter(request):
    return TokenCounter.for_encoding(request.param)


def test_framing_follows_the_published_rule(counter):
    """3 a message, the role, the content; 3 once."""
    text = sum(counter.count(m["role"]) + counter.count(m["content"]) for m in CHAT)
    assert counter.count_messages(CHAT) == text + 3 * len(CHAT) + 3


def test_a_message_costs_four_beyond_its_content(counter):
    for message in CHAT:
        assert counter.count_message(message) == counter.count(message["content"]) + 4


def test_an_empty_request_still_opens_a_reply(counter):
    assert counter.count_messages([]) == 3


@pytest.mark.parametrize("field", ["name", "tool_call_id"])
def test_names_and_call_ids_count(counter, field):
    bare = {"role": "tool", "content": "ok"}
    value = "call_abc123_weather"
    assert counter.count_message({**bare, field: value}) > counter.count_message(bare) + counter.count(value)


def test_tool_calls_count_the_same_flat_or_nested(counter):
    flat = {"id": "call_1", "name": "weather", "args": {"city": "Zürich", "days": [1, 2]}}
    nested = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "weather", "arguments": json.dumps(flat["args"], ensure_ascii=False)},
    }
    costs = {
        counter.count_message({"role": "assistant", "content": None, "tool_calls": [call]}) for call in (flat, nested)
    }
    assert len(costs) == 1
    assert costs.pop() >= counter.count(json.dumps(nested, ensure_ascii=False)) + 4


def test_parallel_tool_calls_each_count(counter):
    calls = [{"id": f"c{i}", "name": "f", "args": {"i": i}} for i in range(5)]
    one = counter.count_message({"role": "assistant", "content": "", "tool_calls": calls[:1]})
    five = counter.count_message({"role": "assistant", "content": "", "tool_calls": calls})
    assert five >= 5 * (one - 4)


def test_a_call_in_content_and_in_tool_calls_counts_once(counter):
    call = {"type": "tool_call", "id": "c1", "name": "f", "args": {"x": 1}}
    listed = {"role": "assistant", "content": [], "tool_calls": [call]}
    both = {"role": "assistant", "content": [call], "tool_calls": [call]}
    inside = {"role": "assistant", "content": [call]}
    assert counter.count_message(both) == counter.count_message(listed) == counter.count_message(inside)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "some words"}, "some words"),
        ({"type": "input_text", "text": "some words"}, "some words"),
        ({"type": "reasoning", "reasoning": "let me think"}, "let me think"),
        ({"type": "thinking", "thinking": "let me think", "signature": "x" * 500}, "let me think"),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "so"}]}, "so"),
        ({"type": "refusal", "refusal": "no"}, "no"),
        ({"type": "tool_result", "tool_call_id": "c1", "content": "sunny"}, "sunny"),
        ({"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "sunny"}]}, "sunny"),
        ({"type": "server_tool_result", "output": {"sky": "blue"}}, '"sky": "blue"'),
        ({"type": "non_standard", "value": {"anything": "here"}}, '"anything": "here"'),
    ],
)
def test_text_inside_blocks_counts(counter, block, text):
    assert counter.count(text) <= counter.count_block(block) <= counter.count(text) + 20


def test_blocks_add_up(counter):
    blocks = [{"type": "text", "text": "a b"}, "c d", {"type": "reasoning", "reasoning": "e f"}]
    message = {"role": "user", "content": blocks}
    assert counter.count_message(message) == 4 + sum(counter.count_block(block) for block in blocks)


def test_tool_schemas_count_as_their_json(counter):
    tools = [
        {"type": "function", "function": {"name": f"tool_{i}", "parameters": {"type": "object", "properties": {}}}}
        for i in range(3)
    ]
    assert counter.count_tools([]) == 0
    assert counter.count_tools(tools) >= sum(counter.count(json.dumps(tool)) for tool in tools)


def test_content_that_json_does_not_know_still_counts(counter):
    assert (
        counter.count_message({"role": "tool", "content": {"type": "x", "when": object(), "raw": b"\x00" * 9_999}}) < 80
    )
    assert counter.count_message({"role": "tool", "content": 12_345}) > 4
