"""A 200-turn conversation with planted facts: size, recall, prefix reuse and extra model calls, beside peers.

Every strategy sees the same turns and may send 2,000 tokens a request. A fact counts as
recalled when its answer stands in the request that asks for it. Prefix reuse is the
token-weighted mean over the run: tokens of leading messages equal to those of the
request before, divided by all tokens sent.
"""

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from report import finish, options

from libctx_core import LibraryOfContext
from libctx_core.tokens import TokenCounter

BUDGET = 2_000
TURNS = 200
SYSTEM = "You are a helpful assistant. Answer briefly and only from what you were told."
SUBJECTS = (
    "cabin alarm", "boat locker", "studio safe", "office printer", "garage gate", "library card", "gym locker",
    "cellar door", "bicycle lock", "wifi router", "piano tuner", "dentist file", "car radio", "bank deposit box",
    "allotment shed", "ferry booking", "school portal", "tax folder", "greenhouse heater", "clinic badge",
    "museum pass", "camera case", "parcel station", "laundry card", "beehive permit", "telescope dome",
    "choir archive", "roof hatch", "kiln timer",
)  # fmt: skip
COUNTER = TokenCounter.for_encoding("o200k_base")


@dataclass(frozen=True)
class Turn:
    """One exchange; `answer` is what must stand in the request if the turn asks for a planted fact."""

    question: str
    reply: str
    answer: str | None = None


PEOPLE = (
    "Noor", "Milan", "Ines", "Bram", "Suki", "Anton", "Paula", "Rafael", "Greta", "Youssef", "Lotte", "Imran", "Clara",
    "Pim", "Aisha", "Viktor",
)  # fmt: skip
PLACES = (
    "the market hall", "the river path", "the old tram depot", "my sister's flat", "the swimming pool", "the attic",
    "the station café", "the chess club", "the print workshop", "the town archive", "the orchard", "the hardware shop",
    "the theatre foyer", "the dentist's waiting room", "the ferry pier", "the language school", "the rehearsal room",
    "the roof terrace", "the botanical garden", "the repair café",
)  # fmt: skip
DOINGS = (
    "sorted three boxes of photographs", "learnt to sharpen a plane", "argued about the best bread recipe",
    "watched a storm come in", "repaired a flat tyre", "planned a walk along the coast", "tasted five kinds of honey",
    "listened to a talk about glaciers", "painted half a bookcase", "queued for concert tickets",
    "lost at table tennis",
    "planted two rows of leeks", "translated a poem", "measured the windows for curtains", "read about lighthouses",
    "practised a difficult sonata", "baked a lopsided cake", "mended the zip of a tent", "drew a map of the village",
    "compared prices of telescopes", "wrote four postcards", "cleaned the gutters", "tried out a borrowed drone",
    "folded paper cranes with the neighbours' children",
)  # fmt: skip
MOODS = (
    "It took longer than expected, but nobody minded.", "I would do it again tomorrow.", "My back still aches from it.",
    "The light was lovely all afternoon.",
    "We laughed a good deal.", "It was louder there than I like.",
    "I forgot my umbrella, of course.", "On the way home the bus was late.", "I slept like a stone afterwards.",
    "The coffee could have been stronger.", "A stranger gave us good advice.", "I took far too many pictures.",
)  # fmt: skip


def chatter(source: random.Random) -> str:
    """Return made-up small talk of about 60 tokens."""
    people = source.sample(PEOPLE, 2)
    doings = source.sample(DOINGS, 3)
    return (
        f"This morning {people[0]} and I met at {source.choice(PLACES)} and {doings[0]}. {source.choice(MOODS)} "
        f"Later {people[1]} {doings[1]} near {source.choice(PLACES)}, while I {doings[2]}. {source.choice(MOODS)}"
    )


