"""Physical deletion: what an entry says is erased, a tombstone stays."""

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import apsw

from libctx_core.artifacts.values import ArtifactRef
from libctx_core.errors import MemoryEntryNotFoundError
from libctx_core.errors.access import Operation
from libctx_core.memory.canonical import memory_content_hash
from libctx_core.memory.decode import change_of, manifest_entry_of
from libctx_core.memory.head import StoredHead
from libctx_core.memory.indexing import MemoryIndexer
from libctx_core.memory.ledger import MemoryLedger
from libctx_core.memory.plan import plan_states
from libctx_core.memory.stored import memory_ref
from libctx_core.memory.values import MEMORY_SCHEMA, MemoryContent, MemoryManifest
from libctx_core.sources.base import Value
from libctx_core.store import memory as rows
from libctx_core.store.memory_schema import EntryRow
from libctx_core.store.memory_writes import (
    delete_memory,
    erase_entry,
    revisions_with_reasons,
    store_content_hash,
)

T = TypeVar("T")

KEPT: Final = (
    "entry and version ids",
    "content digests",
    "states",
    "references of revisions to sources",
    "names of speakers and sessions in the index",
)
UNREACHED: Final = ("backups and exports", "values that a program still holds", "copies of the file below SQLite")


class PurgeReceipt(Value):
    """What a purge erased, and what it cannot reach.

    Attributes:
        memory_ref: The newest revision afterwards; None if the memory was deleted.
        entries: Ids of the entries that were erased.
        versions: How many versions of them there were.
        log_truncated: Whether the write-ahead log was emptied too; a reader in the way
            leaves old pages there until the next checkpoint.
        kept: What stays as tombstones.
        unreached: What a library cannot erase.
    """

    memory_ref: ArtifactRef | None
    entries: tuple[str, ...]
    versions: int
    log_truncated: bool
    kept: tuple[str, ...] = KEPT
    unreached: tuple[str, ...] = UNREACHED


class MemoryPurge:
    """Erases entries and whole memories of one collection.

    Args:
        ledger: The memories.
        indexer: Holds what is searched of them.
    """

    def __init__(self, ledger: MemoryLedger, indexer: MemoryIndexer) -> None:
        self._ledger = ledger
        self._indexer = indexer

    def entries(self, artifact_id: str, entry_ids: Iterable[str]) -> PurgeReceipt:
        """Erase what some entries say, in all their versions, from the memory and from search.

        Active ones are deactivated by a new revision first. Manifests of older revisions
        stay as they are: they hold ids and digests. Reasons of the entries' changes are
        erased; the content hash of such a revision stays that of before, and the
        revision is marked as redacted.

        Raises:
            ArtifactNotFoundError: There is no such memory.
            MemoryEntryNotFoundError: There is no such entry; nothing was erased.
            ContextAccessDenied: The active scope may not delete.
        """
        wanted = tuple(dict.fromkeys(entry_ids))

        def run(connection: apsw.Connection) -> PurgeReceipt:
            owner = self._ledger.permit(connection, artifact_id, Operation.DELETE)
            found = [_existing(connection, owner.id, entry_id) for entry_id in wanted]
            open_rows = [row for row in found if row.purged_at is None]
            head = StoredHead(connection, artifact_id, owner.id)
            delta = plan_states(head, [row.entry_id for row in open_rows], active=False, reason="purge")
            versions = sum(len(rows.versions_of_entry(connection, row.id)) for row in open_rows)
            self._keep_hashes(connection, owner.id, [row.id for row in open_rows])
            self._indexer.drop_in(connection, [row.id for row in open_rows])
            for row in open_rows:
                erase_entry(connection, owner.id, row.id)
            revision = head.revision
            if delta:
                revision = self._ledger.apply_in(connection, head, delta).revision
            # the revision above queued the entries for the index, which has nothing left of them
            self._indexer.drop_in(connection, [row.id for row in open_rows])
            return PurgeReceipt(
                memory_ref=memory_ref(artifact_id, revision),
                entries=wanted,
                versions=versions,
                log_truncated=False,
            )

        return self._erasing(run)

    def memory(self, artifact_id: str) -> PurgeReceipt:
        """Delete a whole memory with its revisions, its records and its owner object.

        Raises:
            ArtifactNotFoundError: There is no such memory.
            ContextAccessDenied: The active scope may not delete.
        """

        def run(connection: apsw.Connection) -> PurgeReceipt:
            owner = self._ledger.permit(connection, artifact_id, Operation.DELETE)
            entries = list(rows.iterate_entries(connection, owner.id, active_only=False))
            versions = sum(len(rows.versions_of_entry(connection, row.id)) for row in entries)
            self._indexer.drop_owner_in(connection, owner.id)
            delete_memory(connection, owner.id)
            connection.execute("DELETE FROM owner WHERE id = ?", (owner.id,))
            return PurgeReceipt(
                memory_ref=None,
                entries=tuple(row.entry_id for row in entries),
                versions=versions,
                log_truncated=False,
                kept=(),
            )

        return self._erasing(run)

    def _erasing(self, run: Callable[[apsw.Connection], PurgeReceipt]) -> PurgeReceipt:
        """Run a deletion that overwrites what it frees, then empty the write-ahead log."""
        database = self._ledger.database

        def overwriting(connection: apsw.Connection) -> PurgeReceipt:
            before = connection.pragma("secure_delete")
            connection.pragma("secure_delete", 1)
            try:
                return run(connection)
            finally:
                connection.pragma("secure_delete", before)

        receipt = database.write(overwriting)
        return receipt.model_copy(update={"log_truncated": database.truncate_wal()})

    def _keep_hashes(self, connection: apsw.Connection, owner: int, entries: Iterable[int]) -> None:
        """Keep the content hashes that erasing the reasons of these entries would change."""
        numbers = {revision for entry in entries for revision in revisions_with_reasons(connection, owner, entry)}
        for number in sorted(numbers):
            manifest = [manifest_entry_of(row) for row in rows.read_manifest(connection, owner, number)]
            changes = rows.read_changes(connection, owner, after=number - 1, through=number)
            content = MemoryContent.trusted(
                manifest=MemoryManifest.trusted(entries=tuple(manifest), format="flat-v1"),
                changes=tuple(change_of(row) for row in changes),
                schema_version=MEMORY_SCHEMA,
            )
            store_content_hash(connection, owner, number, bytes.fromhex(memory_content_hash(content)))


def _existing(connection: apsw.Connection, owner: int, entry_id: str) -> EntryRow:
    row = rows.read_entry(connection, owner, entry_id)
    if row is None:
        raise MemoryEntryNotFoundError(entry_id)
    return row
