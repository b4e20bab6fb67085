"""Counting needs no network, changes nothing outside itself, and costs nothing until used."""

import os
import subprocess
import sys

CHILD = """
import os, socket, sys

def refuse(*args, **kwargs):
    raise AssertionError("network")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
before = dict(os.environ)

from libctx_core.tokens import TokenCounter, truncate_text
models = ("gpt-4o", "gpt-4", "claude-sonnet-4-5", "anything", None)
counters = [TokenCounter.for_model(model) for model in models]
assert not {"numpy", "tiktoken"} & set(sys.modules), "loaded before the first count"

for counter in counters:
    assert counter.count("hello world") >= 2
    truncate_text("word " * 5_000, 100, counter)

import tiktoken.registry
assert not tiktoken.registry.ENCODINGS, tiktoken.registry.ENCODINGS
assert dict(os.environ) == before
assert "numpy" not in sys.modules
print("isolated")
"""


def test_no_network_no_environment_no_registry(tmp_path):
    """In a fresh process whose tiktoken cache is empty and whose sockets refuse."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        capture_output=True,
        text=True,
        env={**os.environ, "TIKTOKEN_CACHE_DIR": str(tmp_path)},
        timeout=120,
    )
    assert done.stdout.strip() == "isolated", done.stderr
    assert not list(tmp_path.iterdir())
