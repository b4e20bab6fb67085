"""A chat model that follows a script, and keeps what it was shown."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr


class ScriptedChat(BaseChatModel):
    """Replies as it was told to; `shown` holds the messages of the last request."""

    _reply: str = PrivateAttr(default="")
    _shown: list[BaseMessage] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def shown(self) -> list[BaseMessage]:
        """The messages of the last request."""
        return self._shown

    def follow(self, reply: str) -> None:
        """Set the reply to the next request."""
        self._reply = reply

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        self._shown = list(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=self._reply))])
