"""Suites that tell whether a LlamaIndex vector store does what its callers expect.

`filters` asks 56 questions about metadata filters, `lifecycle` runs 24 checks on
everything else, `restart` 6 on what a store finds when it is opened again, and `stall`
measures how long a store holds up the event loop. Each runs on any
`BasePydanticVectorStore`; ``python -m llama_index_libctx.testing`` prints the scores
of this store and of the peers that are installed.
"""

from llama_index_libctx.testing.report import CheckResult, StoreFactory, SuiteReport

__all__ = ["CheckResult", "StoreFactory", "SuiteReport"]
