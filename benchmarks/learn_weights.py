"""Learn the weights of the ranker's signals, and say what they are worth on conversations not learnt from.

Fits a linear score by maximising the likelihood of the evidence turns against the other
turns of their conversation (a listwise softmax), with Adam and a little weight decay; a
dozen scalars, the same for every run. For the held-out figure each conversation is
answered with weights learnt from the others. The data stays where it is: the project
keeps only the printed scalars, in `libctx_core.search.ranking.SignalWeights`.

    uv run python benchmarks/learn_weights.py [--data FILE] [--lexical] [--json]
"""

import argparse
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from recall_data import Conversation, read_conversations
from recall_store import fill
from report import data_folder, finish, options

from libctx_core.embedding import StaticEmbedder
from libctx_core.search.ranking import SignalWeights
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from libctx_core.store.database import Database

NEGATIVES = 100
"""Other turns kept per question: the best by the default weights, the only ones that could come in the way."""

STEPS = 300
RATE = 0.08
DECAY = 1e-3
CUTS = (5, 10, 20)

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question's candidates.

    Attributes:
        conversation: Number of its conversation.
        values: Signals, one row per candidate.
        evidence: Which candidates are evidence.
    """

    conversation: int
    values: Floats
    evidence: NDArray[np.bool_]


def gather(conversations: list[Conversation], *, lexical: bool) -> tuple[list[str], list[Asked]]:
    """Return the names of the signals and the candidates of every question."""
    embedder = None if lexical else StaticEmbedder()
    database = Database(":memory:")
    owners = [fill(database, conversation, embedder) for conversation in conversations]
    searcher = Searcher(database, embedder)
    default = SignalWeights()
    names: list[str] = []
    asked = []
    for number, (conversation, owner) in enumerate(zip(conversations, owners, strict=True)):
        place = {turn.key: at for at, turn in enumerate(conversation.turns)}
        for question in conversation.questions:
            corpus, measured = searcher.measured(SearchRequest(text=question.text, owners=[owner]))
            found = measured.signals
            names = names or [field.name for field in fields(default) if field.name in found or not lexical]
            table = np.stack([found.get(name, np.zeros(corpus.size, np.float32)) for name in names], axis=1)
            evidence = np.zeros(corpus.size, np.bool_)
            evidence[[place[key] for key in question.evidence]] = True
            rough = table @ np.array([getattr(default, name) for name in names], np.float32)
            keep = np.union1d(np.argsort(-rough, kind="stable")[:NEGATIVES], np.flatnonzero(evidence))
            asked.append(Asked(number, table[keep], evidence[keep]))
    database.close()
    return names, asked


def fit(asked: list[Asked]) -> NDArray[np.float64]:
    """Return the weights that make the evidence most likely."""
    values = np.concatenate([one.values for one in asked])
    evidence = np.concatenate([one.evidence for one in asked])
    sizes = np.array([len(one.values) for one in asked])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    of = np.repeat(np.arange(len(asked)), sizes)
    gold = np.flatnonzero(evidence)
    share = 1 / np.add.reduceat(evidence, starts)[of[gold]]
    weights = np.zeros(values.shape[1])
    mean, spread = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        score = values @ weights.astype(np.float32)
        likely = np.exp(score - np.maximum.reduceat(score, starts)[of])
        others = np.where(evidence, 0, likely)
        rivals = np.add.reduceat(others, starts)[of[gold]] + likely[gold]
        push = others * np.bincount(of[gold], share / rivals, len(asked))[of]
        push[gold] += (likely[gold] / rivals - 1) * share
        slope = push @ values / len(asked) + DECAY * weights
        mean = 0.8 * mean + 0.2 * slope
        spread = 0.95 * spread + 0.05 * slope**2
        weights -= RATE * (mean / (1 - 0.8**step)) / (np.sqrt(spread / (1 - 0.95**step)) + 1e-6)
    return weights


def recalls(asked: list[Asked], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each question's evidence recall at `CUTS`."""
    rows = []
    for one in asked:
        order = np.argsort(-(one.values @ weights), kind="stable")
        found = np.cumsum(one.evidence[order])
        rows.append([found[min(cut, len(found)) - 1] / found[-1] for cut in CUTS])
    return np.array(rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this benchmark's own options."""
    parser.add_argument("--data", type=Path, help="a LoCoMo file")
    parser.add_argument("--lexical", action="store_true", help="signals of words only")


def main() -> None:
    """Print the weights and the held-out figures."""
    chosen = options(__doc__.partition("\n")[0], add=add_options)
    conversations = read_conversations(chosen.data or data_folder() / "locomo-dev5.json")
    names, asked = gather(conversations, lexical=chosen.lexical)
    held_out = np.concatenate(
        [
            recalls(
                [one for one in asked if one.conversation == number],
                fit([one for one in asked if one.conversation != number]),
            )
            for number in range(len(conversations))
        ]
    )
    weights = fit(asked)
    rows = [{"signal": name, "weight": round(float(weight), 2)} for name, weight in zip(names, weights, strict=True)]
    figures = {
        label: {f"recall@{cut}": round(100 * float(value), 2) for cut, value in zip(CUTS, table.mean(0), strict=True)}
        for label, table in (("held_out", held_out), ("learnt_from", recalls(asked, weights)))
    }
    finish("learn_weights", rows, {"questions": len(asked), **figures}, as_json=chosen.json)


if __name__ == "__main__":
    main()
