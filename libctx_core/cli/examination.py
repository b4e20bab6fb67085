"""Checks of one library file: permissions, schema, pages, quarantined, waiting and orphaned rows."""

import os
import shutil
import stat
import sys
from pathlib import Path

import apsw

from libctx_core.cli.finding import Finding, attempted, judged, well
from libctx_core.library import LibraryOfContext

LOW_SPACE = 200 * 1024 * 1024
"""Free bytes below which writing may soon fail."""

LARGE_LOG = 256 * 1024 * 1024
"""Bytes of a write-ahead log that says a reader never lets go."""

ORPHANS = {
    "events without a thread": "SELECT count(*) FROM event WHERE thread NOT IN (SELECT owner FROM thread)",
    "threads without an owner": "SELECT count(*) FROM thread WHERE owner NOT IN (SELECT id FROM owner)",
    "records without an owner": "SELECT count(*) FROM record WHERE owner NOT IN (SELECT id FROM owner)",
    "vectors without a record": "SELECT count(*) FROM vector WHERE slot NOT IN (SELECT slot FROM record)",
    "queued work without an event": "SELECT count(*) FROM outbox WHERE uid NOT IN (SELECT uid FROM event)",
    "quarantined rows without an event": "SELECT count(*) FROM quarantine WHERE uid NOT IN (SELECT uid FROM event)",
    "postings without an owner": "SELECT count(*) FROM posting WHERE owner NOT IN (SELECT id FROM owner)",
}
"""Rows that point to nothing, by what they are."""

_RESTORE = "restore a backup, or `libctx export` what is readable and import it into a new file"


def library_findings(path: Path) -> list[Finding]:
    """Look at one library file without changing it."""
    findings = [
        attempted("file", lambda: _file(path), "name the file of a library"),
        attempted("permissions", lambda: _permissions(path), "make the file readable for you"),
        attempted("space", lambda: _space(path), "check the file system"),
    ]
    if any(finding.state == "fault" for finding in findings[:1]):
        return findings[:1]
    try:
        library = LibraryOfContext(path, read_only=True)
    except Exception as error:  # noqa: BLE001 - reported like every other finding
        opening = error
        return [*findings, attempted("schema", lambda: _raise(opening), _RESTORE)]
    with library:
        profile = "" if library.embedder is None else library.embedder.profile_id
        with library.database.read() as connection:
            findings += [
                attempted("schema", lambda: _schema(connection), _RESTORE),
                attempted("pages", lambda: _pages(connection), _RESTORE),
                attempted("embedder profile", lambda: _profile(connection, profile), "run `libctx reindex`"),
                attempted("waiting", lambda: _waiting(connection), "open the library to let its indexer work"),
                *_quarantined(connection),
                attempted("orphaned rows", lambda: _orphans(connection), "run `libctx reindex`"),
            ]
    return findings


def _raise(error: Exception) -> Finding:
    raise error


def _file(path: Path) -> Finding:
    size = path.stat().st_size
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory")
    return well("file", f"{path}, {size:,} bytes")


def _permissions(path: Path) -> Finding:
    if sys.platform == "win32":
        return well("permissions", "kept by the folder's access list")
    modes = {file: stat.S_IMODE(file.stat().st_mode) for file in (path, *_beside(path)) if file.exists()}
    loose = [f"{file.name} {mode:03o}" for file, mode in modes.items() if mode & 0o077]
    if loose:
        advice = f"chmod 600 {path.name}*: others on this machine can read the conversations"
        return Finding("permissions", "fault", ", ".join(loose), advice)
    return judged(
        "permissions",
        "for the owner only" if os.access(path, os.W_OK) else "for the owner only, not writable",
        good=os.access(path, os.W_OK),
        advice="the library can be read but not written",
        otherwise="warning",
    )


def _beside(path: Path) -> tuple[Path, Path]:
    return path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")


def _space(path: Path) -> Finding:
    free = shutil.disk_usage(path.absolute().parent).free
    log = _beside(path)[0]
    logged = log.stat().st_size if log.exists() else 0
    if free < LOW_SPACE:
        return Finding("space", "warning", f"{free:,} bytes free", "make room before writing stops")
    return judged(
        "space",
        f"{free:,} bytes free, {logged:,} in the write-ahead log",
        good=logged < LARGE_LOG,
        advice="a reader keeps an old snapshot; close programs that hold the library open",
        otherwise="warning",
    )


def _schema(connection: apsw.Connection) -> Finding:
    rows = connection.execute("SELECT name, version FROM schema_component ORDER BY name").fetchall()
    return well("schema", ", ".join(f"{name} {version}" for name, version in rows))


def _pages(connection: apsw.Connection) -> Finding:
    said = [str(row[0]) for row in connection.execute("PRAGMA quick_check(5)")]
    return judged("pages", "; ".join(said), good=said == ["ok"], advice=_RESTORE)


def _profile(connection: apsw.Connection, profile: str) -> Finding:
    stored = sorted(str(row[0]) for row in connection.execute("SELECT DISTINCT profile FROM vector_profile"))
    others = [name for name in stored if name not in ("", profile)]
    if not others:
        return well("embedder profile", ", ".join(stored) or "no vectors yet")
    advice = "`libctx reindex` embeds everything again; or open the library with the embedder that made them"
    return Finding("embedder profile", "warning", f"vectors of {', '.join(others)}, embedder is {profile}", advice)


def _waiting(connection: apsw.Connection) -> Finding:
    waiting = _count(connection, "SELECT count(*) FROM outbox")
    return judged(
        "waiting",
        f"{waiting:,} events wait to be indexed" if waiting else "everything stored is searchable",
        good=waiting == 0,
        advice="open the library; its indexer goes on where it was stopped",
        otherwise="warning",
    )


def _quarantined(connection: apsw.Connection) -> list[Finding]:
    rows = connection.execute(
        "SELECT owner.collection, owner.key, count(*), min(event.event_id), min(quarantine.error) FROM quarantine"
        " JOIN event USING(uid) JOIN owner ON owner.id = event.thread GROUP BY owner.id ORDER BY 3 DESC LIMIT 20"
    ).fetchall()
    if not rows:
        return [well("quarantined rows", "none")]
    advice = "mend the cause, then retry_failed(event_id) on the thread's governor; the events themselves are safe"
    return [
        Finding("quarantined rows", "warning", f"{count} in {collection}/{key}, e.g. {event}: {error}", advice)
        for collection, key, count, event, error in rows
    ]


def _orphans(connection: apsw.Connection) -> Finding:
    counts = {what: _count(connection, question) for what, question in ORPHANS.items()}
    found = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return judged(
        "orphaned rows",
        found or "none",
        good=not found,
        advice="they are never shown; `libctx export` and import into a new file leaves them behind",
        otherwise="warning",
    )


def _count(connection: apsw.Connection, question: str) -> int:
    return int(connection.execute(question).get)
