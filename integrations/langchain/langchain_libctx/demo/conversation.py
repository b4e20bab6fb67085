"""The conversation a demo plays: turns, and what is asked about them later."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from libctx_core.errors import InvalidInputError

OWN = "barge.json"
"""The conversation that ships with the package."""

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
    if "mapping" in value:
        return Conversation(str(value.get("title") or "OpenAI export"), tuple(_paired(_openai(value))))
    if "chat_messages" in value:
        return Conversation(str(value.get("name") or "Claude export"), tuple(_paired(_claude(value))))
    if "conversation" in value:
        return _locomo(value)
    return None


def _own(value: dict[str, Any]) -> Conversation:
    turns = tuple(Turn(turn["user"], turn["assistant"]) for turn in value["turns"])
    questions = tuple(
        Question(item["question"], (item["answer"],), item["turn"]) for item in value.get("questions", ())
    )
    return Conversation(value["title"], turns, questions)


def _paired(messages: Iterable[tuple[str, str]]) -> Iterator[Turn]:
    """Join consecutive messages of one side, and pair what the user said with its reply."""
    said: list[str] = []
    replied: list[str] = []
    for role, text in messages:
        if not text.strip():
            continue
        if role == "user" and replied:
            yield Turn("\n".join(said) or "(continues)", "\n".join(replied))
            said, replied = [], []
        (said if role == "user" else replied).append(text)
    if said and replied:
        yield Turn("\n".join(said), "\n".join(replied))


def _openai(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Follow the branch that ends in the current node."""
    messages = []
    node = value["mapping"].get(value.get("current_node"))
    while node is not None:
        message = node.get("message") or {}
        role = (message.get("author") or {}).get("role")
        parts = (message.get("content") or {}).get("parts") or ()
        if role in ("user", "assistant"):
            messages.append((role, "\n".join(part for part in parts if isinstance(part, str))))
        node = value["mapping"].get(node.get("parent"))
    messages.reverse()
    return messages


def _claude(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for message in value["chat_messages"]:
        yield ("user" if message.get("sender") == "human" else "assistant"), str(message.get("text") or "")


def _locomo(value: dict[str, Any]) -> Conversation:
    """Let the first speaker be the user; a question's evidence are the turns it cites."""
    sessions = value["conversation"]
    said: dict[tuple[int, int], str] = {}
    messages: list[tuple[str, str]] = []
    for number in range(1, len(sessions)):
        for turn in sessions.get(f"session_{number}", ()):
            caption = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            text = f"{turn['speaker']}: {turn['text']}{caption}"
            role = "user" if turn["speaker"] == sessions["speaker_a"] else "assistant"
            messages.append((role, text))
            place = _EVIDENCE.fullmatch(turn["dia_id"])
            if place is not None:
                said[int(place[1]), int(place[2])] = text
    turns = tuple(_paired(messages))
    questions = []
    for item in value.get("qa", ()):
        cited = [(int(a), int(b)) for a, b in _EVIDENCE.findall(" ".join(map(str, item.get("evidence", ()))))]
        evidence = tuple(said[place] for place in cited if place in said)
        if evidence and item.get("category") != _ADVERSARIAL:
            first = next(at for at, turn in enumerate(turns) if evidence[0] in f"{turn.user}\n{turn.assistant}")
            questions.append(Question(item["question"], evidence, first))
    return Conversation(f"LoCoMo {value.get('sample_id', '')}".strip(), turns, tuple(questions))
