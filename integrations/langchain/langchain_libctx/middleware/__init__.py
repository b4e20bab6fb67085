"""The governor as middleware of `langchain.agents.create_agent`.

Needs the extra ``langchain-libctx[agents]``.
"""

from langchain_libctx.middleware.governor import ContextGovernorMiddleware

__all__ = ["ContextGovernorMiddleware"]
