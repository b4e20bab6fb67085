"""A library with a bit of everything, and a way to run the command line on it."""

import json
from types import SimpleNamespace

import pytest

from libctx_core import LibraryOfContext
from libctx_core.cli.app import run


@pytest.fixture
def libctx(capsys):
    """Run ``libctx`` in this process; returns exit code, standard output, standard error."""

    def call(*arguments):
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return SimpleNamespace(code=code, out=out, err=err, json=lambda: json.loads(out))

    return call


@pytest.fixture
def filled(tmp_path):
    """A library file with two threads in two collections, a shelf, a revision, a tombstone and an enrolment."""
    path = tmp_path / "library.sqlite"
    with LibraryOfContext(path) as library:
        fill(library)
        assert library.flush(30)
    return path


def fill(library):
    from libctx_core.access.metadata import ResourceMetadata

    first = library.open_context_governor("boat", token_budget=1000, owner="ada")
    first.protect("Never open the seacock while the engine runs.", label="safety", event_id="p1")
    first.prepare("The mooring is berth C-27.", event_id="u1", metadata={"place": "harbour", "tags": ["a", "b"]})
    first.commit("Noted: C-27.", event_id="a1")
    first.record("user", "My phone number is 555-0100.", event_id="u2")
    first.redact("u2")
    first.record("user", "The hull is blue.", event_id="u3", occurred_at=1_700_000_000.0, speaker="Ada")
    first.amend("u3", "The hull is steel blue.")
    first.amend("u3", "The hull is RAL 5011.")
    first.commit(
        [
            {"type": "text", "text": "Looking."},
            {"type": "tool_call", "id": "c1", "name": "look", "args": {"at": "hull"}},
        ],
        event_id="a2",
        native={"provider": "x", "n": 1},
    )
    first.record("tool", [{"type": "tool_result", "tool_call_id": "c1", "content": "blue"}], event_id="t1")
    first.record("user", "And if we had taken berth D-04?", event_id="f1", parent_event_id="a1")
    second = library.open_context_governor(
        "s2", collection="other", resource=ResourceMetadata("THREAD", "res-1", "boundary-1")
    )
    second.prepare('汉字 and 😀, and a quote: "it\'s"', event_id="x1", protected=True, importance=0.9)
    second.release("x1")
    library.shelve("Kittiwakes are gulls.", book_id="b1", title="Birds", metadata={"shelf": 3})
    library.shelve("Team rule.", book_id="b2", team="crew")
