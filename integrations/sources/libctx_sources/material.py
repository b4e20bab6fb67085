"""The base of sources that stand for bytes, and of the adapters that read them back."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Generic, Protocol, TypeVar, runtime_checkable

from libctx_core.sources import BaseSourceAdapter, Source, SourceMaterialization
from libctx_sources.passages import Passage
from libctx_sources.reading import Material, reread, short_name

InputT = TypeVar("InputT")


class MaterialSource(Source):
    """Bytes found somewhere, captured or referenced.

    Attributes:
        origin: Where they were found; a newer version of the same origin supersedes this one.
        digest: Their SHA-256, 64 hex digits.
        size: How many they are.
        content: The bytes themselves, if they were captured.
    """

    origin: str
    digest: str
    size: int
    content: bytes | None = None


MaterialT = TypeVar("MaterialT", bound=MaterialSource)


@runtime_checkable
class Readable(Protocol):
    """An adapter whose sources hold readable text."""

    def passages(self, source: Source, value: object, /) -> Iterator[Passage]:
        """Yield the passages of a source.

        Args:
            source: The source.
            value: What the adapter's `load` returned for it.
        """
        ...


class MaterialAdapter(BaseSourceAdapter[InputT, MaterialT, bytes], Generic[InputT, MaterialT]):
    """An adapter of sources that stand for bytes; `load` gives them back byte for byte."""

    source_class: type[MaterialT]
    description: ClassVar[str | None] = None

    def describe_material(self, found: Material, *, capture: bool, **fields: object) -> MaterialT:
        """Return the source of some bytes.

        Args:
            found: The bytes.
            capture: Keep them; otherwise only their fingerprint is kept.
            fields: Further fields of the source class.
        """
        given = {
            "name": short_name(found.origin, found.digest) + ("" if capture else ".ref"),
            "description": self.description,
            **fields,
        }
        return self.source_class(
            materialization=SourceMaterialization.CAPTURED if capture else SourceMaterialization.REFERENCED,
            origin=found.origin,
            digest=found.digest,
            size=len(found.data),
            content=found.data if capture else None,
            **given,
        )

    def load(self, source: MaterialT, /) -> bytes:
        """Return the bytes; a referenced file is read again and must not have changed.

        Raises:
            SourceVanishedError: It was referenced and is gone.
            SourceChangedError: It was referenced and holds other bytes now.
        """
        return reread(source.origin, source.digest) if source.content is None else source.content

    @abstractmethod
    def passages(self, source: MaterialT, value: bytes, /) -> Iterator[Passage]:
        """Yield the passages of a source."""
