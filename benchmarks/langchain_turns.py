"""The LangChain package per turn: its own CPU, the core's and the framework's beside it, bytes stored, and peers.

Own cost is what a class adds to the core's operations and to the framework's machinery: the
CPU of its methods less the CPU inside the governor. Indexing runs between turns and is not
counted. Peers run in the same process on the same conversation.

    uv run python benchmarks/langchain_turns.py [--sizes N ...] [--parts NAME ...] [--json] [--smoke]
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_classic.chains import ConversationChain
from langchain_classic.memory import ConversationBufferMemory
from langchain_community.chat_message_histories import SQLChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage
from langchain_libctx import (
    ContextGovernorMiddleware,
    LibraryChatMessageHistory,
    LibraryEmbeddings,
    LibraryMemory,
    LibrarySaver,
    LibraryStore,
)
from langchain_libctx.testing.agents import Reply, ScriptedModel
from langchain_libctx.testing.memory import EchoModel
from langchain_measure import CLOCK, Row, library_with, ms, said, timed, turns
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from report import finish, options, sentence

SIZES = (10, 100, 1_000, 10_000)
TURNS = 12
BUDGET = 4_000
EVICTING = "ContextGovernorMiddleware(evict_state=True)"
PARTS = ("history", "memory", "middleware", "checkpoint", "store")


# -- history, memory, middleware ----------------------------------------------------


def history_rows(size: int, count: int) -> list[Row]:
    with library_with(said(size)) as library:

        def turn(number: int) -> tuple[float, float]:
            def work() -> None:
                history = LibraryChatMessageHistory(library, "s", token_budget=BUDGET)
                _ = history.messages
                history.add_messages([HumanMessage(sentence(number + 10**6)), AIMessage(sentence(number + 10**7))])

            return timed(work), 0.0

        ours = {"part": "history", "what": "LibraryChatMessageHistory", "N": size, **turns(library, turn, count)}
    return [ours, *sql_history_rows(size, count)]


def sql_history_rows(size: int, count: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        place = f"sqlite:///{folder}/history.sqlite"
        SQLChatMessageHistory("s", connection=place).add_messages(said(size))
        spent = []
        for number in range(count):

            def work(number: int = number) -> None:
                peer = SQLChatMessageHistory("s", connection=place)
                _ = peer.messages
                peer.add_messages([HumanMessage(sentence(number)), AIMessage(sentence(number + 1))])

            spent.append(timed(work))
    return [{"part": "history", "what": "SQLChatMessageHistory", "N": size, "total ms": ms(spent)}]


def memory_rows(size: int, count: int) -> list[Row]:
    model = EchoModel()
    plain = ConversationChain(llm=model, memory=ConversationBufferMemory())
    with library_with(said(size)) as library:
        memory = LibraryMemory(library, "s", token_budget=BUDGET)

        def turn(number: int) -> tuple[float, float]:
            inputs = {"input": sentence(number + 10**6)}

            def work() -> None:
                loaded = memory.load_memory_variables(inputs)
                memory.save_context({**inputs, **loaded}, {"response": sentence(number + 10**7)})

            spent = timed(work)
            plain.memory.clear()
            frame = timed(lambda: plain.invoke(inputs))
            return spent + frame, frame

        ours = {"part": "memory", "what": "LibraryMemory", "N": size, **turns(library, turn, count)}
    peer = ConversationChain(llm=model, memory=ConversationBufferMemory())
    peer.memory.chat_memory.add_messages(said(size))
    spent = [timed(lambda n=n: peer.invoke({"input": sentence(n)})) for n in range(count)]
    return [ours, {"part": "memory", "what": "ConversationBufferMemory", "N": size, "total ms": ms(spent)}]


class Within(AgentMiddleware[Any, Any, Any]):
    """Measures what a middleware spends around the model's own call."""

    def __init__(self, inner: AgentMiddleware[Any, Any, Any]) -> None:
        super().__init__()
        self.inner = inner
        self.spent = 0.0

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        inside = 0.0

        def measured(sent: Any) -> Any:
            nonlocal inside
            started = time.thread_time()
            try:
                return handler(sent)
            finally:
                inside += time.thread_time() - started

        started = time.thread_time()
        try:
            return self.inner.wrap_model_call(request, measured)
        finally:
            self.spent += time.thread_time() - started - inside


