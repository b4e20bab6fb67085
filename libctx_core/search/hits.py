"""From ranked rows to hits: their records, their neighbours, near-duplicates dropped."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

import apsw
import numpy as np

from libctx_core.search.analysis import fold, split
from libctx_core.search.columns import Bools, Floats, Rows
from libctx_core.search.corpus import Corpus
from libctx_core.search.ranking import Measured, SignalWeights
from libctx_core.search.request import RecordHit, SearchRequest
from libctx_core.store.index_records import RecordRow, read_records_at
from libctx_core.store.records import owner_and_position

VECTOR_MATCH = 0.5
"""The `vector` signal from which the vector channel counts as having found a record: two deviations over the mean."""

SAME_WORDS = 0.9
"""Share of all words of two records that both hold, from which the worse one is a near-duplicate."""


class Found(TypedDict, total=False):
    """What a search adds to a record; see `RecordHit`."""

    score: float
    relevance: float
    matched_by: tuple[str, ...]
    signals: dict[str, float]
    neighbours: tuple[RecordHit, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """A row that becomes a hit, its relevance and its record."""

    row: int
    relevance: float
    stored: RecordRow


def choose(
    connection: apsw.Connection, corpus: Corpus, rows: Rows, relevant: Floats, request: SearchRequest
) -> list[Chosen]:
    """Return the rows that become hits with their records, best first.

    Args:
        connection: A reader.
        corpus: The records.
        rows: Ranked rows, best first.
        relevant: Their relevance.
        request: Says how many, how relevant, and whether duplicates are dropped.
    """
    waiting = list(zip(rows.tolist(), relevant.tolist(), strict=True))
    chosen: list[Chosen] = []
    seen: list[frozenset[str]] = []
    while waiting and len(chosen) < request.k:
        few = request.few - len(chosen)
        least = request.few_relevance if few > 0 else request.min_relevance
        waiting = [(row, relevance) for row, relevance in waiting if relevance >= least]
        size = few if few > 0 else request.k
        part, waiting = waiting[:size], waiting[size:]
        records = read_rows(connection, corpus, np.array([row for row, _ in part], np.int64))
        for row, relevance in part:
            stored = records[row]
            if request.dedupe:
                words = frozenset(split(fold(stored.record.text)))
                if any(_is_duplicate(words, other) for other in seen):
                    continue
                seen.append(words)
            chosen.append(Chosen(row, relevance, stored))
            if len(chosen) == request.k:
                break
    return chosen


def _is_duplicate(words: frozenset[str], other: frozenset[str]) -> bool:
    together = len(words | other)
    return not together or len(words & other) >= SAME_WORDS * together


def read_rows(connection: apsw.Connection, corpus: Corpus, rows: Rows) -> dict[int, RecordRow]:
    """Return the record of each row."""
    slots = corpus.slots(rows).tolist()
    row_of = dict(zip(slots, rows.tolist(), strict=True))
    return {row_of[stored.slot]: stored for stored in read_records_at(connection, slots)}


def neighbours_of(
    connection: apsw.Connection, corpus: Corpus, usable: Bools, chosen: Sequence[Chosen], reach: int
) -> dict[int, tuple[RecordHit, ...]]:
    """Return for each chosen row the usable records of its session within `reach` places."""
    near = {each.row: [at for at in corpus.near(each.row, reach) if usable[at]] for each in chosen}
    records = read_rows(connection, corpus, np.array(sorted({at for rows in near.values() for at in rows}), np.int64))
    return {row: tuple(as_hit(records[at]) for at in rows) for row, rows in near.items()}


def matched_by(measured: Measured, place: int) -> tuple[str, ...]:
    """Return the channels that found the row at a place of what was measured."""
    found = []
    if measured.words is not None and measured.words[place] > 0:
        found.append("lexical")
    if "vector" in measured.signals and measured.signals["vector"][place] >= VECTOR_MATCH:
        found.append("vector")
    return tuple(found)


def explained(measured: Measured, place: int, weights: SignalWeights) -> dict[str, float]:
    """Return what each signal adds to the score of the row at a place."""
    return {name: float(values[place]) * getattr(weights, name) for name, values in measured.signals.items()}


def as_hit(stored: RecordRow, **found: Unpack[Found]) -> RecordHit:
    """Return a record as a hit, with what the search found out about it."""
    record = stored.record
    return RecordHit(
        slot=stored.slot,
        owner=owner_and_position(stored.slot)[0],
        key=record.key,
        kind=record.kind,
        text=record.text,
        caption=record.caption,
        role=record.role,
        speaker=record.speaker,
        session=record.session,
        sequence=record.sequence,
        occurred_at=record.occurred_at,
        ref=record.ref,
        metadata=record.metadata,
        payload=record.payload,
        **found,
    )
