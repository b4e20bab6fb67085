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


def place_record(state: IndexState, record: RecordInput, names: Ordinals) -> int:
    """Return the session of the next record; updates `state`.

    Records of a named session belong together, and so do those cut from one document.
    What was said in a conversation joins the sitting that runs until a silence longer
    than `SITTING_GAP`. Anything else stands alone.
    """
    if record.session:
        state.sitting_size, state.sitting_ref = 0, None
        session = names.ordinal("session", record.session, new=state.sitting + 1)
        state.sitting = max(state.sitting, session)
        return session
    if _begins(state, record):
        state.sitting += 1
        state.sitting_size = 0
    state.sitting_ref = record.ref
    if record.ref is None and is_spoken(record):
        state.sitting_size += 1
        state.sitting_at = record.occurred_at if record.occurred_at is not None else state.sitting_at
    return state.sitting


def _begins(state: IndexState, record: RecordInput) -> bool:
    if record.ref is not None:
        return record.ref != state.sitting_ref
    if not is_spoken(record) or not 0 < state.sitting_size < SITTING_SIZE:
        return True
    last = state.sitting_at
    return last is not None and record.occurred_at is not None and abs(record.occurred_at - last) > SITTING_GAP


def is_spoken(record: RecordInput) -> bool:
    """Tell whether a record is part of a conversation."""
    return record.role is not None or record.speaker is not None or record.occurred_at is not None
