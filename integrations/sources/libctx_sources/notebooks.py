"""Jupyter notebooks: captured whole, read cell by cell."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from libctx_core.errors import SourceUnreadableError
from libctx_core.sources import Value
from libctx_sources.material import MaterialAdapter, MaterialSource
from libctx_sources.passages import Passage, Syntax
from libctx_sources.reading import parsed_json, read_file


class NotebookInput(Value):
    """A notebook file.

    Attributes:
        path: The file, ``.ipynb``.
    """

    path: Path


class NotebookSource(MaterialSource):
    """A notebook.

    Attributes:
        language: Language of its code cells.
        cells: How many cells it has.
    """

    language: str = ""
    cells: int = 0


def _cells(data: bytes, origin: str) -> tuple[str, list[dict[str, Any]]]:
    """Return the language and the cells of a notebook of format 4."""
    book = parsed_json(data, origin)
    if not isinstance(book, dict) or book.get("nbformat") != 4:
        raise SourceUnreadableError(origin, "is no notebook of format 4; convert it with nbformat")
    cells = book.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise SourceUnreadableError(origin, "has no list of cells")
    metadata = book.get("metadata")
    info = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) else "python", cells


def _text(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    if isinstance(source, list):
        return "".join(part for part in source if isinstance(part, str))
    return source if isinstance(source, str) else ""


class NotebookAdapter(MaterialAdapter[NotebookInput, NotebookSource]):
    """Captures a notebook; outputs of cells are kept and not searched."""

    input_class = NotebookInput
    name = "notebook"
    source_class = NotebookSource

    def describe(self, value: NotebookInput, /) -> NotebookSource:
        """Return a captured source of the notebook.

        Raises:
            SourceUnreadableError: It is no notebook of format 4.
        """
        found = read_file(value.path)
        language, cells = _cells(found.data, found.origin)
        return self.describe_material(found, capture=True, language=language, cells=len(cells))

    def passages(self, source: NotebookSource, value: bytes, /) -> Iterator[Passage]:
        """Yield the text of every Markdown and code cell, located by its number from 1."""
        language, cells = _cells(value, source.origin)
        code: Syntax = "python" if language.startswith("python") else "text"
        for number, cell in enumerate(cells, start=1):
            text = _text(cell)
            if cell.get("cell_type") in ("markdown", "code") and text.strip():
                yield Passage(
                    text, locator=f"cell {number}", syntax="markdown" if cell["cell_type"] == "markdown" else code
                )