def conversation(seed: int = 7) -> list[Turn]:
    """Return 200 turns; 29 facts, each asked for 60 to 90 turns after it was said."""
    source = random.Random(seed)
    said = sorted(source.sample(range(2, TURNS - 92), len(SUBJECTS)))
    facts: dict[int, str] = {}
    asked: dict[int, tuple[str, str]] = {}
    for turn, subject in zip(said, SUBJECTS, strict=True):
        code = f"{source.choice('KQXZVW')}{source.randrange(1000, 9999)}"
        facts[turn] = f" By the way, the code for the {subject} is {code}."
        place = turn + source.randrange(60, 91)
        while place in asked or place in said or place >= TURNS:
            place = place - 1 if place >= TURNS else place + 1
        asked[place] = (subject, code)
    turns = []
    for number in range(TURNS):
        if number in asked:
            subject, code = asked[number]
            turns.append(Turn(f"What is the code for the {subject}?", f"It is {code}.", code))
            continue
        question = chatter(source) + facts.get(number, "")
        turns.append(Turn(question, chatter(source)))
    return turns


Messages = list[dict[str, str]]


@dataclass
class Run:
    """What one strategy sent."""

    name: str
    calls: int = 0
    tokens: list[int] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)
    recalled: int = 0
    asked: int = 0
    cpu: float = 0.0
    before: Messages = field(default_factory=list)

    def send(self, messages: Messages, turn: Turn) -> None:
        """Note one request."""
        sizes = [COUNTER.count_message(message) for message in messages]
        same = 0
        for size, (now, then) in zip(sizes, zip(messages, self.before, strict=False), strict=False):
            if now != then:
                break
            same += size
        self.tokens.append(sum(sizes) + 3)
        self.shared.append(same)
        self.before = messages
        if turn.answer is not None:
            self.asked += 1
            self.recalled += any(turn.answer in str(message["content"]) for message in messages)

    def row(self) -> dict[str, object]:
        """Return the row of the table."""
        return {
            "strategy": self.name,
            "max_tokens": max(self.tokens),
            "mean_tokens": round(sum(self.tokens) / len(self.tokens)),
            "recalled": f"{self.recalled}/{self.asked}",
            "prefix_reuse": round(sum(self.shared) / sum(self.tokens), 3),
            "extra_calls": self.calls,
            "cpu_ms_per_turn": round(self.cpu * 1e3 / len(self.tokens), 2),
        }


Strategy = Callable[[Sequence[Turn], Run], Iterator[tuple[Messages, Turn]]]


def governed(turns: Sequence[Turn], _run: Run) -> Iterator[tuple[Messages, Turn]]:
    """The governor with its defaults."""
    with tempfile.TemporaryDirectory() as folder, LibraryOfContext(Path(folder) / "run.sqlite") as library:
        governor = library.open_context_governor("run", token_budget=BUDGET)
        for turn in turns:
            yield list(governor.prepare(turn.question, system_prompt=SYSTEM).messages), turn
            governor.commit(turn.reply)
            governor.flush(10)


def full_history(turns: Sequence[Turn], _run: Run) -> Iterator[tuple[Messages, Turn]]:
    """Everything, whatever it costs."""
    log: Messages = [{"role": "system", "content": SYSTEM}]
    for turn in turns:
        log.append({"role": "user", "content": turn.question})
        yield list(log), turn
        log.append({"role": "assistant", "content": turn.reply})


def window(turns: Sequence[Turn], _run: Run) -> Iterator[tuple[Messages, Turn]]:
    """The last 20 messages."""
    log: Messages = []
    for turn in turns:
        log.append({"role": "user", "content": turn.question})
        yield [{"role": "system", "content": SYSTEM}, *log[-19:]], turn
        log.append({"role": "assistant", "content": turn.reply})


