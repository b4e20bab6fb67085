"""Counting and cutting text in tokens: one counter, one truncation, no network."""

from libctx_core.tokens.bounds import Margin, Utf8Bound
from libctx_core.tokens.counter import TokenCounter
from libctx_core.tokens.truncation import MARKER, Where, truncate_text

__all__ = ["MARKER", "Margin", "TokenCounter", "Utf8Bound", "Where", "truncate_text"]
