"""Named parts and who brought them: chosen by explicit name, never by who came last."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from libctx_core.errors import PluginConflictError, PluginError, PluginNotFoundError

T = TypeVar("T")

MAX_NAME = 128
"""Longest name of a registered part, in characters."""


@dataclass(frozen=True, slots=True)
class Registered(Generic[T]):
    """One part, its owner and its name."""

    owner: str
    name: str
    value: T


class Registry(Generic[T]):
    """All parts of one kind.

    A part is asked for as ``name``, or as ``plugin:name`` where two plugins use one name.

    Args:
        kind: What the parts are called in messages, e.g. ``"embedder"``.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, list[Registered[T]]] = {}

    def add(self, owner: str, parts: Mapping[str, T]) -> None:
        """Take over what one plugin brings; all names or none.

        Raises:
            PluginError: A name is blank, too long, or holds a colon.
        """
        for name in parts:
            if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME or ":" in name:
                raise PluginError(
                    owner, f"the name of a {self.kind} must be 1 to {MAX_NAME} characters without a colon"
                )
        for name, value in parts.items():
            self._parts.setdefault(name, []).append(Registered(owner, name, value))

    def names(self) -> tuple[str, ...]:
        """Return the names, sorted; where two plugins use one name, as ``plugin:name``."""
        return tuple(
            sorted(
                name if len(owners) == 1 else f"{part.owner}:{name}"
                for name, owners in self._parts.items()
                for part in owners
            )
        )

    def find(self, name: str) -> Registered[T]:
        """Return the part of this name.

        Raises:
            PluginNotFoundError: There is none.
            PluginConflictError: Two plugins bring one; ask for ``plugin:name``.
        """
        owner, colon, rest = name.partition(":")
        found = self._parts.get(rest if colon else name, [])
        if colon:
            found = [part for part in found if part.owner == owner]
        if not found:
            known = ", ".join(self.names()) or "none"
            raise PluginNotFoundError(owner if colon else name, f"no such {self.kind}; known: {known}")
        if len(found) > 1:
            raise PluginConflictError(self.kind, name, (found[0].owner, found[1].owner))
        return found[0]

    def parts(self) -> tuple[Registered[T], ...]:
        """Return every part, sorted by name.

        Raises:
            PluginConflictError: Two plugins use one name.
        """
        return tuple(self.find(name) for name in sorted(self._parts))

    def drop(self, owner: str) -> None:
        """Forget what one plugin brought."""
        for name in tuple(self._parts):
            kept = [part for part in self._parts[name] if part.owner != owner]
            if kept:
                self._parts[name] = kept
            else:
                del self._parts[name]
