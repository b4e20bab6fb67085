"""Each command as people and machines use it."""

import json
import stat
import subprocess
import sys

import pytest

from libctx_core import LibraryOfContext
from libctx_core.cli import app
from libctx_core.governor.statistics import visible_owners


def content(path):
    """Everything of a library that an export must carry, without ids of this file."""
    with LibraryOfContext(path, read_only=True) as library:
        with library.database.read() as connection:
            owners = visible_owners(connection, library.authority)
        threads = {
            (owner.collection, owner.key): (
                owner.user,
                owner.resource_id,
                owner.boundary_id,
                list(library.open_context_governor(owner.key, collection=owner.collection).export()),
                [
                    event.branch
                    for event in library.open_context_governor(owner.key, collection=owner.collection).history()
                ],
            )
            for owner in owners
            if owner.kind == "THREAD"
        }
        books = sorted((hit.text, hit.citation, json.dumps(hit.metadata)) for hit in library.consult("gulls rule", 50))
        team = sorted(hit.text for hit in library.consult("rule", 50, teams=["crew"]))
        return threads, books, team


# -- looking ----------------------------------------------------------------------


def test_stats_counts(libctx, filled):
    counts = libctx("stats", filled, "--json").json()
    assert counts["threads"] == 2
    assert counts["events"] == 9
    assert counts["bytes"] > 0
    assert "events" in libctx("stats", filled).out


def test_threads_lists_and_filters(libctx, filled):
    rows = libctx("threads", filled, "--json").json()
    assert [(row["collection"], row["session"], row["events"]) for row in rows] == [
        ("default", "boat", 8),
        ("other", "s2", 1),
    ]
    assert rows[0]["owner"] == "ada"
    assert [row["session"] for row in libctx("threads", filled, "-c", "other", "--json").json()] == ["s2"]
    assert "boat" in libctx("threads", filled).out


def test_history_shows_events_in_order(libctx, filled):
    events = libctx("history", filled, "boat", "--json").json()
    assert [event["sequence"] for event in events] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert events[4]["content"] == "The hull is RAL 5011."
    assert [event["event_id"] for event in libctx("history", filled, "boat", "-n", "2", "--json").json()] == [
        "t1",
        "f1",
    ]
    shown = libctx("history", filled, "boat").out
    assert "[redacted]" in shown
    assert "555-0100" not in shown


def test_history_of_a_missing_thread_is_an_error(libctx, filled):
    result = libctx("history", filled, "nobody")
    assert result.code == 1
    assert result.err.startswith("error[thread_not_found]:")


def test_consult_finds_across_threads_and_shelves(libctx, filled):
    hits = libctx("consult", filled, "which berth is the mooring", "--json").json()
    assert "C-27" in hits[0]["text"]
    assert "gulls" in libctx("consult", filled, "kittiwakes", "-k", "1").out
    assert "signals" in hits[0]
    assert libctx("consult", filled, "berth", "-k", "1", "--explain", "--json").json()[0]["signals"]
    assert [hit["text"] for hit in libctx("consult", filled, "汉字", "-c", "other", "-k", "1", "--json").json()] == [
        '汉字 and 😀, and a quote: "it\'s"'
    ]


def test_looking_changes_nothing(libctx, filled):
    before = filled.read_bytes()
    for arguments in (["stats"], ["threads"], ["doctor"]):
        assert libctx(*arguments, filled).code in (0, 3)
    libctx("consult", filled, "berth")
    assert filled.read_bytes() == before


# -- export and import ------------------------------------------------------------


def test_export_and_import_lose_nothing(libctx, filled, tmp_path):
    exported, copy = tmp_path / "out.jsonl", tmp_path / "copy.sqlite"
    assert libctx("export", filled, exported).code == 0
    done = libctx("import", copy, exported, "--json").json()
    assert done == {"threads": 2, "events": 9, "books": 2, "known": 0, "searchable": True}
    assert content(copy) == content(filled)
    assert "C-27" in libctx("consult", copy, "mooring berth", "-k", "1").out


def test_an_import_run_again_stores_nothing_twice(libctx, filled, tmp_path):
    exported, copy = tmp_path / "out.jsonl", tmp_path / "copy.sqlite"
    libctx("export", filled, exported)
    libctx("import", copy, exported)
    before = content(copy)
    again = libctx("import", copy, exported, "--json").json()
    assert (again["events"], again["books"], again["known"]) == (0, 0, 11)
    assert content(copy) == before


def test_export_and_import_work_through_pipes(filled, tmp_path):
    libctx = [sys.executable, "-c", "from libctx_core.cli import main; main()"]
    exported = subprocess.run([*libctx, "export", filled], capture_output=True, check=True)
    lines = [json.loads(line) for line in exported.stdout.decode().splitlines()]
    assert {line["format"] for line in lines} == {"libctx.thread.v1", "libctx.event.v1", "libctx.book.v1"}
    subprocess.run(
        [*libctx, "import", tmp_path / "copy.sqlite"], input=exported.stdout, check=True, capture_output=True
    )
    assert content(tmp_path / "copy.sqlite") == content(filled)