def agent(middleware: list[Any], size: int) -> tuple[Any, Any]:
    model = ScriptedModel(
        script=[Reply(text=sentence(number + 10**8)) for number in range(100)], profile={"max_input_tokens": BUDGET}
    )
    graph = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "s"}}
    graph.update_state(config, {"messages": said(size)})
    return graph, config


def middleware_rows(size: int, count: int) -> list[Row]:
    bare, bare_config = agent([], size)
    with library_with(said(size)) as library:
        within = Within(ContextGovernorMiddleware(library, recall_tools=False))
        graph, config = agent([within], size)

        def turn(number: int) -> tuple[float, float]:
            message = {"messages": [HumanMessage(sentence(number + 10**6))]}
            within.spent = 0.0
            graph.invoke(message, config)
            started = time.process_time()
            bare.invoke({"messages": [HumanMessage(sentence(number + 10**6))]}, bare_config)
            frame = time.process_time() - started
            return within.spent + frame, frame

        ours = {"part": "middleware", "what": "ContextGovernorMiddleware", "N": size, **turns(library, turn, count)}
    return [ours, evicting_row(size, count), summarization_row(size, count)]


def evicting_row(size: int, count: int) -> Row:
    """The governor beside `SummarizationMiddleware`: both keep the state small, and one keeps what was said."""
    with library_with(said(size)) as library:
        governor = ContextGovernorMiddleware(library, recall_tools=False, evict_state=True)
        return peer_row(EVICTING, [governor], size, count, between=lambda: library.flush(60))


def summarization_row(size: int, count: int) -> Row:
    summariser = ScriptedModel(script=[Reply(text="summary " * 40)] * 1_000)
    cutting = SummarizationMiddleware(summariser, trigger=("tokens", BUDGET), keep=("messages", 20))
    row = peer_row("SummarizationMiddleware", [cutting], size, count)
    return {**row, "model calls": len(summariser.requests)}


def peer_row(
    what: str, middleware: list[Any], size: int, count: int, between: Callable[[], object] = lambda: None
) -> Row:
    """Run whole turns of an agent; the first one, which makes the state small, is also told apart."""
    graph, config = agent(middleware, size)
    spent = []
    for number in range(count):
        started = time.process_time()
        graph.invoke({"messages": [HumanMessage(sentence(number))]}, config)
        spent.append(time.process_time() - started)
        between()
    return {
        "part": "middleware",
        "what": what,
        "N": size,
        "total ms": ms(spent),
        "first ms": round(spent[0] * 1e3, 1),
    }


# -- LangGraph ----------------------------------------------------------------------


def checkpoint_rows(size: int, count: int) -> list[Row]:
    return [checkpoint_row(kind, size, count) for kind in ("LibrarySaver", "SqliteSaver")]


def checkpoint_row(kind: str, size: int, count: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "state.sqlite")
        opened: Any = (LibrarySaver if kind == "LibrarySaver" else SqliteSaver).from_conn_string(path)
        with opened as saver:
            builder = StateGraph(MessagesState)
            builder.add_node("model", lambda state: {"messages": [AIMessage(sentence(len(state["messages"])))]})
            builder.add_edge(START, "model")
            builder.add_edge("model", END)
            graph = builder.compile(checkpointer=saver)
            config: Any = {"configurable": {"thread_id": "s"}}
            graph.update_state(config, {"messages": said(size)})
            graph.invoke({"messages": [HumanMessage("warm up")]}, config)
            before = Path(path).stat().st_size if kind == "SqliteSaver" else saver._database.size()
            spent = []
            for number in range(count):
                started = time.process_time()
                graph.invoke({"messages": [HumanMessage(sentence(number))]}, config)
                spent.append(time.process_time() - started)
            if kind == "SqliteSaver":
                pages = saver.conn.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
                after = pages.fetchone()[0]
            else:
                after = saver._database.size()
    return {
        "part": "checkpoint",
        "what": kind,
        "N": size,
        "total ms": ms(spent),
        "bytes/turn": round((after - before) / count),
    }


