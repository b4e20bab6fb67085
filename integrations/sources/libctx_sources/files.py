"""Text and files: the plainest sources."""

from collections.abc import Iterator
from pathlib import Path

from libctx_core.errors import SourceUnreadableError
from libctx_core.sources import Value
from libctx_sources.material import MaterialAdapter, MaterialSource
from libctx_sources.passages import Passage, Syntax, syntax_of
from libctx_sources.reading import decode, material, read_file


class TextInput(Value):
    """Text to be captured.

    Attributes:
        text: The text.
        origin: What it is called; a newer text of the same name supersedes it.
        syntax: How it is split.
    """

    text: str
    origin: str
    syntax: Syntax = "text"


class TextSource(MaterialSource):
    """Captured text."""

    syntax: Syntax = "text"


class TextAdapter(MaterialAdapter[TextInput, TextSource]):
    """Captures text that a program hands over."""

    input_class = TextInput
    name = "text"
    source_class = TextSource

    def describe(self, value: TextInput, /) -> TextSource:
        """Return a captured source of the text.

        Raises:
            SourceUnreadableError: It is blank, or cannot be written as UTF-8.
        """
        try:
            data = value.text.encode()
        except UnicodeEncodeError as error:
            raise SourceUnreadableError(value.origin, "the text holds a lone surrogate") from error
        decode(data, value.origin)
        return self.describe_material(material(value.origin, data), capture=True, syntax=value.syntax)

    def passages(self, source: TextSource, value: bytes, /) -> Iterator[Passage]:
        """Yield the whole text."""
        yield Passage(decode(value, source.origin), syntax=source.syntax)


class FileInput(Value):
    """A file.

    Attributes:
        path: The file.
        capture: Keep its bytes; otherwise it is read again where it lies.
    """

    path: Path
    capture: bool = True


class FileSource(MaterialSource):
    """A file, captured or referenced."""


class FileAdapter(MaterialAdapter[FileInput, FileSource]):
    """Captures or references a file of any kind; only text in UTF-8 or UTF-16 has passages."""

    input_class = FileInput
    name = "file"
    source_class = FileSource

    def describe(self, value: FileInput, /) -> FileSource:
        """Return the source of a file; see `read_file` for what it refuses."""
        return self.describe_material(read_file(value.path), capture=value.capture)

    def passages(self, source: FileSource, value: bytes, /) -> Iterator[Passage]:
        """Yield the whole text, split by the kind of file its name tells.

        Raises:
            SourceUnreadableError: It is binary, or in an unknown encoding.
        """
        yield Passage(decode(value, source.origin), syntax=syntax_of(source.origin))