def test_an_export_is_for_its_owner_only_and_never_overwrites(libctx, filled, tmp_path):
    exported = tmp_path / "out.jsonl"
    assert libctx("export", filled, exported, "--json").json()["lines"] == 13
    if sys.platform != "win32":
        assert stat.S_IMODE(exported.stat().st_mode) == 0o600
    result = libctx("export", filled, exported)
    assert result.code == 1
    assert result.err.startswith("error[store_path]:")


def test_redacted_words_are_in_no_export(libctx, filled):
    assert "555-0100" not in libctx("export", filled).out


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 2: is not JSON"),
        ("[]", "line 2: has no format"),
        ('{"format": "libctx.event.v9"}', "line 2: has no format"),
        ('{"format": "libctx.event.v1", "collection": "c"}', "line 2: lacks session_id"),
        ('{"format": "libctx.book.v1", "collection": "c", "shelf": "shelf", "record": {"x": 1}}', "record: holds"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(libctx, tmp_path, line, reason):
    source = tmp_path / "in.jsonl"
    source.write_text('{"format": "libctx.thread.v1", "collection": "c", "session_id": "s"}\n' + line + "\n")
    result = libctx("import", tmp_path / "new.sqlite", source)
    assert result.code == 1
    assert reason in result.err


def test_an_import_that_contradicts_the_library_stops(libctx, filled, tmp_path):
    exported = tmp_path / "out.jsonl"
    libctx("export", filled, exported)
    changed = exported.read_text(encoding="utf-8").replace("The mooring is berth C-27.", "The mooring is berth D-04.")
    exported.write_text(changed, encoding="utf-8")
    result = libctx("import", filled, exported)
    assert result.code == 1
    assert result.err.startswith("error[event_conflict]:")


# -- errors and discovery ---------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["stats"], ["threads"], ["history", "s"], ["consult", "x"], ["reindex"], ["export"]]
)
def test_a_missing_file_is_one_line_and_exit_code_1(libctx, tmp_path, command):
    name, *rest = command
    result = libctx(name, tmp_path / "nowhere.sqlite", *rest)
    assert result.code == 1
    assert result.err.startswith("error[store_missing]:")
    assert result.err.count("\n") == 1
    assert not (tmp_path / "nowhere.sqlite").exists()


def test_a_foreign_file_is_refused(libctx, tmp_path):
    path = tmp_path / "notes.sqlite"
    path.write_text("just text, long enough to be looked at as a header of a database file " * 20)
    assert libctx("stats", path).err.startswith("error[foreign_database]:")


def test_wrong_usage_is_exit_code_2(libctx):
    assert libctx("stats").code == 2
    assert libctx("no-such-command").code == 2


def test_the_traceback_is_one_variable_away(libctx, tmp_path, monkeypatch):
    monkeypatch.setenv("LIBCTX_DEBUG", "1")
    assert "Traceback" in libctx("stats", tmp_path / "nowhere.sqlite").err


def test_help_lists_every_command(libctx):
    shown = libctx("--help")
    assert shown.code == 0
    for name in (*app.OWN, "demo", "ingest"):
        assert name in shown.out


def test_a_broken_command_of_a_package_stands_alone(libctx, monkeypatch):
    from importlib.metadata import EntryPoint

    broken = EntryPoint("mine", "no_such_module:command", app.GROUP)
    monkeypatch.setattr(app.importlib.metadata, "entry_points", lambda group: [broken])
    assert "Cannot be loaded" in libctx("--help").out
    result = libctx("mine")
    assert result.code == 1
    assert result.err.startswith("error[command]: mine")
    assert libctx("doctor", "--help").code == 0


def test_a_reader_that_goes_away_is_no_traceback(filled):
    program = "from libctx_core.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "export", str(filled)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=60)
    assert b"Traceback" not in err


def test_help_imports_nothing_heavy():
    program = (
        "import sys\nfrom libctx_core.cli.app import run\nrun(['doctor', '--help'])\n"
        "print(sorted({'numpy', 'tiktoken', 'langchain_core', 'llama_index'} & sys.modules.keys()), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stderr.strip() == "[]"


# -- reindex ----------------------------------------------------------------------


def test_reindex_with_another_embedder_and_back(libctx, filled):
    changed = libctx("reindex", filled, "--embedder", "trigrams", "--json").json()
    assert changed["embedder"].startswith("example-trigrams")
    assert changed["records"] > 0
    assert "libctx reindex" in libctx("doctor", filled).out
    assert libctx("reindex", filled).out.endswith(f"records indexed with {static_profile()}\n")
    assert "C-27" in libctx("consult", filled, "mooring berth", "-k", "1").out


def static_profile():
    from libctx_core.embedding import StaticEmbedder

    return StaticEmbedder().profile_id


def test_reindex_with_an_unknown_embedder_says_which_there_are(libctx, filled):
    result = libctx("reindex", filled, "-e", "nowhere")
    assert result.code == 1
    assert result.err.startswith("error[plugin_not_found]:")
    assert "static" in result.err
