"""What most programs do instead: keep the last messages that fit."""

from collections import deque
from collections.abc import Callable
from typing import Any

from langchain_classic.base_memory import BaseMemory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import PrivateAttr


class SlidingWindowMemory(BaseMemory):
    """The last messages whose tokens, with those of the new turn, stay within a budget."""

    token_budget: int
    count: Callable[[str, str], int]
    memory_key: str = "history"
    _messages: deque[tuple[BaseMessage, int]] = PrivateAttr(default_factory=deque)

    @property
    def memory_variables(self) -> list[str]:
        """The one variable it fills."""
        return [self.memory_key]

    def load_memory_variables(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Return the newest messages that fit, beginning with the user's."""
        room = self.token_budget - self.count("user", str(inputs["input"]))
        kept: deque[BaseMessage] = deque()
        for message, tokens in reversed(self._messages):
            if tokens > room:
                break
            room -= tokens
            kept.appendleft(message)
        while kept and not isinstance(kept[0], HumanMessage):
            kept.popleft()
        return {self.memory_key: list(kept)}

    def save_context(self, inputs: dict[str, Any], outputs: dict[str, str]) -> None:
        """Remember one turn, and forget what can never fit again."""
        said, reply = str(inputs["input"]), str(next(iter(outputs.values())))
        self._messages.append((HumanMessage(said), self.count("user", said)))
        self._messages.append((AIMessage(reply), self.count("assistant", reply)))
        held = sum(tokens for _, tokens in self._messages)
        while self._messages and held > self.token_budget:
            held -= self._messages.popleft()[1]

    def clear(self) -> None:
        """Forget everything."""
        self._messages.clear()
