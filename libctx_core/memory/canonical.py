"""Canonical encoding and hashes of the memory family: RFC 8785 over NFC text.

Pure functions; the values they give are part of the public format. What they are made of
(kinds, texts, references, ids) is all text and small integers, for which RFC 8785 and
compact JSON with sorted keys are the same bytes: `canonical_bytes` takes any JSON,
`entry_bytes` and `content_bytes` the faster way.
"""

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import rfc8785

from libctx_core.artifacts.values import ArtifactRef
from libctx_core.errors import InvalidMemoryCandidateError
from libctx_core.sources.values import SourceRef

if TYPE_CHECKING:
    from libctx_core.memory.embedding import EmbeddingProfile
    from libctx_core.memory.values import MemoryContent

RefT = TypeVar("RefT", SourceRef, ArtifactRef)

ENTRY_PREFIX = b"powercontext:entry-content:v1\0"
EMBEDDING_PREFIX = b"powercontext:embedding-content:v1\0"

MAX_ENTRY_TEXT_BYTES = 8_192
"""UTF-8 bytes of an entry's text after normalisation."""

MAX_KIND_LENGTH = 128
MAX_REASON_LENGTH = 512
"""Code points of the reason of a change after normalisation."""

MAX_MEMORY_ID_LENGTH = 128


def normalise(value: object) -> object:
    """Return JSON with every string, keys included, in Unicode normal form C.

    Raises:
        InvalidMemoryCandidateError: Two keys of an object become equal (``canonical``).
        TypeError: The value holds something JSON cannot express.
    """
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list | tuple):
        return [normalise(item) for item in value]
    if isinstance(value, dict):
        result: dict[str, object] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"an object key must be text, not {type(key).__name__}")
            name = unicodedata.normalize("NFC", key)
            if name in result:
                raise InvalidMemoryCandidateError("canonical", "two keys of an object are equal after normalisation")
            result[name] = normalise(item)
        return result
    raise TypeError(f"{type(value).__name__} cannot be expressed as JSON")


def canonical_bytes(value: object) -> bytes:
    """Return the canonical encoding of any JSON value.

    Raises:
        InvalidMemoryCandidateError: It has no canonical form (``canonical``).
        TypeError: It holds something JSON cannot express.
    """
    plain = normalise(value)
    try:
        encoded: bytes = rfc8785.dumps(plain)  # type: ignore[arg-type]  # its own recursive alias of JSON
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise InvalidMemoryCandidateError("canonical", "the value has no canonical form") from error
    return encoded


_quote = json.encoder.encode_basestring
_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def _plain_bytes(value: object) -> bytes:
    return _encode(value).encode()


def normalise_text(text: str) -> str:
    """Return an entry's text in normal form C, without white space around it.

    Raises:
        InvalidMemoryCandidateError: It is blank, or over 8,192 UTF-8 bytes, or cannot be
            stored as UTF-8 (``canonical``).
    """
    plain = unicodedata.normalize("NFC", text).strip()
    if not plain:
        raise InvalidMemoryCandidateError("canonical", "the text is blank")
    try:
        size = len(plain) if plain.isascii() else len(plain.encode())
    except UnicodeEncodeError as error:
        raise InvalidMemoryCandidateError("canonical", "the text holds a lone surrogate") from error
    if size > MAX_ENTRY_TEXT_BYTES:
        raise InvalidMemoryCandidateError(
            "canonical",
            f"the text has {size} bytes; at most {MAX_ENTRY_TEXT_BYTES} are allowed, store a source instead",
        )
    if "\x00" in plain:
        raise InvalidMemoryCandidateError("canonical", "the text holds a NUL character")
    return plain


def normalise_kind(kind: str) -> str:
    """Return a kind in normal form C, without white space around it.

    Raises:
        InvalidMemoryCandidateError: It is blank or over 128 characters (``identity-kind``).
    """
    plain = unicodedata.normalize("NFC", kind).strip()
    if not plain or len(plain) > MAX_KIND_LENGTH or not plain.isprintable():
        raise InvalidMemoryCandidateError(
            "identity-kind", f"a kind is 1 to {MAX_KIND_LENGTH} printable characters, this one has {len(plain)}"
        )
    return plain


def normalise_reason(reason: str | None) -> str | None:
    """Return the reason of a change in normal form C; None if it is blank.

    Raises:
        InvalidMemoryCandidateError: It is over 512 code points (``canonical``).
    """
    plain = unicodedata.normalize("NFC", reason).strip() if reason else ""
    if len(plain) > MAX_REASON_LENGTH:
        raise InvalidMemoryCandidateError(
            "canonical", f"the reason has {len(plain)} characters; at most {MAX_REASON_LENGTH} are allowed"
        )
    return plain or None


