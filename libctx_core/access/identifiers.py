"""Opaque identifiers: exact strings, compared code point by code point."""

import unicodedata
from collections.abc import Iterable

from libctx_core.errors import InvalidIdentifierError
from libctx_core.models import is_storable

MAX_ID_LENGTH = 4096
"""Characters; the default resource id joins a collection, escaped, and a key."""


def check_id(value: object, field: str) -> str:
    """Return `value` if it can be an identifier.

    Only an exact `str` is accepted: a subclass may redefine equality and match anything.
    Nothing is normalised, so two spellings of one character are two identifiers.

    Raises:
        InvalidIdentifierError: Not exactly a string, blank, too long, or not storable
            as UTF-8 (NUL, lone surrogate).
    """
    if type(value) is not str:
        raise InvalidIdentifierError(field, "must be exactly a str")
    if not value or value.isspace():
        raise InvalidIdentifierError(field, "must not be blank")
    if len(value) > MAX_ID_LENGTH:
        raise InvalidIdentifierError(field, f"must not exceed {MAX_ID_LENGTH} characters")
    if not is_storable(value):
        raise InvalidIdentifierError(field, "must not hold a NUL character or a lone surrogate")
    return value


def lint_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """Return a warning for every id that people will confuse with another one.

    Found are ids that are not in Unicode normal form C, that hold invisible format
    characters (zero-width space, direction marks), and pairs that differ by case or
    compatibility form only.
    """
    warnings = []
    seen: dict[str, str] = {}
    for value in ids:
        if unicodedata.normalize("NFC", value) != value:
            warnings.append(f"{value!r} is not in normal form C")
        if any(unicodedata.category(character) == "Cf" for character in value):
            warnings.append(f"{value!r} holds an invisible format character")
        folded = unicodedata.normalize("NFKC", value).casefold()
        twin = seen.setdefault(folded, value)
        if twin != value:
            warnings.append(f"{value!r} looks like {twin!r}")
    return tuple(warnings)
