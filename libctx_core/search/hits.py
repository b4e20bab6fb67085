"""From ranked rows to hits: their records, their neighbours, near-duplicates dropped."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import apsw
import numpy as np

from libctx_core.search.analysis import fold, split
from libctx_core.search.ranking import Measured, SignalWeights
from libctx_core.search.request import RecordHit, SearchRequest
from libctx_core.search.scope import Bools, Floats, Rows, Scope
from libctx_core.store.index_records import read_records_at
from libctx_core.store.records import owner_and_position

VECTOR_MATCH = 0.5
"""The `vector` signal from which the vector channel counts as having found a record: two deviations over the mean."""

SAME_WORDS = 0.9
"""Share of all words of two records that both hold, from which the worse one is a near-duplicate."""


def choose(
    connection: apsw.Connection, scope: Scope, rows: Rows, relevant: Floats, request: SearchRequest
) -> list[tuple[int, RecordHit]]:
    """Return the rows that become hits and their records, best first.

    Args:
        connection: A reader.
        scope: The records in scope.
        rows: Ranked rows, best first.
        relevant: Their relevance.
        request: Says how many, how relevant, and whether duplicates are dropped.
    """
    keep = relevant >= request.min_relevance
    chosen: list[tuple[int, RecordHit]] = []
    seen: list[frozenset[str]] = []
    for row, likely, hit in _records(connection, scope, rows[keep], relevant[keep], request.k):
        if request.dedupe:
            words = frozenset(split(fold(hit.text)))
            if any(_is_duplicate(words, other) for other in seen):
                continue
            seen.append(words)
        chosen.append((row, replace(hit, relevance=likely)))
        if len(chosen) == request.k:
            break
    return chosen


def _records(
    connection: apsw.Connection, scope: Scope, rows: Rows, relevant: Floats, size: int
) -> Iterator[tuple[int, float, RecordHit]]:
    """Yield rows with relevance and record, read a batch at a time."""
    for at in range(0, len(rows), size):
        part = rows[at : at + size]
        found = read_hits(connection, scope, part)
        for row, likely in zip(part.tolist(), relevant[at : at + size].tolist(), strict=True):
            yield row, likely, found[row]


def _is_duplicate(words: frozenset[str], other: frozenset[str]) -> bool:
    together = len(words | other)
    return not together or len(words & other) >= SAME_WORDS * together


def read_hits(connection: apsw.Connection, scope: Scope, rows: Rows) -> dict[int, RecordHit]:
    """Return the record of each row, as a hit without score."""
    slots = scope.slots(rows).tolist()
    row_of = dict(zip(slots, rows.tolist(), strict=True))
    found = {}
    for stored in read_records_at(connection, slots):
        record = stored.record
        found[row_of[stored.slot]] = RecordHit(
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
        )
    return found


def add_neighbours(
    connection: apsw.Connection, scope: Scope, usable: Bools, chosen: Sequence[tuple[int, RecordHit]], reach: int
) -> list[tuple[int, RecordHit]]:
    """Return the hits with the usable records of their session within `reach` places."""
    near = {row: [at for at in scope.near(row, reach) if usable[at]] for row, _ in chosen}
    every = np.array(sorted({at for rows in near.values() for at in rows}), np.int64)
    found = read_hits(connection, scope, every)
    return [(row, replace(hit, neighbours=tuple(found[at] for at in near[row]))) for row, hit in chosen]


def scored(row: int, hit: RecordHit, measured: Measured, score: Floats, explain: SignalWeights | None) -> RecordHit:
    """Return a hit with its score, what matched, and each signal's part if `explain` gives the weights."""
    matched = []
    if measured.words is not None and measured.words[row] > 0:
        matched.append("lexical")
    if "vector" in measured.signals and measured.signals["vector"][row] >= VECTOR_MATCH:
        matched.append("vector")
    parts = {}
    if explain is not None:
        parts = {name: float(values[row]) * getattr(explain, name) for name, values in measured.signals.items()}
    return replace(hit, score=float(score[row]), matched_by=tuple(matched), signals=parts)
