"""Passages: stretches of readable text in a source, each with a way to say where it stands."""

from typing import Literal, NamedTuple, TypeAlias

Syntax: TypeAlias = Literal["text", "markdown", "python"]


class Passage(NamedTuple):
    """A stretch of text.

    Attributes:
        text: The text.
        locator: Where it stands in its source: empty for the whole, ``cell 3``, ``message 7``.
        syntax: How it is split.
        speaker: Who said it.
        session: Name of the session it was said in.
        occurred_at: When it was said, seconds since the epoch, UTC.
        caption: Text of attachments.
    """

    text: str
    locator: str = ""
    syntax: Syntax = "text"
    speaker: str | None = None
    session: str | None = None
    occurred_at: float | None = None
    caption: str | None = None


_SYNTAX: dict[str, Syntax] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".py": "python",
    ".pyi": "python",
}


def syntax_of(name: str) -> Syntax:
    """Return how a file of this name is split."""
    return next((syntax for suffix, syntax in _SYNTAX.items() if name.lower().endswith(suffix)), "text")
