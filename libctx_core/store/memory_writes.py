"""Writing memories: one revision touches what it changes and nothing else."""

import json
import time
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, cast

import apsw

from libctx_core.store.memory_schema import HeadRow

_ADD, _REVISE, _DEACTIVATE, _REACTIVATE = range(4)
_OP: Final = {"add": _ADD, "revise": _REVISE, "deactivate": _DEACTIVATE, "reactivate": _REACTIVATE}


class NewVersion(NamedTuple):
    """A version to be stored.

    Attributes:
        version: Which version of its entry, from 1.
        version_id: Its public id.
        kind: What it is.
        text: What it says.
        digest: SHA-256 of its canonical content.
        sources: Pairs of source type and id.
        artifacts: Triples of family, id and revision.
    """

    version: int
    version_id: str
    kind: str
    text: str
    digest: bytes
    sources: Sequence[tuple[str, str]]
    artifacts: Sequence[tuple[str, str, int]]


class Step(NamedTuple):
    """What a revision does to one entry.

    Attributes:
        op: ``add``, ``revise``, ``deactivate`` or ``reactivate``.
        entry_id: The entry.
        reason: Why.
        version: The version an ``add`` or ``revise`` brings.
        tags: JSON list of its tags; None leaves them as they are.
        context: JSON object of where it was said; None leaves it as it is.
    """

    op: str
    entry_id: str
    reason: str | None = None
    version: NewVersion | None = None
    tags: str | None = None
    context: str | None = None


def pack_refs(refs: Sequence[tuple[str, str]] | Sequence[tuple[str, str, int]]) -> str | None:
    """Return references as JSON, None for none."""
    return json.dumps(refs, ensure_ascii=False, separators=(",", ":")) if refs else None


class RevisionWriter:
    """Writes one revision inside a write transaction.

    Args:
        connection: The writer.
        owner: Id of the memory's owner object.
        head: The revision it is based on; None for the first one.
    """

    def __init__(self, connection: apsw.Connection, owner: int, head: HeadRow | None) -> None:
        self._connection = connection
        self._owner = owner
        self._head = head or HeadRow(owner, 0, 0, 0)
        self.revision = self._head.revision + 1

    def write(
        self,
        steps: Sequence[Step],
        *,
        sources: Sequence[tuple[str, str]] = (),
        artifacts: Sequence[tuple[str, str, int]] = (),
    ) -> int:
        """Store the steps as the next revision and return its number.

        Args:
            steps: What it does, each entry once.
            sources: Its source evidence.
            artifacts: Its artifact evidence.

        Raises:
            apsw.ConstraintError: An entry or version id is taken.
        """
        execute = self._connection.execute
        execute(
            "INSERT INTO memory_revision(owner, revision, created_at, sources, artifacts) VALUES(?,?,?,?,?)",
            (self._owner, self.revision, time.time(), pack_refs(sources), pack_refs(artifacts)),
        )
        added = [step for step in steps if step.op == "add"]
        self._add(added)
        active = len(added)
        for step in steps:
            if step.op != "add":
                active += self._change(step)
        execute(
            "INSERT INTO memory VALUES(?,?,?,?) ON CONFLICT(owner) DO UPDATE SET revision = excluded.revision,"
            " entries = excluded.entries, active = excluded.active",
            (self._owner, self.revision, self._head.entries + len(added), self._head.active + active),
        )
        return self.revision

    def _next_id(self, table: str) -> int:
        return int(self._connection.execute(f"SELECT max(id) FROM {table}").get or 0) + 1  # noqa: S608 - constant

    def _add(self, steps: Sequence[Step]) -> None:
        if not steps:
            return
        owner, revision = self._owner, self.revision
        entry, version = self._next_id("memory_entry"), self._next_id("memory_version")
        versions = [step.version for step in steps if step.version is not None]
        numbered = [
            (entry + at, version + at, step, new) for at, (step, new) in enumerate(zip(steps, versions, strict=True))
        ]
        many = self._connection.executemany
        many(
            "INSERT INTO memory_entry(id, owner, entry_id, version, digest, active, state_version, tags, context)"
            " VALUES(?,?,?,?,?,1,1,?,?)",
            [(e, owner, step.entry_id, v, new.digest, step.tags, step.context) for e, v, step, new in numbered],
        )
        many(
            "INSERT INTO memory_version(id, owner, entry, version, version_id, kind, text, digest, revision, sources,"
            " artifacts) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            [
                (
                    v, owner, e, new.version, new.version_id, new.kind, new.text, new.digest, revision,
                    pack_refs(new.sources), pack_refs(new.artifacts),
                )
                for e, v, _, new in numbered
            ],
        )  # fmt: skip
        many("INSERT INTO memory_span VALUES(?,?,?,NULL,?,1)", [(owner, e, revision, v) for e, v, _, _ in numbered])
        many(
            "INSERT INTO memory_change VALUES(?,?,?,0,NULL,?,?)",
            [(owner, revision, e, v, step.reason) for e, v, step, _ in numbered],
        )
        many("INSERT INTO memory_pending VALUES(?,?)", [(e, owner) for e, _, _, _ in numbered])
        self._cite((v, new.sources) for _, v, _, new in numbered)

    def _change(self, step: Step) -> int:
        """Apply one step to an existing entry; return by how much it changes the number of active ones."""
        execute = self._connection.execute
        found = execute(
            "SELECT id, version, slot FROM memory_entry WHERE owner = ? AND entry_id = ?", (self._owner, step.entry_id)
        ).fetchall()
        entry, before, slot = cast("tuple[int, int, int | None]", found[0])
        op = _OP[step.op]
        after = before
        if step.version is not None:
            after = self._insert_version(entry, before, step.version)
            execute("UPDATE memory_entry SET digest = ? WHERE id = ?", (step.version.digest, entry))
        active = op != _DEACTIVATE
        execute(
            "UPDATE memory_entry SET version = ?, active = ?, state_version = state_version + 1,"
            " tags = coalesce(?, tags), context = coalesce(?, context) WHERE id = ?",
            (after, int(active), step.tags, step.context, entry),
        )
        execute(
            "UPDATE memory_span SET until = ? WHERE owner = ? AND entry = ? AND until IS NULL",
            (self.revision, self._owner, entry),
        )
        execute(
            "INSERT INTO memory_span VALUES(?,?,?,NULL,?,?)", (self._owner, entry, self.revision, after, int(active))
        )
        execute(
            "INSERT INTO memory_change VALUES(?,?,?,?,?,?,?)",
            (
                self._owner,
                self.revision,
                entry,
                op,
                None if op == _REACTIVATE else before,
                None if op == _DEACTIVATE else after,
                step.reason,
            ),
        )
        if op != _REACTIVATE and slot is not None:
            # no search shows what is no longer so while the record waits for the index
            execute("UPDATE record SET expires_at = 0 WHERE slot = ?", (slot,))
        mark_pending(self._connection, self._owner, (entry,))
        return 0 if op == _REVISE else 1 if active else -1

    def _insert_version(self, entry: int, previous: int, new: NewVersion) -> int:
        self._connection.execute(
            "INSERT INTO memory_version(owner, entry, version, version_id, previous, kind, text, digest, revision,"
            " sources, artifacts) VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            (
                self._owner, entry, new.version, new.version_id, previous, new.kind, new.text, new.digest,
                self.revision, pack_refs(new.sources), pack_refs(new.artifacts),
            ),
        )  # fmt: skip
        version = int(self._connection.last_insert_rowid())
        self._cite([(version, new.sources)])
        return version

    def _cite(self, versions: Iterable[tuple[int, Sequence[tuple[str, str]]]]) -> None:
        rows = [(*source, version) for version, sources in versions for source in sources]
        if rows:
            self._connection.executemany("INSERT OR IGNORE INTO memory_evidence VALUES(?,?,?)", rows)