def store_rows(size: int, count: int) -> list[Row]:
    index: Any = {"dims": 256, "embed": LibraryEmbeddings(), "fields": ["text"]}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, opened, vectors in (
            ("LibraryStore", LibraryStore.from_conn_string(f"{folder}/ours.sqlite", index=index), True),
            ("SqliteStore", SqliteStore.from_conn_string(f"{folder}/peer.sqlite"), False),
            ("InMemoryStore", None, True),
        ):
            if opened is None:
                rows.append(store_row(name, InMemoryStore(index=index), size, count, vectors=vectors))
                continue
            with opened as store:
                store.setup()
                rows.append(store_row(name, store, size, count, vectors=vectors))
    return rows


def store_row(name: str, store: Any, size: int, count: int, *, vectors: bool) -> Row:
    from langgraph.store.base import PutOp

    for at in range(0, size, 500):
        store.batch(
            [
                PutOp(("bench", f"u{n % 7}"), f"k{n}", {"text": sentence(n), "tag": f"t{n % 50}"})
                for n in range(at, min(at + 500, size))
            ]
        )
    numbers = range(count)
    row: Row = {
        "part": "store",
        "what": name,
        "N": size,
        "put ms": ms([timed(lambda n=n: store.put(("bench", "u1"), f"new{n}", {"text": "x"}, False)) for n in numbers]),
        "get ms": ms([timed(lambda n=n: store.get(("bench", f"u{n % 7}"), f"k{n}")) for n in numbers]),
        "search ms": ms([timed(lambda: store.search(("bench",))) for _ in numbers]),
        "filter ms": ms([timed(lambda n=n: store.search(("bench",), filter={"tag": f"t{n}"})) for n in numbers]),
    }
    if vectors:
        row["meaning ms"] = ms([timed(lambda n=n: store.search(("bench",), query=sentence(n))) for n in numbers])
    return row


RUNS: dict[str, Callable[[int, int], list[Row]]] = {
    "history": history_rows,
    "memory": memory_rows,
    "middleware": middleware_rows,
    "checkpoint": checkpoint_rows,
    "store": store_rows,
}


RATIOS = (
    ("LibraryChatMessageHistory", "SQLChatMessageHistory", "total ms"),
    (EVICTING, "SummarizationMiddleware", "total ms"),
    (EVICTING, "SummarizationMiddleware", "first ms"),
    ("LibrarySaver", "SqliteSaver", "total ms"),
    ("LibraryStore", "SqliteStore", "put ms"),
    ("LibraryStore", "SqliteStore", "search ms"),
)
"""Rows that are compared, and by which figure: how many times the peer's cost is ours."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", help=f"messages (default: {', '.join(map(str, SIZES))})")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))


def summary_of(rows: list[Row]) -> Row:
    """Return the figures that the package promises, from the largest size."""
    own = [row["own ms"] for row in rows if "own ms" in row]
    stored = [row["bytes/turn"] for row in rows if "own ms" in row]
    summary: Row = {"largest own ms": max(own, default=None), "largest bytes/turn": max(stored, default=None)}
    largest = max(row["N"] for row in rows)
    saved = {row["what"]: row for row in rows if row["part"] == "checkpoint" and row["N"] == largest}
    if len(saved) == 2:
        ratio = saved["SqliteSaver"]["bytes/turn"] / max(1, saved["LibrarySaver"]["bytes/turn"])
        summary[f"SqliteSaver bytes / LibrarySaver bytes at {largest}"] = round(ratio, 1)
    named = {row["what"]: row for row in rows if row["N"] == largest}
    for ours, peer, figure in RATIOS:
        if ours in named and peer in named:
            ratio = _whole(named[peer], figure) / (_whole(named[ours], figure) or 1)
            summary[f"{peer} / {ours}, {figure} at {largest}"] = round(ratio, 2)
    return summary


def _whole(row: Row, figure: str) -> float:
    """Return a figure of a row; the total of our own is the sum of its shares."""
    return row[figure] if figure in row else sum(row[share] for share in ("own ms", "core ms", "framework ms"))


def main() -> None:
    warnings.simplefilter("ignore")
    given = options(__doc__.partition("\n")[0], add=arguments)
    sizes = given.sizes or (SIZES[:2] if given.smoke else SIZES)
    CLOCK.watch()
    rows = [row for part in given.parts for size in sizes for row in RUNS[part](size, 4 if given.smoke else TURNS)]
    finish("langchain_turns", rows, summary_of(rows), as_json=given.json)


if __name__ == "__main__":
    main()
