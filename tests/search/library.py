"""What the tests of search share: libraries filled with records, and plain ways to look into them."""

from collections.abc import Sequence

import numpy as np

from libctx_core.search.index import SearchIndex
from libctx_core.store.database import Database
from libctx_core.store.owners import get_or_create_owner
from libctx_core.store.records import RecordInput

DIMENSION = 8
PROFILE = "test-hash"


class HashEmbedder:
    """Embeds words by the sum of their bytes: quick, deterministic, and alike for like words."""

    profile_id = PROFILE
    dimension = DIMENSION

    def embed_documents(self, texts: Sequence[str], /):
        rows = np.zeros((len(texts), DIMENSION), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().split():
                row[sum(word.encode("utf-8", "replace")) % DIMENSION] += 1
            row /= np.linalg.norm(row) or 1
        return rows

    def embed_query(self, text: str, /):
        return self.embed_documents([text])[0]


def records_of(lines, *, prefix="r", **fields):
    """Return one spoken record per line; a line is a text, or a speaker and a text."""
    made = []
    for at, line in enumerate(lines):
        speaker, text = line if isinstance(line, tuple) else (None, line)
        made.append(
            RecordInput(
                key=f"{prefix}{at}", kind="event", text=text, speaker=speaker, role="user", sequence=at, **fields
            )
        )
    return made


def add(database: Database, key: str, records, *, embedder=None, kind="THREAD"):
    """Index records in one owner and return its id and the slots."""
    index = SearchIndex(database)
    vectors = None if embedder is None else embedder.embed_documents([record.text for record in records])

    def work(connection):
        owner = get_or_create_owner(connection, kind, "tests", key).id
        profile = "" if embedder is None else embedder.profile_id
        return owner, index.add(connection, owner, records, vectors, profile=profile)

    return database.write(work)


def keys(hits):
    return [hit.key for hit in hits]
