"""Putting an evaluation conversation into a library the way the governor's indexer does."""

from recall_data import Conversation

from libctx_core.ports import Embedder
from libctx_core.search.index import SearchIndex
from libctx_core.store.database import Database
from libctx_core.store.owners import get_or_create_owner
from libctx_core.store.records import RecordInput


def fill(database: Database, conversation: Conversation, embedder: Embedder | None) -> int:
    """Index the turns of a conversation as one thread; return its owner id.

    Turns carry speaker and time but no session, as recorded messages do.
    """
    records = [
        RecordInput(
            key=turn.key,
            kind="event",
            text=turn.content,
            role="user",
            speaker=turn.speaker,
            sequence=at,
            occurred_at=turn.occurred_at,
        )
        for at, turn in enumerate(conversation.turns)
    ]
    vectors = None
    if embedder is not None:
        vectors = embedder.embed_documents([f"{record.speaker}: {record.text}" for record in records])
    index = SearchIndex(database)

    def work(connection: object) -> int:
        owner = get_or_create_owner(connection, "THREAD", "evaluation", conversation.name)
        index.add(connection, owner.id, records, vectors, profile=embedder.profile_id if embedder else "")
        return owner.id

    return database.write(work, durable=False)
