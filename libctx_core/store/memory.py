"""Reading memories: heads, manifests, changes, entry versions."""

from collections.abc import Iterator, Sequence
from typing import cast

import apsw

from libctx_core.store.memory_schema import (
    ChangeRow,
    EntryRow,
    HeadRow,
    ManifestRow,
    RevisionRow,
    VersionRow,
)

_VERSION = (
    "SELECT v.id, v.entry, e.entry_id, v.version, v.version_id, p.version_id, v.kind, v.text, v.digest, v.revision,"
    " v.sources, v.artifacts FROM memory_version v JOIN memory_entry e ON e.id = v.entry"
    " LEFT JOIN memory_version p ON p.id = v.previous"
)
_ENTRY = "SELECT id, entry_id, version, active, state_version, purged_at, tags, context, slot FROM memory_entry"


def read_head(connection: apsw.Connection, owner: int) -> HeadRow | None:
    """Return the newest revision of a memory, or None if it has none."""
    for row in connection.execute("SELECT owner, revision, entries, active FROM memory WHERE owner = ?", (owner,)):
        return HeadRow(*row)
    return None


def read_revision(connection: apsw.Connection, owner: int, revision: int) -> RevisionRow | None:
    """Return one revision, or None."""
    for row in connection.execute(
        "SELECT revision, created_at, sources, artifacts, content_hash, redacted FROM memory_revision"
        " WHERE owner = ? AND revision = ?",
        (owner, revision),
    ):
        return RevisionRow(*row)
    return None


def read_revisions(connection: apsw.Connection, owner: int) -> list[RevisionRow]:
    """Return all revisions of a memory, oldest first."""
    return [
        RevisionRow(*row)
        for row in connection.execute(
            "SELECT revision, created_at, sources, artifacts, content_hash, redacted FROM memory_revision"
            " WHERE owner = ? ORDER BY revision",
            (owner,),
        )
    ]


def read_manifest(connection: apsw.Connection, owner: int, revision: int) -> list[ManifestRow]:
    """Return the manifest of a revision, sorted by the bytes of the entry ids."""
    return [
        ManifestRow(*row)
        for row in connection.execute(
            "SELECT e.entry_id, v.version_id, v.digest, s.active FROM memory_span s"
            " JOIN memory_entry e ON e.id = s.entry JOIN memory_version v ON v.id = s.version"
            " WHERE s.owner = ?1 AND s.since <= ?2 AND (s.until IS NULL OR s.until > ?2) ORDER BY e.entry_id",
            (owner, revision),
        )
    ]


def read_changes(connection: apsw.Connection, owner: int, *, after: int, through: int) -> list[ChangeRow]:
    """Return the changes of revisions `after` + 1 to `through`, by revision and entry id."""
    return [
        ChangeRow(*row)
        for row in connection.execute(
            "SELECT c.revision, c.op, e.entry_id, b.version_id, a.version_id, c.reason FROM memory_change c"
            " JOIN memory_entry e ON e.id = c.entry"
            " LEFT JOIN memory_version b ON b.id = c.before LEFT JOIN memory_version a ON a.id = c.after"
            " WHERE c.owner = ? AND c.revision > ? AND c.revision <= ? ORDER BY c.revision, e.entry_id",
            (owner, after, through),
        )
    ]


def read_entry(connection: apsw.Connection, owner: int, entry_id: str) -> EntryRow | None:
    """Return the present state of an entry, or None."""
    for row in connection.execute(f"{_ENTRY} WHERE owner = ? AND entry_id = ?", (owner, entry_id)):
        return EntryRow(*row)
    return None


def active_text(connection: apsw.Connection, owner: int, entry_id: str) -> tuple[str, str] | None:
    """Return version id and text of an active entry, or None."""
    for version_id, text in connection.execute(
        "SELECT v.version_id, v.text FROM memory_entry e JOIN memory_version v ON v.id = e.version"
        " WHERE e.owner = ? AND e.entry_id = ? AND e.active = 1 AND v.text IS NOT NULL",
        (owner, entry_id),
    ):
        return version_id, text
    return None


