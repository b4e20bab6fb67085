"""Which plugins are installed, and which of them to load."""

import sys
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from libctx_core.plugins.markers import PROJECT

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

VARIABLE = "LIBCTX_PLUGINS"
"""Environment variable that lists the installed plugins to load, separated by commas; empty means none."""


def installed() -> "tuple[EntryPoint, ...]":
    """Return the entry points of installed plugins, sorted by name."""
    return _installed(tuple(sys.path))


@lru_cache(maxsize=4)
def _installed(path: tuple[str, ...]) -> "tuple[EntryPoint, ...]":
    """Read the metadata of everything on `path` (the import path), which takes tens of milliseconds."""
    import importlib.metadata

    found = {
        (entry.name, entry.value, _package(entry)): entry for entry in importlib.metadata.entry_points(group=PROJECT)
    }
    return tuple(found[key] for key in sorted(found))


def wanted_by(environment: Mapping[str, str]) -> frozenset[str] | None:
    """Return the names the environment asks for, or None if it leaves the choice open."""
    value = environment.get(VARIABLE)
    if value is None:
        return None
    return frozenset(name.strip() for name in value.split(",") if name.strip())


def by_name(entries: "Iterable[EntryPoint]") -> "dict[str, tuple[EntryPoint, ...]]":
    """Group entry points by name; a name with several has several owners."""
    groups: dict[str, tuple[EntryPoint, ...]] = {}
    for entry in entries:
        groups[entry.name] = (*groups.get(entry.name, ()), entry)
    return groups


def package_of(entries: "Iterable[EntryPoint]") -> str:
    """Name the distributions behind entry points, with their versions."""
    return ", ".join(filter(None, (_package(entry) for entry in entries)))


def _package(entry: "EntryPoint") -> str:
    return "" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
