"""Search: one index, one ranker, one entry point for every caller.

`SearchIndex` (`libctx_core.search.index`) writes, `Searcher`
(`libctx_core.search.searcher`) reads; the latter loads numpy, so import it where it is
used.
"""

from libctx_core.search.request import RecordHit, SearchRequest

__all__ = ["RecordHit", "SearchRequest"]