def mark_pending(connection: apsw.Connection, owner: int, entries: Iterable[int]) -> None:
    """Note that the search records of these entries must be brought in line."""
    connection.executemany("INSERT OR IGNORE INTO memory_pending VALUES(?,?)", [(entry, owner) for entry in entries])


def store_content_hash(connection: apsw.Connection, owner: int, revision: int, digest: bytes) -> None:
    """Keep the content hash of a revision, so that it is computed once."""
    connection.execute(
        "UPDATE memory_revision SET content_hash = ? WHERE owner = ? AND revision = ?", (digest, owner, revision)
    )


def set_tags(connection: apsw.Connection, entry: int, tags: str | None) -> None:
    """Replace the tags of an entry and count it as a change of its state."""
    connection.execute(
        "UPDATE memory_entry SET tags = ?, state_version = state_version + 1 WHERE id = ?", (tags, entry)
    )


def erase_entry(connection: apsw.Connection, owner: int, entry: int) -> None:
    """Erase what an entry says in all its versions; ids, digests and states stay as its tombstone.

    The reasons of its changes go too. Content hashes are made of them: store those of
    `revisions_with_reasons` before.
    """
    connection.execute(
        "DELETE FROM memory_evidence WHERE version IN (SELECT id FROM memory_version WHERE entry = ?)", (entry,)
    )
    connection.execute(
        "UPDATE memory_version SET kind = NULL, text = NULL, sources = NULL, artifacts = NULL WHERE entry = ?",
        (entry,),
    )
    connection.execute(
        "UPDATE memory_revision SET redacted = 1 WHERE owner = ?1 AND revision IN"
        " (SELECT revision FROM memory_change WHERE owner = ?1 AND entry = ?2 AND reason IS NOT NULL)",
        (owner, entry),
    )
    connection.execute("UPDATE memory_change SET reason = NULL WHERE owner = ? AND entry = ?", (owner, entry))
    connection.execute(
        "UPDATE memory_entry SET purged_at = ?, tags = NULL, context = NULL, state_version = state_version + 1"
        " WHERE id = ?",
        (time.time(), entry),
    )


def revisions_with_reasons(connection: apsw.Connection, owner: int, entry: int) -> list[int]:
    """Return the revisions without a stored content hash that give a reason for changing an entry."""
    return [
        revision
        for (revision,) in connection.execute(
            "SELECT r.revision FROM memory_change c JOIN memory_revision r USING(owner, revision)"
            " WHERE c.owner = ? AND c.entry = ? AND c.reason IS NOT NULL AND r.content_hash IS NULL",
            (owner, entry),
        )
    ]


def delete_memory(connection: apsw.Connection, owner: int) -> None:
    """Delete every row of a memory, its owner object excepted."""
    connection.execute(
        "DELETE FROM memory_evidence WHERE version IN (SELECT id FROM memory_version WHERE owner = ?)", (owner,)
    )
    for table in ("memory_pending", "memory_change", "memory_span", "memory_version", "memory_entry",
                  "memory_revision", "memory"):  # fmt: skip
        connection.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))  # noqa: S608 - constants
