"""Does search find the turns that answer? LoCoMo conversations and QMSum meetings.

Evidence recall at 5, 10 and 20 and the mean reciprocal rank over the best 20, by kind of
question, per conversation, with all conversations in one store, and by words alone,
beside SQLite's own BM25 over the same texts; for meetings the share of the best ten
turns inside a relevant span, beside the same. The protocol is in the README of the data
folder. Then the evidence that stands inside a request of 1,000, 2,000 and 4,000 tokens: the
governor's, a sliding window's, vector memory's and plain FTS5's.

    uv run python benchmarks/recall.py [--data FILE] [--meetings FILE] [--smoke] [--json]
"""

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import apsw
from recall_data import Conversation, Question, read_conversations, read_meetings
from recall_envelope import envelope_rows
from recall_store import fill
from report import data_folder, finish, options

from libctx_core.embedding import StaticEmbedder
from libctx_core.search.request import Mode, SearchRequest
from libctx_core.search.searcher import Searcher
from libctx_core.store.database import Database

DEPTH = 20
CUTS = (5, 10, 20)
SMOKE = 2

Finder = Callable[[str], list[str]]
"""From a question to the keys of the best `DEPTH` turns."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one question found.

    Attributes:
        conversation: Name of its conversation.
        category: Its kind.
        recalls: Evidence recall at `CUTS`.
        reciprocal: One over the rank of the first evidence, 0 beyond `DEPTH`.
        precision: Share of the best ten that is evidence.
        found: How many turns were found.
    """

    conversation: str
    category: str
    recalls: tuple[float, ...]
    reciprocal: float
    precision: float
    found: int


def outcome(conversation: str, question: Question, keys: Sequence[str]) -> Outcome:
    """Compare what was found with the evidence."""
    hits = [key in question.evidence for key in keys]
    first = hits.index(True) if True in hits else None
    return Outcome(
        conversation,
        question.category,
        tuple(sum(hits[:cut]) / len(question.evidence) for cut in CUTS),
        0.0 if first is None else 1 / (first + 1),
        sum(hits[:10]) / 10,
        len(keys),
    )