def trimmed(turns: Sequence[Turn], _run: Run) -> Iterator[tuple[Messages, Turn]]:
    """LangChain's trim_messages to the same budget."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, trim_messages

    log = [SystemMessage(SYSTEM)]
    for turn in turns:
        log.append(HumanMessage(turn.question))
        kept = trim_messages(
            log, max_tokens=BUDGET, strategy="last", include_system=True, start_on="human",
            token_counter=lambda many: sum(COUNTER.count_message(_plain(one)) for one in many) + 3,
        )  # fmt: skip
        yield [_plain(message) for message in kept], turn
        log.append(AIMessage(turn.reply))


def vector_memory(turns: Sequence[Turn], _run: Run) -> Iterator[tuple[Messages, Turn]]:
    """VectorStoreRetrieverMemory (top 4, this library's embedder) before the last 12 messages."""
    import warnings

    from langchain_classic.memory import VectorStoreRetrieverMemory
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_libctx.embeddings import LibraryEmbeddings

    warnings.filterwarnings("ignore", category=DeprecationWarning)
    store = InMemoryVectorStore(LibraryEmbeddings())
    memory = VectorStoreRetrieverMemory(retriever=store.as_retriever(search_kwargs={"k": 4}), memory_key="found")
    log: Messages = []
    for turn in turns:
        found = memory.load_memory_variables({"input": turn.question})["found"]
        log.append({"role": "user", "content": turn.question})
        yield [{"role": "system", "content": f"{SYSTEM}\n{found}"}, *log[-11:]], turn
        memory.save_context({"input": turn.question}, {"output": turn.reply})
        log.append({"role": "assistant", "content": turn.reply})


def summarised(turns: Sequence[Turn], run: Run) -> Iterator[tuple[Messages, Turn]]:
    """LangChain's SummarizationMiddleware with a toy model that keeps the first words of what it is given."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver

    seen: list[Messages] = []

    class Scripted(GenericFakeChatModel):
        def _generate(self, messages, *args, **kwargs):
            seen.append([_plain(message) for message in messages])
            return super()._generate(messages, *args, **kwargs)

    class Summariser(GenericFakeChatModel):
        def _generate(self, messages, *args, **kwargs):
            run.calls += 1
            return super()._generate(messages, *args, **kwargs)

    replies = iter([AIMessage(turn.reply) for turn in turns])
    summaries = iter(lambda: AIMessage("Summary: the user talked about everyday matters."), None)
    agent = create_agent(
        Scripted(messages=replies),
        system_prompt=SYSTEM,
        checkpointer=InMemorySaver(),
        middleware=[
            SummarizationMiddleware(
                Summariser(messages=summaries), trigger=("tokens", BUDGET - 400), keep=("messages", 8),
                token_counter=lambda many: sum(COUNTER.count_message(_plain(one)) for one in many),
            )
        ],
    )  # fmt: skip
    for turn in turns:
        agent.invoke({"messages": [HumanMessage(turn.question)]}, {"configurable": {"thread_id": "run"}})
        yield seen[-1], turn


def _plain(message: object) -> dict[str, str]:
    roles = {"human": "user", "ai": "assistant", "system": "system"}
    return {"role": roles[message.type], "content": str(message.content)}


STRATEGIES: dict[str, Strategy] = {
    "libctx governor": governed,
    "full history": full_history,
    "trim_messages": trimmed,
    "window of 20": window,
    "vector memory + 12": vector_memory,
    "SummarizationMiddleware": summarised,
}


def main() -> None:
    """Print one row per strategy."""
    arguments = options(__doc__)
    turns = conversation()
    if arguments.smoke:
        turns = turns[:120]
    rows = []
    for name, strategy in STRATEGIES.items():
        run = Run(name)
        start = time.process_time()
        for messages, turn in strategy(turns, run):
            run.send(messages, turn)
        run.cpu = time.process_time() - start
        rows.append(run.row())
    finish("prefix", rows, {"turns": len(turns), "token_budget": BUDGET}, as_json=arguments.json)


if __name__ == "__main__":
    main()
