"""One showing of the demo: two memories, one conversation, a report."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from langchain_libctx.demo.conversation import Conversation, own_conversation, read_conversation
from langchain_libctx.demo.play import Player, Request, play
from langchain_libctx.demo.report import Facts, as_record, print_answer, print_comparison, print_turn
from langchain_libctx.demo.window import SlidingWindowMemory
from langchain_libctx.memory import LibraryMemory
from libctx_core import LibraryOfContext
from libctx_core.cli.output import emit_json, progress
from libctx_core.errors import StorePathError
from libctx_core.plugins import hookimpl
from libctx_core.ports import Observation

SESSION = "demo"


class Watcher:
    """A plugin that remembers what the library said about its last request."""

    def __init__(self) -> None:
        self.facts: Facts = {}

    @hookimpl
    def on_event(self, observations: Sequence[Observation]) -> None:
        """Keep the facts of the newest request."""
        for observation in observations:
            if observation.name == "libctx.prompt.built":
                self.facts = observation.attributes


class Show:
    """Plays and reports.

    Args:
        source: A file to play instead of the conversation that ships with the package.
        budget: Tokens a request may hold.
        turns: Whether to print each turn.
        json: Whether to print for machines only.
    """

    def __init__(self, source: Path | None, *, budget: int, turns: bool, json: bool) -> None:
        self._source = source
        self._budget = budget
        self._turns = turns
        self._json = json
        self._console = Console(highlight=False)

    def run(self, path: Path) -> None:
        """Play with the library in a new file at `path`, then with a sliding window, and compare."""
        if path.exists():
            raise StorePathError(str(path), "exists already; the demo begins with a new library")
        conversation = own_conversation() if self._source is None else read_conversation(self._source)
        total = len(conversation.turns) + len(conversation.questions)
        watcher = Watcher()
        with LibraryOfContext(path, plugins=[watcher]) as library:
            memory = LibraryMemory(library, SESSION, token_budget=self._budget, return_messages=True)
            governed = Player("libctx", memory, library.counter)
            room = self._budget - library.counter.count_messages([])
            window = Player(
                "sliding window",
                SlidingWindowMemory(token_budget=room, count=_message_counter(library)),
                library.counter,
            )
            with progress(f"playing {total} turns", quiet=self._json or self._turns) as advance:

                def after(request: Request) -> None:
                    advance(request.number, total)
                    if self._turns and not self._json:
                        print_turn(self._console, request, watcher.facts, budget=self._budget)

                play(conversation, governed, after=after)
            play(conversation, window, after=lambda request: None)
        self._report(conversation, governed, window)

    def _report(self, conversation: Conversation, governed: Player, window: Player) -> None:
        if self._json:
            emit_json(as_record(governed.run, window.run, title=conversation.title, budget=self._budget))
            return
        said = f"{conversation.title}: {len(conversation.turns)} turns through a LangChain chain"
        self._console.print(Text(f"{said}, at most {self._budget:,} tokens a request", style="bold"), soft_wrap=True)
        if conversation.questions:
            self._console.print(Text("\nIn view when asked for? First libctx, then a sliding window.", style="dim"))
            for ours, theirs in zip(governed.run.asked, window.run.asked, strict=True):
                print_answer(self._console, ours, theirs)
        self._console.print()
        print_comparison(self._console, governed.run, window.run, budget=self._budget)


def _message_counter(library: LibraryOfContext) -> Callable[[str, str], int]:
    def count(role: str, text: str) -> int:
        return library.counter.count_message({"role": role, "content": text})

    return count
