"""The independent reference: tiktoken's own registry, fed from the cache files of llama-index-core."""

import importlib.util
import logging
import os
from pathlib import Path

import pytest

from libctx_core.tokens import counter as counter_module


def _cache_folder() -> Path | None:
    spec = importlib.util.find_spec("llama_index")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(root) / "core" / "_static" / "tiktoken_cache"
        if folder.is_dir():
            return folder
    return None


@pytest.fixture(scope="session")
def reference():
    """Return a function from an encoding's name to tiktoken's own encoding."""
    folder = _cache_folder()
    if folder is None:
        pytest.skip("llama-index-core, whose vocabulary files are the reference, is not installed")
    import tiktoken

    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        encodings = {name: tiktoken.get_encoding(name) for name in ("cl100k_base", "o200k_base")}
    finally:
        del os.environ["TIKTOKEN_CACHE_DIR"]
        if before is not None:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
    return encodings


@pytest.fixture
def without_vocabulary(tmp_path, monkeypatch, caplog):
    """Take the package's data away; counters made meanwhile are forgotten afterwards."""
    makers = (counter_module._for_model, counter_module._for_encoding, counter_module._encoding_or_bytes)
    for maker in makers:
        maker.cache_clear()
    monkeypatch.setattr("libctx_core.data.FOLDER", tmp_path)
    caplog.set_level(logging.WARNING, "libctx.tokens")
    yield caplog
    for maker in makers:
        maker.cache_clear()
