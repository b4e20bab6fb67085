"""The tool steps of a classic agent as messages, so that memory keeps what the agent did."""

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.agents import AgentAction
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from libctx_core.models import new_id

STEPS_KEY = "intermediate_steps"
"""Output under which an `AgentExecutor` with ``return_intermediate_steps=True`` tells its steps."""


def step_messages(steps: Any) -> list[BaseMessage]:
    """Return the calls and results of an agent's steps, calls made together in one message.

    Args:
        steps: Pairs of an `AgentAction` and its observation; anything else has no steps.
    """
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        return []
    messages: list[BaseMessage] = []
    pairs = [step for step in steps if isinstance(step, tuple) and len(step) == 2 and isinstance(step[0], AgentAction)]
    at = 0
    while at < len(pairs):
        together = [pairs[at]]
        while at + len(together) < len(pairs) and _same_message(pairs[at][0], pairs[at + len(together)][0]):
            together.append(pairs[at + len(together)])
        messages.extend(_group(together))
        at += len(together)
    return messages


def _same_message(one: AgentAction, other: AgentAction) -> bool:
    """Tell whether two actions are calls of one message of the model."""
    first, second = getattr(one, "message_log", None), getattr(other, "message_log", None)
    return bool(first) and first == second


def _group(pairs: Sequence[tuple[AgentAction, Any]]) -> list[BaseMessage]:
    calls = []
    results: list[BaseMessage] = []
    for action, observation in pairs:
        call_id = str(getattr(action, "tool_call_id", None) or new_id("call"))
        arguments = action.tool_input if isinstance(action.tool_input, dict) else {"input": action.tool_input}
        calls.append({"type": "tool_call", "id": call_id, "name": action.tool, "args": arguments})
        results.append(ToolMessage(content=_text(observation), tool_call_id=call_id, name=action.tool))
    log = getattr(pairs[0][0], "message_log", None)
    said = log[-1].content if log and isinstance(log[-1], AIMessage) else ""
    return [AIMessage(content=said, tool_calls=calls), *results]


def _text(observation: Any) -> str:
    if isinstance(observation, str):
        return observation
    try:
        return json.dumps(observation, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(observation)
