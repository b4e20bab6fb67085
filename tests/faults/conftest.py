"""Embedders that fail in every way, and an indexer that does not keep the tests waiting."""

import threading
import time

import pytest

from libctx_core.governor import indexer
from tests.faults.children import Lengths, open_library


class Moody(Lengths):
    """Refuses some texts, can hang, and remembers when it was asked for what."""

    def __init__(self, poison="poison"):
        self.poison = poison
        self.calls = []
        self.entered = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def embed_documents(self, texts, /):
        self.calls.append((time.monotonic(), list(texts)))
        self.entered.set()
        self.may_go_on.wait(60)
        if self.poison and any(self.poison in text for text in texts):
            raise ValueError(f"cannot embed {texts!r}")
        return super().embed_documents(texts)

    def hang(self):
        """Stop in the next call until `may_go_on` is set."""
        self.entered.clear()
        self.may_go_on.clear()


@pytest.fixture
def impatient(monkeypatch):
    """Short pauses, so that five attempts take no seconds."""
    monkeypatch.setattr(indexer, "BACKOFF", 0.01)
    monkeypatch.setattr(indexer, "IDLE_POLL", 0.02)
    monkeypatch.setattr(indexer, "CLOSE_PATIENCE", 0.3)


@pytest.fixture
def moody():
    embedder = Moody()
    yield embedder
    embedder.may_go_on.set()


@pytest.fixture
def library(tmp_path, moody, impatient):
    with open_library(tmp_path / "library.sqlite", embedder=moody) as opened:
        yield opened
        moody.may_go_on.set()


@pytest.fixture
def governor(library):
    return library.open_context_governor("s", token_budget=2_000)
