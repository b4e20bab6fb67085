"""The head of a stored memory, looked at entry by entry."""

from collections.abc import Iterable, Sequence

import apsw

from libctx_core.memory.decode import tombstone_of, version_of
from libctx_core.memory.plan import EntryState
from libctx_core.memory.values import MemoryEntryVersion
from libctx_core.store import memory as rows


class StoredHead:
    """A head read through one connection, so that what it says is one snapshot.

    Args:
        connection: Any connection; a writer sees its own transaction.
        artifact_id: Id of the memory.
        owner: Id of its owner object; None for a memory that does not exist yet.

    Attributes:
        artifact_id: Id of the memory.
        owner: Id of its owner object, or None.
        revision: The newest revision; 0 if there is none.
    """

    def __init__(self, connection: apsw.Connection, artifact_id: str, owner: int | None) -> None:
        self.artifact_id = artifact_id
        self.owner = owner
        self.row = None if owner is None else rows.read_head(connection, owner)
        self.revision = 0 if self.row is None else self.row.revision
        self._connection = connection
        self._owner = -1 if owner is None else owner

    def entry(self, entry_id: str, /) -> EntryState | None:
        """Return an entry, or None."""
        row = rows.read_entry(self._connection, self._owner, entry_id)
        if row is None:
            return None
        version = rows.read_version(self._connection, row.version)
        return EntryState(
            version=tombstone_of(version, self.artifact_id),
            active=bool(row.active),
            state_version=row.state_version,
            purged=row.purged_at is not None,
        )

    def active_with(self, digest: str, /) -> Sequence[MemoryEntryVersion]:
        """Return the active entries with a content hash, by entry id."""
        found = rows.active_with_digest(self._connection, self._owner, bytes.fromhex(digest))
        return [version_of(row, self.artifact_id) for row in found]

    def active(self) -> Iterable[MemoryEntryVersion]:
        """Return all active entries, by entry id."""
        for row, is_active in rows.iterate_versions(self._connection, self._owner, self.revision):
            if is_active:
                yield version_of(row, self.artifact_id)

    def duplicates(self) -> Iterable[Sequence[MemoryEntryVersion]]:
        """Return groups of active entries that share a content hash, each by entry id."""
        for digest in rows.active_duplicates(self._connection, self._owner):
            yield self.active_with(digest.hex())
