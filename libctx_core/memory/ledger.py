"""The stored memories of one collection: revisions in, revisions out, nothing of search."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import apsw

from libctx_core.artifacts.values import MAX_ARTIFACT_ID_LENGTH, ArtifactLineage, ArtifactRef, check_part
from libctx_core.errors import (
    ArtifactNotFoundError,
    InvalidInputError,
    InvalidMemoryCandidateError,
    InvalidMemoryCitationError,
    RevisionConflictError,
)
from libctx_core.errors.access import Operation
from libctx_core.memory.canonical import memory_content_hash
from libctx_core.memory.decode import (
    artifact_triples,
    change_of,
    lineage_of,
    manifest_entry_of,
    source_pairs,
    steps_of,
    tombstone_of,
    version_of,
)
from libctx_core.memory.head import StoredHead
from libctx_core.memory.plan import Delta, HeadView, IdFactory, check_state
from libctx_core.memory.stored import Origin, StoredMemory, memory_ref, stored_memory
from libctx_core.memory.values import (
    MEMORY_FAMILY,
    Memory,
    MemoryChange,
    MemoryCitation,
    MemoryEntryVersion,
    MemoryManifest,
    MemoryRevisionChanges,
)
from libctx_core.models import new_id
from libctx_core.sources.guard import OpenGuard, OwnerGuard
from libctx_core.sources.values import check_scope_id
from libctx_core.store import memory as rows
from libctx_core.store.database import Database
from libctx_core.store.memory_schema import MEMORY
from libctx_core.store.memory_writes import RevisionWriter, store_content_hash
from libctx_core.store.owners import MEMORY as MEMORY_KIND
from libctx_core.store.owners import OWNERS, OwnerRow, create_owner, find_owner

Planner = Callable[[HeadView], Delta]


class Committed(NamedTuple):
    """What became of a plan.

    Attributes:
        memory: The new revision, or the present one if nothing changed; None if there is
            no memory and nothing to write.
        delta: The plan that was stored.
    """

    memory: StoredMemory | None
    delta: Delta


_PREFIXES: Mapping[str, str] = {"memory": "mem_art", "entry": "mem_ent", "version": "mem_ver"}


def default_id(kind: str) -> str:
    """Return a fresh id for a ``memory``, an ``entry`` or a ``version``."""
    return new_id(_PREFIXES[kind])


class MemoryLedger:
    """Memories of one collection, in a library file.

    Args:
        database: The library.
        collection: The collection, at most 256 characters.
        guard: Decides what the active scope may do.
        id_factory: Makes ids; it is given ``memory``, ``entry`` or ``version``.
    """

    def __init__(
        self,
        database: Database,
        collection: str,
        *,
        guard: OwnerGuard | None = None,
        id_factory: IdFactory | None = None,
    ) -> None:
        self.collection = check_scope_id(collection)
        self.database = database
        self.guard: OwnerGuard = guard or OpenGuard()
        self.ids: IdFactory = id_factory or default_id
        database.ensure(OWNERS)
        database.ensure(MEMORY)

    # -- revisions ------------------------------------------------------------

    def permit(self, connection: apsw.Connection, artifact_id: str, operation: Operation) -> OwnerRow:
        """Return the owner object of a memory on which an operation is allowed.

        Raises:
            ArtifactNotFoundError: There is no such memory.
            ContextAccessDenied: The active scope does not allow it.
        """
        owner = find_owner(connection, MEMORY_KIND, self.collection, artifact_id)
        self.guard.require(operation, MEMORY_KIND, self.collection, artifact_id, owner)
        if owner is None:
            raise ArtifactNotFoundError(artifact_id)
        return owner

    def head(self, artifact_id: str) -> StoredMemory:
        """Return the newest revision of a memory.

        Raises:
            ArtifactNotFoundError: There is no such memory.
        """
        with self.database.read() as connection:
            owner = self.permit(connection, artifact_id, Operation.READ)
            return self.stored(artifact_id, owner.id, _head_revision(connection, owner))

    def revision(self, ref: ArtifactRef) -> StoredMemory:
        """Return one exact revision.

        Raises:
            ArtifactNotFoundError: There is no such revision.
        """
        with self.database.read() as connection:
            return self.stored(ref.artifact_id, self.locate(connection, ref).id, ref.revision)

    def locate(self, connection: apsw.Connection, ref: ArtifactRef, *, head: bool = False) -> OwnerRow:
        """Return the owner object of an existing, readable revision.

        Args:
            connection: Any connection.
            ref: The revision.
            head: Whether it must be the newest one.

        Raises:
            ArtifactNotFoundError: There is no such revision, or it is not the newest.
        """
        if ref.family != MEMORY_FAMILY:
            raise ArtifactNotFoundError(ref)
        owner = self.permit(connection, ref.artifact_id, Operation.READ)
        newest = _head_revision(connection, owner)
        if ref.revision > newest or (head and ref.revision != newest):
            raise ArtifactNotFoundError(ref)
        return owner

    def revisions(self, artifact_id: str) -> tuple[StoredMemory, ...]:
        """Return all revisions of a memory, oldest first."""
        newest = self.head(artifact_id)
        owner = newest.origin.owner
        return tuple(self.stored(artifact_id, owner, number) for number in range(1, newest.revision + 1))

    def stored(self, artifact_id: str, owner: int, revision: int) -> StoredMemory:
        """Return a revision that is known to exist."""
        return stored_memory(artifact_id, Origin(self, owner, revision))

    # -- parts of a revision --------------------------------------------------

    def read_manifest(self, owner: int, revision: int, /) -> MemoryManifest:
        """Return the manifest of a revision."""
        with self.database.read() as connection:
            found = rows.read_manifest(connection, owner, revision)
        return MemoryManifest.trusted(entries=tuple(manifest_entry_of(row) for row in found), format="flat-v1")

    def read_changes(self, owner: int, revision: int, /) -> tuple[MemoryChange, ...]:
        """Return the changes of a revision."""
        with self.database.read() as connection:
            found = rows.read_changes(connection, owner, after=revision - 1, through=revision)
        return tuple(change_of(row) for row in found)

    def read_lineage(self, owner: int, revision: int, /) -> ArtifactLineage:
        """Return the evidence of a revision."""
        with self.database.read() as connection:
            found = rows.read_revision(connection, owner, revision)
        return ArtifactLineage() if found is None else lineage_of(found.sources, found.artifacts)

    def entries(self, ref: ArtifactRef) -> tuple[MemoryEntryVersion, ...]:
        """Return the entry versions of a revision's manifest, forgotten ones included.

        The text and the kind of purged ones are empty.
        """
        with self.database.read() as connection:
            owner = self.locate(connection, ref)
            found = rows.iterate_versions(connection, owner.id, ref.revision)
            return tuple(tombstone_of(row, ref.artifact_id) for row, _ in found)

    def changes(self, ref: ArtifactRef, since_revision: int | None = None) -> tuple[MemoryRevisionChanges, ...]:
        """Return what revisions changed.

        Args:
            ref: The revision to end at.
            since_revision: Revision to start behind; None returns the changes of `ref` alone.

        Raises:
            InvalidInputError: `since_revision` is below 0 or beyond `ref`.
        """
        after = ref.revision - 1 if since_revision is None else since_revision
        if not 0 <= after <= ref.revision:
            raise InvalidInputError("since_revision", f"must be 0 to {ref.revision}, the revision asked about")
        with self.database.read() as connection:
            owner = self.locate(connection, ref)
            found = rows.read_changes(connection, owner.id, after=after, through=ref.revision)
        by_revision: dict[int, list[MemoryChange]] = {number: [] for number in range(after + 1, ref.revision + 1)}
        for row in found:
            by_revision[row.revision].append(change_of(row))
        return tuple(
            MemoryRevisionChanges.trusted(memory_ref=memory_ref(ref.artifact_id, number), changes=tuple(changes))
            for number, changes in by_revision.items()
        )

    def content_hash(self, ref: ArtifactRef) -> str:
        """Return the canonical content hash of a revision; computed once, then kept."""
        with self.database.read() as connection:
            owner = self.locate(connection, ref).id
            kept = rows.read_revision(connection, owner, ref.revision)
        if kept is not None and kept.content_hash is not None:
            return kept.content_hash.hex()
        digest = memory_content_hash(self.stored(ref.artifact_id, owner, ref.revision).content)
        if not self.database.read_only:
            packed = bytes.fromhex(digest)
            self.database.write(
                lambda connection: store_content_hash(connection, owner, ref.revision, packed), durable=False
            )
        return digest

    def cite(self, citation: MemoryCitation) -> MemoryEntryVersion:
        """Return the entry version a citation stands for; older revisions are fine.

        Raises:
            ArtifactNotFoundError: There is no such revision.
            InvalidMemoryCitationError: Its manifest does not hold the entry
                (``entry-missing``), or holds another version of it (``entry-mismatch``).
            MemoryEntryPurgedError: The entry's text was deleted.
        """
        ref = citation.memory_ref
        with self.database.read() as connection:
            owner = self.locate(connection, ref)
            placed = rows.state_at(connection, owner.id, citation.entry_id, ref.revision)
            if placed is None:
                raise InvalidMemoryCitationError("entry-missing", "the revision does not hold the entry")
            row = rows.read_version(connection, placed[0])
        if row.version_id != citation.entry_version_id:
            raise InvalidMemoryCitationError("entry-mismatch", "the revision holds another version of the entry")
        return version_of(row, ref.artifact_id)

    # -- writing --------------------------------------------------------------

    def commit(
        self,
        artifact_id: str,
        planner: Planner,
        *,
        base: Memory | ArtifactRef | None = None,
        fresh: bool = False,
        expected: Mapping[str, int] | None = None,
    ) -> Committed:
        """Plan a change against the head and store it as the next revision.

        The plan is made on a snapshot, outside the write lock; if the head moved
        meanwhile and no base was given, it is made again under the lock.

        Args:
            artifact_id: The memory; it is created if it does not exist and no base is given.
            planner: Makes the plan; it may be called twice and must have no side effects.
            base: The revision the caller goes by; it must be the newest one.
            fresh: The memory must not exist yet.
            expected: State version by entry id that the caller goes by.

        Raises:
            RevisionConflictError: `base` is not the newest revision, or a memory that
                was to be new exists.
            MemoryEntryConflictError: An entry is not at its expected state version.
        """
        check_part("artifact_id", artifact_id, MAX_ARTIFACT_ID_LENGTH)

        def plan(connection: apsw.Connection) -> tuple[StoredHead, Delta]:
            head = self._open(connection, artifact_id, base, fresh=fresh)
            if expected:
                check_state(head, expected)
            return head, planner(head)

        with self.database.read() as connection:
            head, delta = plan(connection)
        if not delta:
            return Committed(self._present(head), delta)

        def run(connection: apsw.Connection) -> Committed:
            now, settled = self._open(connection, artifact_id, base, fresh=fresh), delta
            if now.revision != head.revision or now.owner != head.owner:
                now, settled = plan(connection)
            memory = self.apply_in(connection, now, settled) if settled else self._present(now)
            return Committed(memory, settled)

        return self.database.write(run)

    def apply_in(self, connection: apsw.Connection, head: StoredHead, delta: Delta) -> StoredMemory:
        """Store a plan made against `head`, within the caller's write transaction."""
        owner = head.owner
        if owner is None:
            enrolment = self.guard.require(Operation.CREATE, MEMORY_KIND, self.collection, head.artifact_id, None)
            resource_id, boundary_id = enrolment or (None, None)
            owner = create_owner(
                connection,
                MEMORY_KIND,
                self.collection,
                head.artifact_id,
                resource_id=resource_id,
                boundary_id=boundary_id,
            ).id
        writer = RevisionWriter(connection, owner, head.row)
        try:
            revision = writer.write(
                steps_of(delta),
                sources=source_pairs(delta.lineage.sources),
                artifacts=artifact_triples(delta.lineage.artifacts),
            )
        except apsw.ConstraintError as error:
            raise InvalidMemoryCandidateError("id-collision", "the id factory gave an id that is taken") from error
        return self.stored(head.artifact_id, owner, revision)

    def open_in(self, connection: apsw.Connection, base: Memory | ArtifactRef | None, artifact_id: str) -> StoredHead:
        """Return the head a plan was made against, within the caller's write transaction.

        Raises:
            RevisionConflictError: It moved; for a new memory, it exists.
        """
        return self._open(connection, artifact_id, base, fresh=base is None)

    def _open(
        self, connection: apsw.Connection, artifact_id: str, base: Memory | ArtifactRef | None, *, fresh: bool
    ) -> StoredHead:
        owner = find_owner(connection, MEMORY_KIND, self.collection, artifact_id)
        operation = Operation.CREATE if owner is None else Operation.WRITE
        self.guard.require(operation, MEMORY_KIND, self.collection, artifact_id, owner)
        head = StoredHead(connection, artifact_id, None if owner is None else owner.id)
        if base is not None and head.owner is None:
            raise ArtifactNotFoundError(base)
        if (base is not None and base.revision != head.revision) or (fresh and head.owner is not None):
            raise RevisionConflictError(base, self._present(head))
        return head

    def _present(self, head: StoredHead) -> StoredMemory | None:
        if head.owner is None or head.row is None:
            return None
        return self.stored(head.artifact_id, head.owner, head.revision)


def _head_revision(connection: apsw.Connection, owner: OwnerRow) -> int:
    head = rows.read_head(connection, owner.id)
    return 0 if head is None else head.revision
