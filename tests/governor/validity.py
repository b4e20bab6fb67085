"""What providers refuse: a reference checker, independent of the code that builds requests."""

from collections.abc import Sequence
from typing import Any


def calls_of(message: dict[str, Any]) -> list[str]:
    """Return the ids of a message's tool calls."""
    if message["role"] != "assistant" or isinstance(message["content"], str):
        return []
    return [block["id"] for block in message["content"] if block.get("type") == "tool_call"]


def check_valid(messages: Sequence[dict[str, Any]]) -> None:
    """Assert that OpenAI, Anthropic and Gemini would accept the list."""
    roles = [message["role"] for message in messages]
    head = 0
    while head < len(roles) and roles[head] in ("system", "developer"):
        head += 1
    assert all(role not in ("system", "developer") for role in roles[head:]), "system text only at the head"
    assert head == len(roles) or roles[head] == "user", "the first non-system message is the user's"
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in messages[head:]:
        if message["role"] == "tool":
            assert message["tool_call_id"] in open_calls, "a result follows its call"
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls, "every call is answered before the next message"
        open_calls = calls_of(message)
        assert len(set(open_calls)) == len(open_calls), "no two equal ids"
        assert not seen & set(open_calls), "no two equal ids"
        seen |= set(open_calls)
    assert not open_calls, "every call is answered"