def iterate_entries(connection: apsw.Connection, owner: int, *, active_only: bool) -> Iterator[EntryRow]:
    """Yield the entries of a memory in the order they were added."""
    for row in connection.execute(
        f"{_ENTRY} WHERE owner = ? AND active >= ? ORDER BY id", (owner, 1 if active_only else 0)
    ):
        yield EntryRow(*row)


def read_version(connection: apsw.Connection, version: int) -> VersionRow:
    """Return the version with this row id; it must exist."""
    for row in connection.execute(f"{_VERSION} WHERE v.id = ?", (version,)):
        return VersionRow(*row)
    raise LookupError(version)


def find_version(connection: apsw.Connection, owner: int, version_id: str) -> VersionRow | None:
    """Return a version by its public id, or None."""
    for row in connection.execute(f"{_VERSION} WHERE v.owner = ? AND v.version_id = ?", (owner, version_id)):
        return VersionRow(*row)
    return None


def iterate_versions(connection: apsw.Connection, owner: int, revision: int) -> Iterator[tuple[VersionRow, bool]]:
    """Yield the versions in the manifest of a revision and whether each is active, by entry id."""
    for active, *row in connection.execute(
        _VERSION.replace("SELECT ", "SELECT s.active, ", 1)
        + " JOIN memory_span s ON s.version = v.id AND s.entry = v.entry AND s.owner = v.owner"
        " WHERE v.owner = ?1 AND s.since <= ?2 AND (s.until IS NULL OR s.until > ?2) ORDER BY e.entry_id",
        (owner, revision),
    ):
        yield VersionRow(*row), bool(active)


def versions_of_entry(connection: apsw.Connection, entry: int) -> list[VersionRow]:
    """Return all versions of an entry, oldest first."""
    return [
        VersionRow(*row) for row in connection.execute(f"{_VERSION} WHERE v.entry = ? ORDER BY v.version", (entry,))
    ]


def active_with_digest(connection: apsw.Connection, owner: int, digest: bytes) -> list[VersionRow]:
    """Return the current versions of active entries with this content hash, by entry id."""
    found = connection.execute(
        "SELECT version FROM memory_entry INDEXED BY memory_entry_digest"
        " WHERE owner = ? AND digest = ? AND active = 1 ORDER BY entry_id",
        (owner, digest),
    ).fetchall()
    return [read_version(connection, version) for (version,) in cast("list[tuple[int]]", found)]


def active_duplicates(connection: apsw.Connection, owner: int) -> list[bytes]:
    """Return the content hashes that more than one active entry has."""
    return [
        digest
        for (digest,) in connection.execute(
            "SELECT digest FROM memory_entry WHERE owner = ? AND active = 1 GROUP BY digest HAVING count(*) > 1",
            (owner,),
        )
    ]


def state_at(connection: apsw.Connection, owner: int, entry_id: str, revision: int) -> tuple[int, bool] | None:
    """Return the version row id of an entry in a revision and whether it was active, or None."""
    for version, active in connection.execute(
        "SELECT s.version, s.active FROM memory_entry e JOIN memory_span s ON s.owner = e.owner AND s.entry = e.id"
        " WHERE e.owner = ?1 AND e.entry_id = ?2 AND s.since <= ?3 AND (s.until IS NULL OR s.until > ?3)",
        (owner, entry_id, revision),
    ):
        return version, bool(active)
    return None


def entries_from_sources(
    connection: apsw.Connection, collection: str, sources: Sequence[tuple[str, str]]
) -> list[tuple[int, str]]:
    """Return owner and entry id of every entry of a collection with a version that stands on one of the sources.

    Args:
        connection: Any connection.
        collection: Collection whose memories are looked at.
        sources: Pairs of source type and source id.
    """
    found: set[tuple[int, str]] = set()
    for source_type, source_id in sources:
        found.update(
            connection.execute(
                "SELECT e.owner, e.entry_id FROM memory_evidence x JOIN memory_version v ON v.id = x.version"
                " JOIN memory_entry e ON e.id = v.entry JOIN owner o ON o.id = e.owner"
                " WHERE x.source_type = ? AND x.source_id = ? AND o.collection = ? AND e.purged_at IS NULL",
                (source_type, source_id, collection),
            )
        )
    return sorted(found)
