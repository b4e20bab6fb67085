"""What became of a plugin, and what went wrong in one while it ran."""

from dataclasses import dataclass
from typing import Literal

Origin = Literal["built-in", "installed", "given"]
State = Literal["loaded", "failed", "not selected"]


@dataclass(frozen=True, slots=True)
class PluginStatus:
    """One plugin and how it fared.

    Attributes:
        name: Name of its entry point, or of the object that was given.
        origin: Whether it came with the library, with an installed package, or as an object.
        state: Whether it is at work.
        package: Distribution and version that bring it, where known.
        hooks: Hooks it implements, sorted; empty unless loaded.
        error: Why it failed; empty unless it did.
    """

    name: str
    origin: Origin
    state: State
    package: str = ""
    hooks: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """An exception that a hook raised where exceptions are isolated.

    Attributes:
        plugin: The plugin.
        hook: The hook.
        error: Type of the exception and where it was raised; its text is left out, because
            it may quote an event.
    """

    plugin: str
    hook: str
    error: str
