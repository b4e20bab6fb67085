"""Resource kinds: the standard ones, and the open set an access authority accepts."""

import re
from collections.abc import Iterator
from enum import StrEnum

from libctx_core.errors import InvalidIdentifierError

_KIND = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


class ResourceKind(StrEnum):
    """The kinds this library protects itself; plugins register further names."""

    CONTEXT_WINDOW = "CONTEXT_WINDOW"
    TODO_LIST = "TODO_LIST"
    BANKED_CONTEXT = "BANKED_CONTEXT"
    THREAD = "THREAD"
    COLLECTION = "COLLECTION"
    SOURCE = "SOURCE"
    MEMORY = "MEMORY"
    VECTOR_COLLECTION = "VECTOR_COLLECTION"


def check_kind(value: object, field: str = "resource_kind") -> str:
    """Return `value` as a plain string if it is spelled like a kind, e.g. ``CHAT_HISTORY``.

    Raises:
        InvalidIdentifierError: It is not 1 to 64 of ``A-Z``, ``0-9`` and ``_``.
    """
    if type(value) is not str and not isinstance(value, ResourceKind):
        raise InvalidIdentifierError(field, "must be exactly a str or a ResourceKind")
    name = str(value)
    if _KIND.fullmatch(name) is None:
        raise InvalidIdentifierError(field, "must be up to 64 of A-Z, 0-9 and underscore, starting with a letter")
    return name


class ResourceKinds:
    """The kinds an authority knows: the standard ones and those that plugins register."""

    __slots__ = ("_names",)

    def __init__(self) -> None:
        self._names = frozenset(str(kind) for kind in ResourceKind)

    def register(self, *names: str) -> None:
        """Add kinds; registering a known one again changes nothing.

        Raises:
            InvalidIdentifierError: A name is not spelled like a kind; none was added.
        """
        self._names |= {check_kind(name) for name in names}

    def parse(self, text: str) -> str | None:
        """Return the kind a case-insensitive ASCII spelling means, or None.

        Other alphabets never match: upper-casing a dotless i or a long s would.
        """
        name = text.upper() if text.isascii() else ""
        return name if name in self._names else None

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._names))
