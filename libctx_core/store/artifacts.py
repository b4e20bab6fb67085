"""Rows of artifacts: revisions, their heads, and the evidence of each."""

import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import apsw

from libctx_core.store.migrations import Component

ARTIFACTS = Component(
    "artifacts",
    (
        """
        CREATE TABLE artifact_head(
            collection TEXT NOT NULL,
            family TEXT NOT NULL,
            artifact_id TEXT NOT NULL,
            revision INTEGER NOT NULL,
            PRIMARY KEY(collection, family, artifact_id)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE artifact(
            id INTEGER PRIMARY KEY,
            collection TEXT NOT NULL,
            family TEXT NOT NULL,
            artifact_id TEXT NOT NULL,
            revision INTEGER NOT NULL,
            content TEXT NOT NULL,
            created_at REAL NOT NULL,
            UNIQUE(collection, family, artifact_id, revision)
        ) STRICT;
        CREATE TABLE artifact_lineage(
            artifact INTEGER NOT NULL,
            ordinal INTEGER NOT NULL,
            name TEXT NOT NULL,
            key TEXT NOT NULL,
            revision INTEGER,
            PRIMARY KEY(artifact, ordinal)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX artifact_lineage_key ON artifact_lineage(name, key);
        """,
    ),
)


class EvidenceRow(NamedTuple):
    """One piece of evidence.

    Attributes:
        name: Source type, or artifact family.
        key: Source id, or artifact id.
        revision: Revision of the artifact; None for a source.
    """

    name: str
    key: str
    revision: int | None = None


class ArtifactRow(NamedTuple):
    """One stored revision.

    Attributes:
        artifact_id: Id within the family.
        revision: Which revision, from 1.
        content: The content as JSON.
        evidence: What it was made from, in the writer's order, sources first.
    """

    artifact_id: str
    revision: int
    content: str
    evidence: tuple[EvidenceRow, ...]


def head_revision(connection: apsw.Connection, collection: str, family: str, artifact_id: str) -> int:
    """Return the latest revision of an artifact, 0 if there is none."""
    return int(
        connection.execute(
            "SELECT revision FROM artifact_head WHERE collection = ? AND family = ? AND artifact_id = ?",
            (collection, family, artifact_id),
        ).get
        or 0
    )


def read_artifacts(
    connection: apsw.Connection, collection: str, family: str, artifact_id: str, *, revision: int | None = None
) -> list[ArtifactRow]:
    """Return one revision of an artifact, or all of them by rising revision."""
    found = connection.execute(
        "SELECT id, revision, content FROM artifact WHERE collection = ? AND family = ? AND artifact_id = ?"
        " AND (?4 IS NULL OR revision = ?4) ORDER BY revision",
        (collection, family, artifact_id, revision),
    ).fetchall()
    return [
        ArtifactRow(artifact_id, number, content, _evidence(connection, row))
        for row, number, content in cast("list[tuple[int, int, str]]", found)
    ]


def _evidence(connection: apsw.Connection, artifact: int) -> tuple[EvidenceRow, ...]:
    return tuple(
        EvidenceRow(*row)
        for row in connection.execute(
            "SELECT name, key, revision FROM artifact_lineage WHERE artifact = ? ORDER BY ordinal", (artifact,)
        )
    )


def insert_revision(
    connection: apsw.Connection,
    collection: str,
    family: str,
    artifact_id: str,
    *,
    base: int,
    content: str,
    evidence: Iterable[EvidenceRow],
) -> bool:
    """Insert revision `base` + 1 if `base` is the latest; False if it is not. Runs in a write transaction."""
    if head_revision(connection, collection, family, artifact_id) != base:
        return False
    revision = base + 1
    connection.execute(
        "INSERT INTO artifact_head VALUES(?, ?, ?, ?) ON CONFLICT(collection, family, artifact_id)"
        " DO UPDATE SET revision = excluded.revision",
        (collection, family, artifact_id, revision),
    )
    connection.execute(
        "INSERT INTO artifact(collection, family, artifact_id, revision, content, created_at) VALUES(?,?,?,?,?,?)",
        (collection, family, artifact_id, revision, content, time.time()),
    )
    row = connection.last_insert_rowid()
    rows: Sequence[tuple[int, int, str, str, int | None]] = [
        (row, ordinal, *item) for ordinal, item in enumerate(evidence)
    ]
    connection.executemany("INSERT INTO artifact_lineage VALUES(?,?,?,?,?)", rows)
    return True
