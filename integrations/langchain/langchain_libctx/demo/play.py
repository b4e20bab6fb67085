"""Plays a conversation through a LangChain chain and measures what the model was shown."""

import html
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from langchain_classic.base_memory import BaseMemory
from langchain_classic.chains import ConversationChain
from langchain_core._api import LangChainDeprecationWarning
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

from langchain_libctx.demo.chat import ScriptedChat
from langchain_libctx.demo.conversation import Conversation, Question
from libctx_core.tokens import TokenCounter

ROLES = {"human": "user", "ai": "assistant"}


@dataclass(frozen=True, slots=True)
class Request:
    """What the model was shown in one turn.

    Attributes:
        number: The turn, from 1; questions go on counting.
        messages: The messages.
        tokens: Their tokens.
        reused: Tokens that the request shares with the one before, from its beginning on.
        seconds: CPU time of the turn; the model answers at once.
        question: What was asked, in the second part.
        found: Share of the question's evidence that the request holds.
    """

    number: int
    messages: tuple[BaseMessage, ...]
    tokens: int
    reused: int
    seconds: float
    question: Question | None = None
    found: float = 0.0


@dataclass(slots=True)
class Run:
    """All requests of one way to govern a conversation."""

    name: str
    requests: list[Request] = field(default_factory=list)

    @property
    def asked(self) -> list[Request]:
        """The requests that ask a question."""
        return [request for request in self.requests if request.question is not None]

    @property
    def recall(self) -> float:
        """Mean share of evidence present when it was asked for."""
        asked = self.asked
        return sum(request.found for request in asked) / len(asked) if asked else 0.0

    @property
    def found(self) -> int:
        """Questions whose evidence was all present."""
        return sum(request.found == 1.0 for request in self.asked)

    @property
    def largest(self) -> int:
        """Tokens of the largest request."""
        return max(request.tokens for request in self.requests)

    @property
    def sent(self) -> int:
        """Tokens of all requests."""
        return sum(request.tokens for request in self.requests)

    @property
    def prefix_reuse(self) -> float:
        """Share of all tokens sent that repeat the beginning of the request before."""
        return sum(request.reused for request in self.requests) / max(self.sent, 1)

    @property
    def milliseconds(self) -> float:
        """Median CPU time of a turn."""
        return median(request.seconds for request in self.requests) * 1000


class Player:
    """Plays one conversation with one memory, turn by turn.

    Args:
        name: Name of the run.
        memory: Any LangChain memory that fills ``history`` with messages.
        counter: Counts the tokens of requests.
    """

    def __init__(self, name: str, memory: BaseMemory, counter: TokenCounter) -> None:
        self.run = Run(name)
        self._counter = counter
        self._model = ScriptedChat()
        prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
        with warnings.catch_warnings():
            # the chain that takes memory= is deprecated in favour of agents; it is what this demo is about
            warnings.simplefilter("ignore", LangChainDeprecationWarning)
            self._chain = ConversationChain(llm=self._model, memory=memory, prompt=prompt)
        self._before = ""

    def say(self, user: str, reply: str) -> Request:
        """Play one turn."""
        self._model.follow(reply)
        return self._record(user, None)

    def ask(self, question: Question) -> Request:
        """Ask a question about what was said before."""
        self._model.follow("Let me look at what you told me.")
        return self._record(question.text, question)

    def _record(self, text: str, question: Question | None) -> Request:
        started = time.thread_time()
        self._chain.invoke({"input": text})
        seconds = time.thread_time() - started
        shown = self._model.shown
        written = "".join(f"<{message.type}>{message.text}\n" for message in shown)
        request = Request(
            number=len(self.run.requests) + 1,
            messages=tuple(shown),
            tokens=self._counter.count_messages(
                [{"role": ROLES.get(message.type, message.type), "content": message.content} for message in shown]
            ),
            reused=self._counter.count(shared_prefix(self._before, written)),
            seconds=seconds,
            question=question,
            found=0.0 if question is None else share_found(question, shown[:-1]),
        )
        self._before = written
        self.run.requests.append(request)
        return request


def shared_prefix(before: str, now: str) -> str:
    """Return what two texts have in common from their beginning on."""
    differs = (at for at, (old, new) in enumerate(zip(before, now, strict=False)) if old != new)
    return now[: next(differs, min(len(before), len(now)))]


def share_found(question: Question, messages: Sequence[BaseMessage]) -> float:
    """Return which share of a question's evidence the messages hold, letter case aside."""
    shown = html.unescape(" ".join(message.text for message in messages))
    text = " ".join(shown.casefold().split())
    wanted = [" ".join(words.casefold().split()) for words in question.evidence]
    return sum(words in text for words in wanted) / len(wanted)


def play(conversation: Conversation, player: Player, *, after: Callable[[Request], None]) -> Run:
    """Play all turns, then ask all questions; `after` is called with each request."""
    for turn in conversation.turns:
        after(player.say(turn.user, turn.assistant))
    for question in conversation.questions:
        after(player.ask(question))
    return player.run
