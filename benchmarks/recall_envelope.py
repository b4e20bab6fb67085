"""Evidence inside a bounded request: the governor beside a sliding window, vector memory and plain FTS5."""

import re
import warnings
from collections.abc import Callable, Iterable, Sequence

import apsw
from recall_data import Conversation, Question, Turn

from libctx_core import LibraryOfContext
from libctx_core.governor.rendering import message_of
from libctx_core.tokens import TokenCounter

BUDGETS = (1_000, 2_000, 4_000)
COUNTER = TokenCounter.for_encoding("o200k_base")

Retriever = Callable[[Question, int], set[str]]
"""Returns the keys of the turns that stand in the request for a question at a budget."""


def envelope_rows(conversations: Sequence[Conversation]) -> list[dict[str, object]]:
    """Return one row per strategy: mean evidence recall at each budget."""
    rows = []
    for name, open_strategy in STRATEGIES.items():
        found: dict[int, list[float]] = {budget: [] for budget in BUDGETS}
        for conversation in conversations:
            with open_strategy(conversation) as retriever:
                for question in conversation.questions:
                    for budget in BUDGETS:
                        shown = retriever(question, budget)
                        found[budget].append(len(question.evidence & shown) / len(question.evidence))
        rows.append(
            {"strategy": name, **{f"at_{budget}": round(sum(v) / len(v), 4) for budget, v in found.items() if v}}
        )
    return rows


def tokens_of(turn: Turn) -> int:
    """Return what a turn takes as a message of its own."""
    return COUNTER.count_message(message_of("user", turn.content, turn.speaker))


def take(turns: Iterable[Turn], budget: int) -> set[str]:
    """Return the keys of leading turns that fit."""
    left, keys = budget - 3, set()
    for turn in turns:
        left -= tokens_of(turn)
        if left < 0:
            break
        keys.add(turn.key)
    return keys


class Governed:
    """The governor with its defaults, one thread a conversation."""

    def __init__(self, conversation: Conversation) -> None:
        self._library = LibraryOfContext(":memory:")
        self._governors = {
            budget: self._library.open_context_governor("talk", token_budget=budget) for budget in BUDGETS
        }
        governor = self._governors[BUDGETS[0]]
        governor.record_many(
            {
                "role": "user",
                "content": turn.content,
                "speaker": turn.speaker,
                "occurred_at": turn.occurred_at,
                "event_id": turn.key,
            }
            for turn in conversation.turns
        )
        assert governor.flush(120)

    def __enter__(self) -> Retriever:
        def retrieve(question: Question, budget: int) -> set[str]:
            prompt = self._governors[budget].build_prompt(focus=question.text)
            assert prompt.token_count <= budget
            whole = {item.hit.event_id for item in prompt.desk if not item.cut and item.hit.event_id}
            return whole | set(prompt.recent_event_ids)

        return retrieve

    def __exit__(self, *_: object) -> None:
        self._library.close()


class SlidingWindow:
    """The last turns that fit."""

    def __init__(self, conversation: Conversation) -> None:
        self._turns = conversation.turns

    def __enter__(self) -> Retriever:
        return lambda _question, budget: take(reversed(self._turns), budget)

    def __exit__(self, *_: object) -> None:
        return


class VectorMemory:
    """VectorStoreRetrieverMemory over LangChain's in-memory store with this library's embedder."""

    def __init__(self, conversation: Conversation) -> None:
        from langchain_classic.memory import VectorStoreRetrieverMemory
        from langchain_core.vectorstores import InMemoryVectorStore
        from langchain_libctx.embeddings import LibraryEmbeddings

        warnings.filterwarnings("ignore", category=DeprecationWarning)
        store = InMemoryVectorStore(LibraryEmbeddings())
        store.add_texts([f"{turn.speaker}: {turn.content}" for turn in conversation.turns],
                        [{"key": turn.key} for turn in conversation.turns])  # fmt: skip
        self._turns = {turn.key: turn for turn in conversation.turns}
        self._memory = VectorStoreRetrieverMemory(
            retriever=store.as_retriever(search_kwargs={"k": BUDGETS[-1] // 20}), memory_key="found", return_docs=True
        )

    def __enter__(self) -> Retriever:
        def retrieve(question: Question, budget: int) -> set[str]:
            found = self._memory.load_memory_variables({"input": question.text})["found"]
            return take((self._turns[document.metadata["key"]] for document in found), budget)

        return retrieve

    def __exit__(self, *_: object) -> None:
        return


class PlainFullText:
    """SQLite's FTS5 with its own bm25, any word of the question."""

    def __init__(self, conversation: Conversation) -> None:
        self._turns = conversation.turns
        self._connection = apsw.Connection(":memory:")
        self._connection.execute("CREATE VIRTUAL TABLE turn USING fts5(text, tokenize='porter unicode61')")
        self._connection.executemany(
            "INSERT INTO turn(rowid, text) VALUES(?, ?)",
            [(at, f"{turn.speaker}: {turn.content}") for at, turn in enumerate(self._turns, start=1)],
        )

    def __enter__(self) -> Retriever:
        def retrieve(question: Question, budget: int) -> set[str]:
            words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question.text))
            query = "SELECT rowid FROM turn WHERE turn MATCH ? ORDER BY rank LIMIT 200"
            rows = self._connection.execute(query, (words,))
            return take((self._turns[at - 1] for (at,) in rows.fetchall()), budget)

        return retrieve

    def __exit__(self, *_: object) -> None:
        self._connection.close()


STRATEGIES = {
    "libctx governor": Governed,
    "sliding window": SlidingWindow,
    "VectorStoreRetrieverMemory": VectorMemory,
    "plain FTS5": PlainFullText,
}
