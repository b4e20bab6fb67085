"""The conversation a demo plays: turns, and what is asked about them later."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from libctx_core.errors import InvalidInputError, OptionalDependencyError

if TYPE_CHECKING:
    from libctx_sources.chats import ChatMessage

OWN = "barge.json"
"""The conversation that ships with the package."""

CONTINUES = "(continues)"
"""Stands for the user's words where an export begins with a reply."""

_EVIDENCE = re.compile(r"D:?(\d+):0*(\d+)")
_ADVERSARIAL = 5
"""LoCoMo's category of questions that have no answer in the conversation."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user says, and the reply."""

    user: str
    assistant: str


@dataclass(frozen=True, slots=True)
class Question:
    """Something asked at the end.

    Attributes:
        text: The question.
        evidence: Words of the conversation that answer it; each counts for itself.
        turn: The turn that said them first.
    """

    text: str
    evidence: tuple[str, ...]
    turn: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation and its questions; an export of a real chat has none."""

    title: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...] = ()


def own_conversation() -> Conversation:
    """Return the conversation that was written for the demo."""
    text = (files("langchain_libctx") / "data" / OWN).read_text(encoding="utf-8")
    return _own(json.loads(text))


def read_conversation(path: Path) -> Conversation:
    """Read a conversation from a file.

    Args:
        path: JSON of this demo's own format, of a chat export from OpenAI or Claude, or of
            LoCoMo; of several conversations the longest is taken.

    Raises:
        InvalidInputError: It is none of these.
        OptionalDependencyError: It is an export, and libctx-sources is not installed.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidInputError("input", "is not JSON") from error
    candidates = [_any(item) for item in (value if isinstance(value, list) else [value])]
    found = [conversation for conversation in candidates if conversation is not None and conversation.turns]
    if not found:
        raise InvalidInputError("input", "holds no conversation of this demo, OpenAI, Claude or LoCoMo")
    return max(found, key=lambda conversation: len(conversation.turns))


def _any(value: Any) -> Conversation | None:
    if not isinstance(value, dict):
        return None
    if "turns" in value:
        return _own(value)
    try:
        from libctx_sources.claude_export import claude_messages
        from libctx_sources.locomo import locomo_messages
        from libctx_sources.openai_export import openai_messages
    except ModuleNotFoundError as error:
        raise OptionalDependencyError("libctx demo --input", "libctx-sources") from error
    if "mapping" in value:
        said = ((message.speaker, message.text) for message in openai_messages([value], "input"))
        return Conversation(str(value.get("title") or "OpenAI export"), tuple(_paired(said, "user", "assistant")))
    if "chat_messages" in value:
        said = ((message.speaker, message.text) for message in claude_messages([value], "input"))
        return Conversation(str(value.get("name") or "Claude export"), tuple(_paired(said, "human", "assistant")))
    if "conversation" in value:
        return _locomo(value, list(locomo_messages([value], "input")))
    return None


def _own(value: dict[str, Any]) -> Conversation:
    turns = tuple(Turn(turn["user"], turn["assistant"]) for turn in value["turns"])
    questions = tuple(
        Question(item["question"], (item["answer"],), item["turn"]) for item in value.get("questions", ())
    )
    return Conversation(value["title"], turns, questions)


def _paired(messages: Iterable[tuple[str, str]], user: str, assistant: str) -> Iterator[Turn]:
    """Join consecutive messages of one side, and pair what the user said with its reply; others are left out."""
    said: list[str] = []
    replied: list[str] = []
    for speaker, text in messages:
        if speaker == user and replied:
            yield Turn("\n".join(said) or CONTINUES, "\n".join(replied))
            said, replied = [], []
        if speaker in (user, assistant):
            (said if speaker == user else replied).append(text)
    if replied:
        yield Turn("\n".join(said) or CONTINUES, "\n".join(replied))


def _locomo(value: dict[str, Any], messages: "list[ChatMessage]") -> Conversation:
    """Let the first speaker be the user; a question's evidence are the turns it cites."""
    texts = [
        f"{message.speaker}: {message.text}" + (f" [image: {message.caption}]" if message.caption else "")
        for message in messages
    ]
    said = {
        (int(place[1]), int(place[2])): text
        for message, text in zip(messages, texts, strict=True)
        if (place := _EVIDENCE.search(message.identity)) is not None
    }
    first, second = value["conversation"].get("speaker_a", ""), value["conversation"].get("speaker_b", "")
    spoken = ((message.speaker, text) for message, text in zip(messages, texts, strict=True))
    turns = tuple(_paired(spoken, first, second))
    questions = []
    for item in value.get("qa", ()):
        cited = [(int(a), int(b)) for a, b in _EVIDENCE.findall(" ".join(map(str, item.get("evidence", ()))))]
        evidence = tuple(said[place] for place in cited if place in said)
        if not evidence or item.get("category") == _ADVERSARIAL:
            continue
        holding = (at for at, turn in enumerate(turns) if evidence[0] in f"{turn.user}\n{turn.assistant}")
        at = next(holding, None)
        if at is not None:
            questions.append(Question(item["question"], evidence, at))
    return Conversation(f"LoCoMo {value.get('sample_id', '')}".strip(), turns, tuple(questions))
