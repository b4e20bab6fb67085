"""Reading the evaluation files: conversations with evidence (LoCoMo), meetings with relevant spans (QMSum)."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ADVERSARIAL = 5
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop"}

_EVIDENCE = re.compile(r"D:?(\d+):0*(\d+)")
_SESSION = re.compile(r"session_(\d+)")
_TIME = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation or meeting.

    Attributes:
        key: Its id.
        speaker: Who speaks.
        text: What is said.
        caption: Caption of a photo that was sent along.
        occurred_at: Time of its session, seconds since the epoch, UTC.
    """

    key: str
    speaker: str
    text: str
    caption: str | None = None
    occurred_at: float | None = None

    @property
    def content(self) -> str:
        """The text with its caption, as the protocol records it."""
        return f"{self.text} [image: {self.caption}]" if self.caption else self.text


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the turns that answer it.

    Attributes:
        text: The question as it is.
        evidence: Keys of the turns.
        category: Kind of question, a name of `CATEGORIES`.
    """

    text: str
    evidence: frozenset[str]
    category: str = "single-hop"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation and its questions.

    Attributes:
        name: Its id in the file.
        turns: Its turns in order.
        questions: Its questions that have evidence, the adversarial ones left out.
    """

    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


def read_conversations(path: Path) -> list[Conversation]:
    """Return the conversations of a LoCoMo file."""
    return [_conversation(item) for item in json.loads(path.read_text("utf-8"))]


def _conversation(item: dict) -> Conversation:
    talk = item["conversation"]
    numbers = sorted(int(found[1]) for key in talk if (found := _SESSION.fullmatch(key)))
    turns = []
    for number in numbers:
        at = datetime.strptime(talk[f"session_{number}_date_time"], _TIME).replace(tzinfo=UTC).timestamp()
        turns += [
            Turn(turn["dia_id"], turn["speaker"], turn["text"], turn.get("blip_caption"), at)
            for turn in talk[f"session_{number}"]
        ]
    known = {turn.key for turn in turns}
    questions = []
    for asked in item["qa"]:
        evidence = {f"D{s}:{t}" for text in asked.get("evidence", ()) for s, t in _EVIDENCE.findall(text)} & known
        if asked["category"] != ADVERSARIAL and evidence:
            questions.append(Question(asked["question"], frozenset(evidence), CATEGORIES[asked["category"]]))
    return Conversation(item["sample_id"], tuple(turns), tuple(questions))


def read_meetings(path: Path) -> Iterator[Conversation]:
    """Yield the meetings of a QMSum file with their specific questions."""
    for number, line in enumerate(path.read_text("utf-8").splitlines()):
        meeting = json.loads(line)
        turns = tuple(
            Turn(str(at), turn["speaker"], turn["content"]) for at, turn in enumerate(meeting["meeting_transcripts"])
        )
        questions = tuple(
            Question(
                asked["query"],
                frozenset(
                    str(at) for first, last in asked["relevant_text_span"] for at in range(int(first), int(last) + 1)
                ),
            )
            for asked in meeting["specific_query_list"]
        )
        yield Conversation(f"meeting-{number}", turns, questions)
