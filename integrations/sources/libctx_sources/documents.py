"""Documents of other frameworks, captured so that equal ones can be given back."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import JsonValue

from libctx_core.errors import LibctxError, SourceTooLargeError, SourceUnreadableError
from libctx_core.models import is_storable
from libctx_core.sources import Source, SourceMaterialization, Value
from libctx_sources.passages import Passage
from libctx_sources.reading import MAX_MATERIAL_BYTES, decode, material, short_name


class CapturedDocument(Value):
    """A document as it was captured.

    Attributes:
        text: Its text.
        metadata: Its metadata.
        identity: Its id.
        native: The framework's own JSON, where text, metadata and id are not all of it.
    """

    text: str
    metadata: dict[str, JsonValue]
    identity: str | None = None
    native: dict[str, JsonValue] | None = None


class DocumentsSource(Source):
    """Captured documents of a framework.

    Attributes:
        origin: What they are called together.
        digest: SHA-256 over all of them.
        documents: The documents, in order.
    """

    origin: str
    digest: str
    documents: tuple[CapturedDocument, ...]


def captured(
    text: object, metadata: object, identity: object, origin: str, *, native: object = None
) -> CapturedDocument:
    """Return a document if it can be given back as it is.

    Args:
        text: Its text.
        metadata: Its metadata.
        identity: Its id.
        origin: What it is called, for errors.
        native: The framework's own JSON.

    Raises:
        SourceUnreadableError: It has no text, or holds something JSON cannot express.
    """
    if not isinstance(text, str) or not isinstance(metadata, Mapping):
        raise SourceUnreadableError(origin, "gave something that is no document")
    if not is_storable(text):
        raise SourceUnreadableError(origin, "a document's text holds a NUL character or a lone surrogate")
    return CapturedDocument(
        text=text,
        metadata=_through_json(dict(metadata), origin),
        identity=None if identity is None else str(identity),
        native=None if native is None else _through_json(native, origin),
    )


def _through_json(value: Any, origin: str) -> Any:
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise SourceUnreadableError(origin, "a document holds something JSON cannot express") from error
    if plain != value:
        raise SourceUnreadableError(origin, "a document would change on its way through JSON")
    return plain


def describe_documents(documents: Iterable[CapturedDocument], origin: str) -> dict[str, Any]:
    """Return the fields of the source of some documents.

    Raises:
        SourceUnreadableError: There are none, or what gives them failed.
        SourceTooLargeError: They are too large together; no further one is asked for.
    """
    kept: list[CapturedDocument] = []
    written: list[bytes] = []
    size = 0
    try:
        for document in documents:
            kept.append(document)
            written.append(document.model_dump_json().encode())
            size += len(written[-1])
            if size > MAX_MATERIAL_BYTES:
                raise SourceTooLargeError(origin, size, MAX_MATERIAL_BYTES)
    except LibctxError:
        raise
    except UnicodeEncodeError as error:
        raise SourceUnreadableError(origin, "a document cannot be written as UTF-8") from error
    except Exception as error:  # a loader or reader may raise anything
        raise SourceUnreadableError(origin, f"failed with {type(error).__name__}") from error
    if not kept:
        raise SourceUnreadableError(origin, "gave no documents")
    digest = material(origin, b"".join(written)).digest
    return {
        "name": short_name(origin, digest),
        "materialization": SourceMaterialization.CAPTURED,
        "origin": origin,
        "digest": digest,
        "documents": tuple(kept),
    }


def document_passages(source: DocumentsSource) -> Iterator[Passage]:
    """Yield the text of every document that has any, located by its number from 1."""
    for number, document in enumerate(source.documents, start=1):
        if document.text.strip():
            text = decode(document.text.encode(), source.origin)
            yield Passage(text, locator=f"document {number}")
