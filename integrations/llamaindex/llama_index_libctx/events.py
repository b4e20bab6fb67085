"""What this package tells LlamaIndex's instrumentation."""

from llama_index_instrumentation.base import BaseEvent


class LibraryPromptEvent(BaseEvent):
    """A memory built its view of a conversation.

    Attributes:
        session_id: The conversation.
        token_count: Tokens of the view.
        token_budget: Tokens it may hold.
        paged_out_events: Events of the conversation that it does not show directly.
        omitted_protected: Protected events that found no room.
        swapped_in: Records that came onto the desk.
        swapped_out: Records that left it.
    """

    session_id: str
    token_count: int
    token_budget: int
    paged_out_events: int
    omitted_protected: list[str]
    swapped_in: list[str]
    swapped_out: list[str]

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the event."""
        return "LibraryPromptEvent"


class LibraryWriteEvent(BaseEvent):
    """Nodes of a vector store were stored or deleted.

    Attributes:
        collection_name: The collection of nodes.
        operation: ``add``, ``delete``, ``delete_nodes`` or ``clear``.
        count: How many nodes it was, None where that is not counted.
    """

    collection_name: str
    operation: str
    count: int | None = None

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the event."""
        return "LibraryWriteEvent"