def row(system: str, group: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return a line of the table, in per cent."""
    return {
        "system": system,
        "group": group,
        "questions": len(outcomes),
        **{f"recall@{cut}": round(100 * mean(one.recalls[at] for one in outcomes), 1) for at, cut in enumerate(CUTS)},
        "mrr": round(100 * mean(one.reciprocal for one in outcomes), 1),
        "empty": sum(one.found == 0 for one in outcomes),
    }


def grouped(system: str, outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Return the lines of a system: all questions, each kind, each conversation."""
    rows = [row(system, "all", outcomes)]
    for attribute in ("category", "conversation"):
        groups = dict.fromkeys(getattr(one, attribute) for one in outcomes)
        rows += [row(system, group, [one for one in outcomes if getattr(one, attribute) == group]) for group in groups]
    return rows


def plain_bm25(conversation: Conversation) -> Finder:
    """Return SQLite's own BM25 over the turns: words quoted, any may match."""
    connection = apsw.Connection("")
    connection.execute("CREATE VIRTUAL TABLE plain USING fts5(text)")
    connection.executemany(
        "INSERT INTO plain(rowid, text) VALUES(?, ?)",
        [(at, f"{turn.speaker}: {turn.content}") for at, turn in enumerate(conversation.turns)],
    )

    def find(text: str) -> list[str]:
        words = dict.fromkeys("".join(c if c.isalnum() else " " for c in text).split())
        match = " OR ".join(f'"{word}"' for word in words)
        query = "SELECT rowid FROM plain WHERE plain MATCH ? ORDER BY rank LIMIT ?"
        return [conversation.turns[at].key for (at,) in connection.execute(query, (match, DEPTH))] if match else []

    return find


def finder(searcher: Searcher, owner: int, *, everywhere: bool = False, mode: Mode = "auto") -> Finder:
    """Return the library's search over one owner, or over all; keys of other owners never count as evidence."""

    def find(text: str) -> list[str]:
        request = SearchRequest(text=text, owners=None if everywhere else [owner], k=DEPTH, mode=mode)
        return [hit.key if hit.owner == owner else f"{hit.owner}/{hit.key}" for hit in searcher.search(request)]

    return find


def ask(conversations: Iterable[Conversation], finders: Iterable[Finder]) -> list[Outcome]:
    """Put every question to the finder of its conversation."""
    return [
        outcome(conversation.name, question, find(question.text))
        for conversation, find in zip(conversations, finders, strict=True)
        for question in conversation.questions
    ]


def conversations_table(conversations: list[Conversation]) -> list[dict[str, Any]]:
    """Return the lines of all systems over LoCoMo conversations."""
    embedder = StaticEmbedder()
    with closing(Database(":memory:")) as database:
        owners = [fill(database, conversation, embedder) for conversation in conversations]
        searcher = Searcher(database, embedder)
        rows = grouped("libctx", ask(conversations, [finder(searcher, owner) for owner in owners]))
        lexical = [finder(searcher, owner, mode="lexical") for owner in owners]
        rows.append(row("libctx, words only", "all", ask(conversations, lexical)))
        together = [finder(searcher, owner, everywhere=True) for owner in owners]
        rows.append(row("libctx, one store", "all", ask(conversations, together)))
    plain = [plain_bm25(conversation) for conversation in conversations]
    rows.append(row("plain FTS5 BM25", "all", ask(conversations, plain)))
    return rows


def meetings_summary(meetings: Iterable[Conversation]) -> dict[str, Any]:
    """Return precision@10 over meetings, beside plain BM25."""
    embedder = StaticEmbedder()
    outcomes: dict[str, list[Outcome]] = {"libctx": [], "words_only": [], "plain": []}
    for meeting in meetings:
        with closing(Database(":memory:")) as database:
            owner = fill(database, meeting, embedder)
            searcher = Searcher(database, embedder)
            outcomes["libctx"] += ask([meeting], [finder(searcher, owner)])
            outcomes["words_only"] += ask([meeting], [finder(searcher, owner, mode="lexical")])
        outcomes["plain"] += ask([meeting], [plain_bm25(meeting)])
    precision = {name: mean(one.precision for one in each) for name, each in outcomes.items()}
    return {
        "questions": len(outcomes["plain"]),
        **{f"precision@10_{name}": round(100 * value, 1) for name, value in precision.items()},
        "ratio_to_plain": round(precision["libctx"] / precision["plain"], 3),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this benchmark's own options."""
    parser.add_argument("--data", type=Path, help="a LoCoMo file")
    parser.add_argument("--meetings", type=Path, help="a QMSum file")
    parser.add_argument("--no-envelope", action="store_true", help="search only")


def main() -> None:
    """Measure and print."""
    chosen = options(__doc__.partition("\n")[0], add=add_options)
    started = time.process_time()
    conversations = read_conversations(chosen.data or data_folder() / "locomo-dev5.json")
    meetings = list(read_meetings(chosen.meetings or data_folder() / "qmsum-test.jsonl"))
    if chosen.smoke:
        conversations, meetings = conversations[:SMOKE], meetings[:SMOKE]
    rows = conversations_table(conversations)
    summary: dict[str, Any] = {"meetings": meetings_summary(meetings)}
    if not chosen.no_envelope:
        for measured in envelope_rows(conversations):
            name = measured.pop("strategy")
            shares = {column: round(100 * share, 1) for column, share in measured.items()}
            rows.append({"system": name, "group": "envelope", **shares})
    summary["cpu_seconds"] = round(time.process_time() - started, 1)
    finish("recall", rows, summary, as_json=chosen.json)


if __name__ == "__main__":
    main()
