"""Saved web pages: captured as they were saved, read as text."""

from collections.abc import Iterator
from pathlib import Path

from libctx_core.errors import InvalidInputError, SourceUnreadableError
from libctx_core.sources import Value
from libctx_sources.material import MaterialAdapter, MaterialSource
from libctx_sources.passages import Passage
from libctx_sources.reading import material, read_file

_UNREADABLE = ("script", "style", "noscript", "template", "svg", "head")
_BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "footer", "form",
        "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table",
        "td", "th", "tr", "ul",
    }
)  # fmt: skip


class HtmlInput(Value):
    """A saved page: a file, or bytes that were fetched by somebody else.

    Attributes:
        path: The file.
        data: The bytes; give one of the two.
        url: Where the page was found; nothing is fetched from there.
    """

    path: Path | None = None
    data: bytes | None = None
    url: str = ""


class HtmlSource(MaterialSource):
    """A saved page.

    Attributes:
        url: Where it was found, if that is known.
        title: Its title.
    """

    url: str = ""
    title: str = ""


def page_text(data: bytes, origin: str) -> tuple[str, str]:
    """Return the title and the readable text of a page.

    Text of scripts, styles and the head is left out; blocks stand on lines of their own.

    Raises:
        SourceUnreadableError: It is binary, or holds no text.
    """
    from bs4 import BeautifulSoup

    if b"\x00" in data and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise SourceUnreadableError(origin, "is binary: it holds NUL bytes")
    soup = BeautifulSoup(data, "html.parser")
    title = soup.title.get_text(" ", strip=True) if soup.title is not None else ""
    for element in soup.find_all(list(_UNREADABLE)):
        element.decompose()
    for element in soup.find_all(list(_BLOCKS)):
        element.insert_before("\n")
        element.insert_after("\n")
    lines = (" ".join(line.split()) for line in soup.get_text().split("\n"))
    text = "\n".join(line for line in lines if line)
    if not text:
        raise SourceUnreadableError(origin, "holds no readable text")
    return title[:500], text


class HtmlAdapter(MaterialAdapter[HtmlInput, HtmlSource]):
    """Captures a saved page; chunks stand in its readable text, not in its markup."""

    input_class = HtmlInput
    name = "html"
    source_class = HtmlSource

    def describe(self, value: HtmlInput, /) -> HtmlSource:
        """Return a captured source of the page.

        Raises:
            InvalidInputError: Neither a path nor bytes were given, or both.
            SourceUnreadableError: It holds no readable text.
        """
        if (value.path is None) == (value.data is None):
            raise InvalidInputError("data", "give either a path or bytes")
        found = material(value.url or "page", value.data or b"") if value.path is None else read_file(value.path)
        title, _ = page_text(found.data, found.origin)
        return self.describe_material(found, capture=True, url=value.url, title=title, description=title or None)

    def passages(self, source: HtmlSource, value: bytes, /) -> Iterator[Passage]:
        """Yield the readable text."""
        yield Passage(page_text(value, source.origin)[1], locator="text", caption=source.title or None)
