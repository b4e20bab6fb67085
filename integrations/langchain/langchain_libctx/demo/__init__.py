"""``libctx demo``: a long conversation, governed, beside a plain sliding window."""

from langchain_libctx.demo.command import command

__all__ = ["command"]
