"""Learn the relevance model: what tells an answer from the best of what does not answer.

Positive examples are the evidence turns of every question; negative ones the best ten
hits of the same question put to another conversation, which cannot answer it, and of
small talk. Both kinds weigh the same. Printed for conversations not learnt from: at each
gate, the share of evidence among the best ten that passes, and how often nothing passes
although nothing could answer.

    uv run python benchmarks/learn_relevance.py [--data FILE] [--lexical] [--json]
"""

from dataclasses import dataclass, fields

import numpy as np
from learn_weights import add_options
from numpy.typing import NDArray
from recall_data import Conversation, read_conversations
from recall_store import fill
from report import data_folder, finish, options

from libctx_core.embedding import StaticEmbedder
from libctx_core.search.ranking import DEFAULT_WEIGHTS, best, combine
from libctx_core.search.relevance import SPEAKER, RelevanceModel, features
from libctx_core.search.request import SearchRequest
from libctx_core.search.searcher import Searcher
from libctx_core.store.database import Database

SMALL_TALK = (
    "Thanks, that's great!",
    "Sounds good, let's continue.",
    "Hello! How are you today?",
    "Can you help me with something?",
    "I'm not sure about that, let me think.",
    "Write a short poem about autumn.",
    "Translate this sentence into French, please.",
    "How do I reverse a linked list in Python?",
    "Summarize the previous answer in two sentences.",
    "Please fix the bug in the function above.",
    "Can you make it shorter?",
    "Why does my docker container exit immediately?",
    "Who won the 1998 world cup?",
)
GATES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
DECAY = 1e-3
STEPS = 60
TOP = 10
FITTED = [field.name for field in fields(RelevanceModel) if field.name != "speaker"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """The best hits of one question, or of small talk.

    Attributes:
        conversation: Number of the conversation whose question it is.
        values: Features, one row per hit, best first.
        answers: Which of them are evidence.
        answerable: Whether the conversation asked holds the answer.
    """

    conversation: int
    values: Floats
    answers: NDArray[np.bool_]
    answerable: bool


def gather(conversations: list[Conversation], *, lexical: bool) -> list[Asked]:
    """Return the hits of every question in its own and in another conversation, and of small talk."""
    embedder = None if lexical else StaticEmbedder()
    database = Database(":memory:")
    owners = [fill(database, conversation, embedder) for conversation in conversations]
    searcher = Searcher(database, embedder)

    def ask(number: int, owner: int, text: str, evidence: frozenset[str], answerable: bool) -> Asked:
        corpus, measured = searcher.measured(SearchRequest(text=text, owners=[owner]))
        rows = best(combine(measured.signals, DEFAULT_WEIGHTS, corpus.size), corpus.is_alive, TOP)
        turns = conversations[owners.index(owner)].turns
        answers = np.array([answerable and turns[row].key in evidence for row in rows.tolist()])
        return Asked(number, features(measured, rows).astype(np.float64), answers, answerable)

    asked = []
    for number, conversation in enumerate(conversations):
        for count, question in enumerate(conversation.questions):
            other = owners[(number + 1 + count % (len(owners) - 1)) % len(owners)]
            asked.append(ask(number, owners[number], question.text, question.evidence, True))
            asked.append(ask(number, other, question.text, question.evidence, False))
        asked += [ask(number, owners[number], text, frozenset(), False) for text in SMALL_TALK]
    database.close()
    return asked


def fit(asked: list[Asked]) -> Floats:
    """Return the coefficients of all features; that of the speaker is set."""
    values = np.concatenate([one.values[one.answers] if one.answerable else one.values for one in asked])
    labels = np.concatenate(
        [np.full(np.count_nonzero(one.answers) if one.answerable else len(one.values), one.answerable) for one in asked]
    )
    place = [field.name for field in fields(RelevanceModel)].index("speaker")
    offset = SPEAKER * values[:, place]
    table = np.delete(values, place, axis=1)
    balance = np.where(labels, 0.5 / labels.mean(), 0.5 / (1 - labels.mean()))
    ridge = DECAY * len(table) * np.append(np.ones(table.shape[1] - 1), 0)
    found = np.zeros(table.shape[1])
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-(table @ found + offset)))
        curve = balance * likely * (1 - likely) + 1e-6
        slope = table.T @ (balance * (likely - labels)) + ridge * found
        found -= np.linalg.lstsq((table * curve[:, None]).T @ table + np.diag(ridge), slope, rcond=None)[0]
    return np.insert(found, place, SPEAKER)


def main() -> None:
    """Print the coefficients and what each gate lets through."""
    chosen = options(__doc__.partition("\n")[0], add=add_options)
    asked = gather(read_conversations(chosen.data or data_folder() / "locomo-dev5.json"), lexical=chosen.lexical)
    passed = []
    for number in sorted({one.conversation for one in asked}):
        model = fit([one for one in asked if one.conversation != number])
        passed += [(one, 1 / (1 + np.exp(-(one.values @ model)))) for one in asked if one.conversation == number]
    evidence = np.concatenate([likely[one.answers] for one, likely in passed])
    rows = [
        {
            "gate": gate,
            "evidence_kept": round(float((evidence >= gate).mean()), 3),
            "shown_if_answerable": round(float(np.mean([(p >= gate).sum() for one, p in passed if one.answerable])), 1),
            "empty_if_not": round(float(np.mean([(p < gate).all() for one, p in passed if not one.answerable])), 2),
        }
        for gate in GATES
    ]
    model = dict(zip([field.name for field in fields(RelevanceModel)], np.round(fit(asked), 2).tolist(), strict=True))
    finish("learn_relevance", rows, {"model": model}, as_json=chosen.json)


if __name__ == "__main__":
    main()
