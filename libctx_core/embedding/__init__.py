"""Turning text into vectors: the static table that is always there, and the optional sentence model."""

from libctx_core.embedding.minilm import MiniLMEmbedder
from libctx_core.embedding.static import StaticEmbedder

__all__ = ["MiniLMEmbedder", "StaticEmbedder"]
