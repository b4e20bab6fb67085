"""Sessions: the stretches of a conversation within which neighbours belong together."""

from typing import Protocol

from libctx_core.store.index import IndexState
from libctx_core.store.records import RecordInput

SITTING_GAP = 7200.0
"""Seconds of silence after which a conversation is taken up anew."""

SITTING_SIZE = 200
"""Records of one sitting at most, so that a thread without times still has stretches."""


class Ordinals(Protocol):
    """Gives names their numbers."""

    def ordinal(self, field: str, name: str | None, *, new: int | None = None) -> int:
        """Return the number of a name, `new` for one not seen before."""
        ...


def place_record(state: IndexState, record: RecordInput, names: Ordinals) -> tuple[int, bool]:
    """Return the session of the next record and whether it opens it; updates `state`.

    A record without a session joins the sitting that runs until a silence longer than
    `SITTING_GAP`.
    """
    if record.session:
        session = names.ordinal("session", record.session, new=state.sitting + 1)
        opening = session > state.sitting
        state.sitting = max(state.sitting, session)
        state.sitting_size = 0
        return session, opening
    opening = state.sitting_size == 0 or state.sitting_size >= SITTING_SIZE or _is_apart(state.sitting_at, record)
    if opening:
        state.sitting += 1
        state.sitting_size = 0
    state.sitting_size += 1
    if record.occurred_at is not None:
        state.sitting_at = record.occurred_at
    return state.sitting, opening


def _is_apart(last: float | None, record: RecordInput) -> bool:
    return last is not None and record.occurred_at is not None and abs(record.occurred_at - last) > SITTING_GAP