def check_memory_id(value: str) -> str:
    """Return an entry or version id that may stand in a manifest.

    Raises:
        InvalidMemoryCandidateError: It is empty, not ASCII, or over 128 characters (``identity-kind``).
    """
    if not value or not value.isascii() or len(value) > MAX_MEMORY_ID_LENGTH:
        raise InvalidMemoryCandidateError(
            "identity-kind", f"an id is 1 to {MAX_MEMORY_ID_LENGTH} ASCII characters, this one has {len(value)}"
        )
    return value


def normalise_refs(refs: Iterable[RefT]) -> tuple[RefT, ...]:
    """Return references sorted by their canonical bytes, each once."""
    found = tuple(refs)
    if len(found) < 2:
        return found
    by_bytes = {_plain_bytes(_ref_value(ref)): ref for ref in found}
    return tuple(by_bytes[key] for key in sorted(by_bytes))


def _ref_value(ref: SourceRef | ArtifactRef) -> dict[str, str | int]:
    if isinstance(ref, SourceRef):
        return {
            "source_id": unicodedata.normalize("NFC", ref.source_id),
            "source_type": unicodedata.normalize("NFC", ref.source_type),
        }
    return {
        "artifact_id": unicodedata.normalize("NFC", ref.artifact_id),
        "family": unicodedata.normalize("NFC", ref.family),
        "revision": ref.revision,
    }


def entry_bytes(
    kind: str, text: str, sources: Sequence[SourceRef] = (), artifacts: Sequence[ArtifactRef] = ()
) -> bytes:
    """Return the canonical encoding of what an entry says and stands on.

    Args:
        kind: Its kind, normalised or not.
        text: Its text, normalised or not.
        sources: Sources it stands on, in any order.
        artifacts: Artifact revisions it stands on, in any order.
    """
    artifact_refs = _encode([_ref_value(ref) for ref in normalise_refs(artifacts)]) if artifacts else "[]"
    source_refs = _encode([_ref_value(ref) for ref in normalise_refs(sources)]) if sources else "[]"
    return (
        f'{{"artifact_refs":{artifact_refs},"kind":{_quote(normalise_kind(kind))},'
        f'"source_refs":{source_refs},"text":{_quote(normalise_text(text))}}}'
    ).encode()


def digest_entry(encoded: bytes) -> str:
    """Return the content hash of an entry from its canonical bytes, 64 hex digits."""
    return hashlib.sha256(ENTRY_PREFIX + encoded).hexdigest()


def entry_content_hash(
    kind: str, text: str, sources: Sequence[SourceRef] = (), artifacts: Sequence[ArtifactRef] = ()
) -> str:
    """Return the content hash of an entry: identity, version and revision do not count."""
    return digest_entry(entry_bytes(kind, text, sources, artifacts))


def content_bytes(content: "MemoryContent") -> bytes:
    """Return the canonical encoding of a revision's manifest and changes."""
    entries = [
        {
            "entry_content_hash": entry.entry_content_hash,
            "entry_id": entry.entry_id,
            "entry_version_id": entry.entry_version_id,
            "state": entry.state,
        }
        for entry in content.manifest.entries
    ]
    changes = [
        {
            "entry_id": change.entry_id,
            "from_entry_version_id": change.from_entry_version_id,
            "op": change.op,
            "reason": change.reason,
            "to_entry_version_id": change.to_entry_version_id,
        }
        for change in content.changes
    ]
    return _plain_bytes(
        {
            "changes": changes,
            "manifest": {"entries": entries, "format": content.manifest.format},
            "schema": content.schema_version,
        }
    )


def memory_content_hash(content: "MemoryContent") -> str:
    """Return the content hash of a revision, 64 hex digits."""
    return hashlib.sha256(content_bytes(content)).hexdigest()


def embedding_content_hash(profile: "EmbeddingProfile", content_hash: str) -> str:
    """Return the hash under which a vector of an entry is valid.

    Args:
        profile: What made the vector.
        content_hash: Content hash of the entry it was made from.
    """
    value = {
        "entry_content_hash": content_hash,
        "profile": {
            "dimension": profile.dimension,
            "distance": profile.distance,
            "model": unicodedata.normalize("NFC", profile.model),
            "normalization": profile.normalization,
            "profile_id": unicodedata.normalize("NFC", profile.profile_id),
        },
    }
    return hashlib.sha256(EMBEDDING_PREFIX + _plain_bytes(value)).hexdigest()
