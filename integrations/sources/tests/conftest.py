"""Files of every kind, and libraries to take them into."""

import json
import subprocess
from pathlib import Path

import pytest
from libctx_sources import Ingestion

from libctx_core.embedding import StaticEmbedder
from libctx_core.search.index import SearchIndex
from libctx_core.store import Database


@pytest.fixture(scope="session")
def embedder():
    return StaticEmbedder()


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "library.db")
    yield database
    database.close()


@pytest.fixture
def ingestion(database, embedder):
    return Ingestion(database, SearchIndex(database), embedder, "team")


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "material"
    folder.mkdir()
    return folder


OPENAI = [
    {
        "title": "Moving house",
        "create_time": 1_700_000_000.0,
        "current_node": "c",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["a"]},
            "a": {
                "id": "a",
                "message": {
                    "author": {"role": "user"},
                    "create_time": 1_700_000_001.5,
                    "content": {"content_type": "text", "parts": ["I moved to Lisbon.", {"name": "map.png"}]},
                },
                "parent": "root",
                "children": ["b", "c"],
            },
            "b": {
                "id": "b",
                "message": {
                    "author": {"role": "assistant"},
                    "content": {"content_type": "text", "parts": ["An answer that was regenerated."]},
                },
                "parent": "a",
                "children": [],
            },
            "c": {
                "id": "c",
                "message": {
                    "author": {"role": "assistant"},
                    "create_time": 1_700_000_002.0,
                    "content": {"content_type": "text", "parts": ["Lisbon is lovely in autumn."]},
                },
                "parent": "a",
                "children": [],
            },
        },
    }
]

CLAUDE = [
    {
        "uuid": "conv-1",
        "name": "Bread",
        "chat_messages": [
            {
                "uuid": "m1",
                "sender": "human",
                "text": "How long must sourdough rest?",
                "created_at": "2024-05-01T10:00:00Z",
                "attachments": [{"file_name": "recipe.pdf", "extracted_content": "flour"}],
            },
            {
                "uuid": "m2",
                "sender": "assistant",
                "text": "",
                "content": [{"type": "text", "text": "Twelve hours in the fridge."}],
                "created_at": "2024-05-01T10:00:05.250000Z",
            },
        ],
    }
]

LOCOMO = [
    {
        "sample_id": "conv-0",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ana", "dia_id": "D1:1", "text": "I adopted a dog.", "blip_caption": "a small brown dog"},
                {"speaker": "Ben", "dia_id": "D1:2", "text": "What is her name?"},
            ],
            "session_2_date_time": "9:00 am on 9 May, 2023",
            "session_2": [{"speaker": "Ana", "dia_id": "D2:1", "text": "Pepper."}],
        },
        "qa": [],
    }
]

NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"language_info": {"name": "python"}},
    "cells": [
        {
            "cell_type": "markdown",
            "metadata": {},
            "source": ["# Harbour model\n", "\n", "Tides as a function of time."],
        },
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [{"output_type": "stream", "text": "unseen output"}],
            "source": "def tide(hour):\n    return 2 * hour\n",
        },
        {"cell_type": "raw", "metadata": {}, "source": "raw"},
    ],
}

PAGE = """<!doctype html><html><head><title>Ferry timetable</title><style>p {color: red}</style></head>
<body><h1>Ferries</h1><script>alert("never")</script><p>The last ferry leaves at <b>23:10</b>.</p>
<ul><li>Mondays: none</li></ul></body></html>"""


@pytest.fixture
def samples(folder) -> dict[str, Path]:
    """One good file of each kind."""
    written = {
        "notes.md": "# Notes\n\nThe boiler is serviced in March.\n\n```python\nprint('kept whole')\n```\n",
        "code.py": "import os\n\n\ndef boiler():\n    '''Heat.'''\n    return os.name\n",
        "plain.txt": "A line.\r\nAnother line — with a dash.\n",
        "page.html": PAGE,
        "book.ipynb": json.dumps(NOTEBOOK),
        "openai.json": json.dumps(OPENAI),
        "claude.json": json.dumps(CLAUDE),
        "locomo.json": json.dumps(LOCOMO),
        "data.json": json.dumps({"boiler": "serviced"}),
    }
    for name, text in written.items():
        (folder / name).write_bytes(text.encode())
    return {name: folder / name for name in written}


def git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-C", str(repository), *arguments],
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout.strip()


@pytest.fixture(name="git")
def git_fixture():
    """Runs git in a repository and returns what it prints."""
    return git


@pytest.fixture
def repository(tmp_path) -> Path:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    (repository / "docs").mkdir()
    (repository / "docs" / "a b.md").write_text("# First\n\nThe pump is blue.\n")
    (repository / "run.py").write_text("def run():\n    return 1\n")
    (repository / "empty.txt").write_text("")
    (repository / "link").symlink_to("run.py")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "first")
    (repository / "docs" / "a b.md").write_text("# Second\n\nThe pump is red.\n")
    git(repository, "commit", "-q", "-a", "-m", "second")
    return repository
