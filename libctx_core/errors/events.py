"""What can go wrong with a thread, its events and its envelope."""

from libctx_core.errors.base import LibctxError


class EventConflictError(LibctxError, ValueError):
    """An event id was used again with another role or other content; nothing was written.

    Attributes:
        event_id: The id both events claim.
        stored_role: Role of the event that holds the id.
    """

    code = "event_conflict"

    def __init__(self, event_id: str, stored_role: str) -> None:
        super().__init__(
            f"event id {event_id!r} already names a {stored_role} event with other content; "
            "use another id, or amend() the stored event"
        )
        self.event_id = event_id
        self.stored_role = stored_role


class EventNotFoundError(LibctxError, LookupError):
    """No event with this id is visible in the thread.

    Attributes:
        event_id: The id that was asked for.
    """

    code = "event_not_found"

    def __init__(self, event_id: str) -> None:
        super().__init__(f"no event {event_id!r} is visible here")
        self.event_id = event_id


class ThreadNotFoundError(LibctxError, LookupError):
    """No such thread is visible in the library.

    Attributes:
        collection: Collection of the thread.
        session_id: Session of the thread.
    """

    code = "thread_not_found"

    def __init__(self, collection: str, session_id: str) -> None:
        super().__init__(f"no thread {session_id!r} is visible in collection {collection!r}")
        self.collection = collection
        self.session_id = session_id


class RecordNotFoundError(LibctxError, LookupError):
    """No record with this id is visible.

    Attributes:
        record_id: The id that was asked for.
    """

    code = "record_not_found"

    def __init__(self, record_id: str) -> None:
        super().__init__(f"no record {record_id!r} is visible here")
        self.record_id = record_id


class TurnTooLargeError(LibctxError, ValueError):
    """The part of a request that must not be cut is larger than the token budget.

    Attributes:
        required: Tokens of the system prompt, the tool schemas and the running turn.
        budget: Tokens the request may hold.
    """

    code = "turn_too_large"

    def __init__(self, required: int, budget: int) -> None:
        super().__init__(
            f"the running turn needs {required} tokens and the budget is {budget}; "
            "raise token_budget, shorten the turn, or choose an overflow mode that truncates"
        )
        self.required = required
        self.budget = budget


class FreshnessTimeout(LibctxError, TimeoutError):
    """Indexing did not reach the recorded watermark in time.

    Attributes:
        recorded_through: Sequence of the newest durable event.
        indexed_through: Sequence up to which the thread is searchable.
    """

    code = "freshness_timeout"

    def __init__(self, recorded_through: int, indexed_through: int, timeout: float) -> None:
        super().__init__(
            f"indexed through {indexed_through} of {recorded_through} after {timeout:g} s; "
            "wait longer, or read status() for quarantined events and indexer errors"
        )
        self.recorded_through = recorded_through
        self.indexed_through = indexed_through
