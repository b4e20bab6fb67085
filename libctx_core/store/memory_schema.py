"""Tables of memories: what a revision changed is stored, what it held is derived.

An entry's place in the manifests is a *span*: from revision `since` up to, but not
including, revision `until`, it stood there with one version in one state. A revision
touches the spans of what it changed and nothing else, so a revision costs what it
changes, and the manifest of any revision is one scan.
"""

from typing import Final, NamedTuple

from libctx_core.store.migrations import Component

MEMORY = Component(
    "memory",
    (
        """
        CREATE TABLE memory(
            owner INTEGER PRIMARY KEY,
            revision INTEGER NOT NULL,
            entries INTEGER NOT NULL,
            active INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE memory_revision(
            id INTEGER PRIMARY KEY,
            owner INTEGER NOT NULL,
            revision INTEGER NOT NULL,
            created_at REAL NOT NULL,
            sources TEXT,
            artifacts TEXT,
            content_hash BLOB,
            redacted INTEGER NOT NULL DEFAULT 0,
            UNIQUE(owner, revision)
        ) STRICT;
        CREATE TABLE memory_entry(
            id INTEGER PRIMARY KEY,
            owner INTEGER NOT NULL,
            entry_id TEXT NOT NULL,
            version INTEGER NOT NULL,
            digest BLOB NOT NULL,
            active INTEGER NOT NULL,
            state_version INTEGER NOT NULL,
            purged_at REAL,
            tags TEXT,
            context TEXT,
            slot INTEGER,
            UNIQUE(owner, entry_id)
        ) STRICT;
        CREATE INDEX memory_entry_digest ON memory_entry(owner, digest) WHERE active = 1;
        CREATE TABLE memory_version(
            id INTEGER PRIMARY KEY,
            owner INTEGER NOT NULL,
            entry INTEGER NOT NULL,
            version INTEGER NOT NULL,
            version_id TEXT NOT NULL,
            previous INTEGER,
            kind TEXT,
            text TEXT,
            digest BLOB NOT NULL,
            revision INTEGER NOT NULL,
            sources TEXT,
            artifacts TEXT,
            UNIQUE(owner, version_id)
        ) STRICT;
        CREATE INDEX memory_version_entry ON memory_version(entry, version);
        CREATE TABLE memory_span(
            owner INTEGER NOT NULL,
            entry INTEGER NOT NULL,
            since INTEGER NOT NULL,
            until INTEGER,
            version INTEGER NOT NULL,
            active INTEGER NOT NULL,
            PRIMARY KEY(owner, entry, since)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE memory_change(
            owner INTEGER NOT NULL,
            revision INTEGER NOT NULL,
            entry INTEGER NOT NULL,
            op INTEGER NOT NULL,
            before INTEGER,
            after INTEGER,
            reason TEXT,
            PRIMARY KEY(owner, revision, entry)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE memory_evidence(
            source_type TEXT NOT NULL,
            source_id TEXT NOT NULL,
            version INTEGER NOT NULL,
            PRIMARY KEY(source_type, source_id, version)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE memory_pending(entry INTEGER PRIMARY KEY, owner INTEGER NOT NULL) STRICT;
        CREATE INDEX memory_pending_owner ON memory_pending(owner);
        """,
    ),
)

OPS: Final = ("add", "revise", "deactivate", "reactivate")
"""Change operations; a stored operation is its place here."""


class HeadRow(NamedTuple):
    """The newest revision of a memory.

    Attributes:
        owner: Id of the memory's owner object.
        revision: The revision, from 1.
        entries: Entries in its manifest.
        active: Entries that are active.
    """

    owner: int
    revision: int
    entries: int
    active: int


class RevisionRow(NamedTuple):
    """One revision of a memory.

    Attributes:
        revision: The revision, from 1.
        created_at: When it was committed, seconds since the epoch.
        sources: Source evidence as JSON pairs, or None.
        artifacts: Artifact evidence as JSON triples, or None.
        content_hash: SHA-256 of its canonical content, once somebody asked for it.
        redacted: 1 if reasons of its changes were purged; its hash is that of before.
    """

    revision: int
    created_at: float
    sources: str | None
    artifacts: str | None
    content_hash: bytes | None
    redacted: int


class VersionRow(NamedTuple):
    """One version of an entry.

    Attributes:
        id: Row id.
        entry: Row id of the entry.
        entry_id: Public id of the entry.
        version: Which version, from 1.
        version_id: Public id of the version.
        previous_id: Public id of the version it replaced.
        kind: What it is; None once purged.
        text: What it says; None once purged.
        digest: SHA-256 of its canonical content.
        revision: Revision that brought it.
        sources: Source evidence as JSON pairs, or None.
        artifacts: Artifact evidence as JSON triples, or None.
    """

    id: int
    entry: int
    entry_id: str
    version: int
    version_id: str
    previous_id: str | None
    kind: str | None
    text: str | None
    digest: bytes
    revision: int
    sources: str | None
    artifacts: str | None


class EntryRow(NamedTuple):
    """The present state of an entry.

    Attributes:
        id: Row id.
        entry_id: Public id.
        version: Row id of its current version.
        active: 1 if it counts.
        state_version: Rises with every change of the entry, tags included.
        purged_at: When its text was deleted, or None.
        tags: JSON list, or None.
        context: JSON object of where it was said, or None.
        slot: Its record in the search index, or None.
    """

    id: int
    entry_id: str
    version: int
    active: int
    state_version: int
    purged_at: float | None
    tags: str | None
    context: str | None
    slot: int | None


class ManifestRow(NamedTuple):
    """One line of a manifest."""

    entry_id: str
    version_id: str
    digest: bytes
    active: int


class ChangeRow(NamedTuple):
    """One change of a revision; `op` is a place in `OPS`."""

    revision: int
    op: int
    entry_id: str
    before_id: str | None
    after_id: str | None
    reason: str | None
