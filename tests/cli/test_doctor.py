"""What the doctor sees, and that it says what to do."""

import sys

import apsw
import pytest

from libctx_core import LibraryOfContext
from libctx_core.cli import installation


def findings(result):
    return {finding["check"]: finding for finding in result.json()}


@pytest.fixture
def damaged(filled):
    """Run statements on a library behind its back."""

    def damage(*statements):
        connection = apsw.Connection(str(filled))
        for statement in ("PRAGMA foreign_keys=OFF", *statements):
            connection.execute(statement)
        connection.close()
        return filled

    return damage


def test_the_installation_is_well(libctx, monkeypatch):
    monkeypatch.setenv("LIBCTX_PLUGINS", "example")
    result = libctx("doctor", "--json")
    assert result.code == 0
    states = {check: finding["state"] for check, finding in findings(result).items()}
    assert states == {
        **dict.fromkeys(states, "ok"),
        **dict.fromkeys(("binding", "extension", "vocabularies", "embedder", "plugin example", "one turn"), "ok"),
    }


def test_a_library_is_well(libctx, filled):
    found = findings(libctx("doctor", filled, "--json"))
    for check in ("file", "permissions", "space", "schema", "pages", "waiting", "quarantined rows", "orphaned rows"):
        assert found[check]["state"] == "ok", found[check]
    assert "libctx-static-256" in found["embedder profile"]["found"]


def test_every_fault_says_what_to_do(libctx, tmp_path):
    result = libctx("doctor", tmp_path / "nowhere.sqlite", "--json")
    assert result.code == 3
    bad = [finding for finding in result.json() if finding["state"] != "ok"]
    assert bad
    assert all(finding["advice"] for finding in bad)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps permissions elsewhere")
def test_loose_permissions_are_a_fault(libctx, filled):
    filled.chmod(0o644)
    result = libctx("doctor", filled, "--json")
    assert result.code == 3
    assert "chmod 600" in findings(result)["permissions"]["advice"]


def test_a_newer_schema_is_a_fault(libctx, damaged):
    path = damaged("UPDATE schema_component SET version = 99 WHERE name = 'events'")
    result = libctx("doctor", path, "--json")
    assert result.code == 3
    assert "newer_schema" in findings(result)["schema"]["found"]


def test_quarantined_rows_are_named_with_their_cure(libctx, damaged):
    path = damaged(
        "INSERT INTO quarantine(uid, thread, sequence, attempts, error, at)"
        " SELECT uid, thread, sequence, 8, 'ValueError: no vector', 0 FROM event WHERE event_id = 'u1'"
    )
    found = findings(libctx("doctor", path, "--json"))["quarantined rows"]
    assert found["state"] == "warning"
    assert "default/boat" in found["found"]
    assert "u1" in found["found"]
    assert "retry_failed" in found["advice"]


def test_orphaned_rows_are_counted(libctx, damaged):
    path = damaged("INSERT INTO vector(slot, data) VALUES(1, zeroblob(1024))")
    found = findings(libctx("doctor", path, "--json"))["orphaned rows"]
    assert found["found"] == "1 vectors without a record"
    assert found["state"] == "warning"


def test_waiting_events_are_counted(libctx, tmp_path):
    path = tmp_path / "library.sqlite"
    with LibraryOfContext(path) as library:
        library.open_context_governor("s").prepare("hello")
        assert library.flush()
    connection = apsw.Connection(str(path))
    connection.execute("INSERT INTO outbox(uid, thread, sequence) SELECT uid, thread, sequence FROM event")
    connection.close()
    assert findings(libctx("doctor", path, "--json"))["waiting"]["found"].startswith("1 events wait")


def test_vectors_of_another_embedder_ask_for_a_reindex(libctx, damaged):
    path = damaged("UPDATE vector_profile SET profile = 'some-other-model'")
    found = findings(libctx("doctor", path, "--json"))["embedder profile"]
    assert found["state"] == "warning"
    assert "libctx reindex" in found["advice"]


def test_a_damaged_file_is_a_fault(libctx, filled):
    with LibraryOfContext(filled) as library:
        library.database.truncate_wal()
    content = bytearray(filled.read_bytes())
    content[4096 * 2 : 4096 * 6] = b"\xff" * 4096 * 4
    filled.write_bytes(content)
    result = libctx("doctor", filled, "--json")
    assert result.code == 3
    assert any(finding["state"] == "fault" for finding in result.json())


def test_a_broken_plugin_is_a_warning(monkeypatch):
    from importlib.metadata import EntryPoint

    from libctx_core.plugins import Plugins, loader

    monkeypatch.setattr(loader, "installed", lambda: (EntryPoint("gone", "no_such_module", "libctx"),))
    (finding,) = installation.plugin_findings(Plugins.load(environment={}))
    assert finding.state == "warning"
    assert "LIBCTX_PLUGINS" in finding.advice


def test_the_table_is_for_people(libctx, filled):
    shown = libctx("doctor", filled).out
    assert "what to do" in shown
    assert "one turn" in shown
