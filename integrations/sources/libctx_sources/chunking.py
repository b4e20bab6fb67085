"""Cutting passages at their own seams; every chunk says exactly where it stands."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from libctx_sources.passages import Passage, Syntax

CHUNK_CHARACTERS = 1_200
"""Characters of a chunk at most: about 300 tokens of English."""

Split = Callable[[str], list[tuple[int, str]]]


class Chunk(NamedTuple):
    """A piece of a passage: ``passage.text[start:end] == text``.

    Attributes:
        passage: The passage.
        text: The piece.
        start: Where it starts, in characters.
        end: Where it ends.
        first_line: Line it starts in, from 1.
        last_line: Line it ends in.
    """

    passage: Passage
    text: str
    start: int
    end: int
    first_line: int
    last_line: int

    @property
    def place(self) -> str:
        """Where it stands in its source, e.g. ``L10-14@512-730`` or ``cell 3:L1-4@0-96``."""
        lines = f"L{self.first_line}" if self.first_line == self.last_line else f"L{self.first_line}-{self.last_line}"
        locator = f"{self.passage.locator}:" if self.passage.locator else ""
        return f"{locator}{lines}@{self.start}-{self.end}"


@lru_cache(maxsize=16)
def _splitter(syntax: Syntax, size: int) -> Split:
    from semantic_text_splitter import CodeSplitter, MarkdownSplitter, TextSplitter

    if syntax == "markdown":
        return MarkdownSplitter(size).chunk_indices
    if syntax == "python":
        import tree_sitter_python

        return CodeSplitter(tree_sitter_python.language(), size).chunk_indices
    return TextSplitter(size).chunk_indices


def chunks(passage: Passage, *, size: int = CHUNK_CHARACTERS) -> Iterator[Chunk]:
    """Yield the pieces of a passage in order; only white space falls between them.

    Args:
        passage: What to cut; Markdown at headings and blocks, Python at definitions,
            other text at paragraphs, sentences and words.
        size: Characters of a piece at most.
    """
    text = passage.text
    line, counted = 1, 0
    for start, piece in _splitter(passage.syntax, size)(text):
        if not piece.strip():
            continue
        line += text.count("\n", counted, start)
        counted = start
        yield Chunk(passage, piece, start, start + len(piece), line, line + piece.count("\n"))
