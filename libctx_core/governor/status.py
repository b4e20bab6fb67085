"""How a thread is doing."""

from dataclasses import dataclass
from typing import Any

import apsw

from libctx_core import display
from libctx_core.models import ThreadKey, Watermarks
from libctx_core.store import events as log
from libctx_core.store import outbox
from libctx_core.store.outbox import QuarantinedEvent


@dataclass(frozen=True, slots=True)
class ThreadStatus:
    """A thread's watermarks and what is wrong with it.

    Attributes:
        thread: The thread.
        watermarks: How far it is durable and searchable.
        pending: Events waiting to be indexed.
        quarantined: Events that could not be indexed.
        indexer_error: What the indexer last complained about, None if it is well.
    """

    thread: ThreadKey
    watermarks: Watermarks
    pending: int
    quarantined: tuple[QuarantinedEvent, ...] = ()
    indexer_error: str | None = None

    @property
    def healthy(self) -> bool:
        """Whether nothing is quarantined and the indexer does not complain."""
        return not self.quarantined and self.indexer_error is None

    def to_records(self) -> list[dict[str, Any]]:
        """Return the status as mappings, for data frames."""
        return display.status_records(self)

    def __str__(self) -> str:
        return display.status_text(self)

    def __repr__(self) -> str:
        return f"<ThreadStatus {display.status_summary(self)}>"

    def _repr_html_(self) -> str:
        return display.status_html(self)


def read_status(
    connection: apsw.Connection, key: ThreadKey, thread: int | None, indexer_error: str | None
) -> ThreadStatus:
    """Read a thread's status from a snapshot."""
    if thread is None or log.thread_head(connection, thread) is None:
        return ThreadStatus(key, Watermarks(0, 0, 0), 0, (), indexer_error)
    return ThreadStatus(
        thread=key,
        watermarks=outbox.watermarks(connection, thread),
        pending=outbox.pending(connection, thread),
        quarantined=tuple(outbox.quarantined(connection, thread)),
        indexer_error=indexer_error,
    )
