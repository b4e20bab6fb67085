"""File names of storage keys: readable where that is safe, reversible everywhere, never a path."""

import hashlib
import re
import string
from typing import Final

MAX_NAME_BYTES: Final = 200
"""Longer names are cut and made unique by a digest; file systems allow 255 with suffixes."""

_SAFE: Final = frozenset(string.ascii_letters + string.digits + "_.-")
_PLAIN: Final = re.compile(rf"[A-Za-z0-9_-](?:[A-Za-z0-9_.-]{{0,{MAX_NAME_BYTES - 2}}}[A-Za-z0-9_-])?")
"""Keys that are their own names: nothing to escape, no dot at an end, short enough."""

_DIGEST_MARK: Final = "%~"
_PREFIX: Final = 100
_RESERVED: Final = frozenset(
    {"CON", "PRN", "AUX", "NUL"} | {f"{device}{number}" for device in ("COM", "LPT") for number in range(10)}
)
"""Names that are devices on Windows, with any extension."""


def name_of(key: str, *, fold_case: bool = False) -> str:
    """Return the file name of a key, without suffix.

    Args:
        key: The key.
        fold_case: Escape capitals, for file systems that do not tell them from small letters.
    """
    if _PLAIN.fullmatch(key) and not fold_case and key.split(".", 1)[0].upper() not in _RESERVED:
        return key
    name = "".join(_escaped(key, index, fold_case=fold_case) for index in range(len(key)))
    if key.split(".", 1)[0].upper() in _RESERVED and not name.startswith("%"):
        name = _percent(key[0]) + name[1:]
    if len(name) > MAX_NAME_BYTES:
        return name[:_PREFIX].rstrip("%") + _DIGEST_MARK + hashlib.sha256(key.encode()).hexdigest()
    return name


def _escaped(key: str, index: int, *, fold_case: bool) -> str:
    character = key[index]
    unsafe = (
        character not in _SAFE
        or (character == "." and index in {0, len(key) - 1})
        or (fold_case and character in string.ascii_uppercase)
    )
    return _percent(character) if unsafe else character


def _percent(character: str) -> str:
    return "".join(f"%{byte:02x}" for byte in character.encode())


def is_shortened(name: str) -> bool:
    """Return whether a name was cut, so that its key stands in a file beside it."""
    return _DIGEST_MARK in name


def key_of(name: str, *, fold_case: bool = False) -> str | None:
    """Return the key of an uncut file name, or None if no key is spelled like that."""
    parts = name.split("%")
    raw = bytearray(parts[0].encode("utf-8", "surrogateescape"))
    for part in parts[1:]:
        try:
            raw.append(int(part[:2], 16))
        except ValueError:
            return None
        raw += part[2:].encode("utf-8", "surrogateescape")
    try:
        key = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return key if name == name_of(key, fold_case=fold_case) else None
