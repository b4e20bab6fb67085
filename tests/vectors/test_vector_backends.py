"""Every built-in way to search vectors passes the suite that third parties run."""

import pytest

from libctx_core.search.vectors import VectorIndex
from libctx_core.testing.vectors import VectorIndexSuite


class TestMatrix(VectorIndexSuite):
    def make_index(self):
        return VectorIndex()


class TestSqliteVec(VectorIndexSuite):
    def make_index(self):
        return VectorIndex(backend="sqlite-vec")


class TestBitCodes(VectorIndexSuite):
    def make_index(self):
        return VectorIndex(cache_bytes=1)


class TestBlocksFromTheFile(VectorIndexSuite):
    @pytest.fixture(autouse=True)
    def codes_find_nothing(self, monkeypatch):
        monkeypatch.setattr("libctx_core.search.calibration.TARGET_RECALL", 2.0)

    def make_index(self):
        return VectorIndex(cache_bytes=1)
