"""What plugins bring, taken in while they load."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from libctx_core.errors import PluginError
from libctx_core.plugins.registry import Registry
from libctx_core.ports import ToolSpec

KINDS = {
    "register_storage_backends": "storage backend",
    "register_vector_indexes": "vector index",
    "register_embedders": "embedder",
    "register_tokenizers": "tokenizer",
    "register_source_adapters": "source adapter",
    "register_rerankers": "reranker",
    "register_extractors": "extractor",
}
"""Hooks that bring named factories, and what they bring."""

OTHER_KINDS = ("register_tools", "register_artifact_families", "register_resource_kinds")
"""Hooks that bring the things themselves."""

_RESOURCE_KIND = re.compile(r"[A-Z][A-Z0-9_]{0,63}")


class Contributions:
    """Everything the loaded plugins registered.

    Attributes:
        factories: One registry of factories per hook in `KINDS`.
        tools: Functions that a model may call.
        families: Artifact classes by their family.
        resource_kinds: Resource kinds and the plugins that brought them.
    """

    def __init__(self) -> None:
        self.factories: dict[str, Registry[Callable[..., Any]]] = {hook: Registry(kind) for hook, kind in KINDS.items()}
        self.tools: Registry[ToolSpec] = Registry("tool")
        self.families: Registry[Any] = Registry("artifact family")
        self.resource_kinds: dict[str, set[str]] = {}

    def take(self, owner: str, hook: str, answer: object) -> None:
        """Take in what one implementation returned; None brings nothing.

        Raises:
            PluginError: It is not what the hook asks for.
        """
        if answer is None:
            return
        if hook in KINDS:
            if not isinstance(answer, Mapping) or not all(callable(value) for value in answer.values()):
                raise PluginError(owner, f"{hook} must return a mapping of names to callables")
            self.factories[hook].add(owner, answer)
        elif hook == "register_tools":
            self.tools.add(owner, _by_name(owner, answer))
        elif hook == "register_artifact_families":
            self.families.add(owner, _by_family(owner, answer))
        elif hook == "register_resource_kinds":
            for kind in _kinds(owner, answer):
                self.resource_kinds.setdefault(kind, set()).add(owner)

    def drop(self, owner: str) -> None:
        """Forget what one plugin brought."""
        for registry in self.factories.values():
            registry.drop(owner)
        self.tools.drop(owner)
        self.families.drop(owner)
        for owners in self.resource_kinds.values():
            owners.discard(owner)


def _by_name(owner: str, answer: object) -> dict[str, ToolSpec]:
    tools: dict[str, ToolSpec] = {}
    for tool in _items(owner, "register_tools", answer):
        if not isinstance(tool, ToolSpec) or tool.name in tools:
            raise PluginError(owner, "register_tools must return ToolSpec values with different names")
        tools[tool.name] = tool
    return tools


def _by_family(owner: str, answer: object) -> dict[str, Any]:
    from libctx_core.artifacts import Artifact

    families: dict[str, Any] = {}
    for kind in _items(owner, "register_artifact_families", answer):
        if not (isinstance(kind, type) and issubclass(kind, Artifact)) or kind.family in families:
            raise PluginError(owner, "register_artifact_families must return Artifact classes of different families")
        families[kind.family] = kind
    return families


def _kinds(owner: str, answer: object) -> list[str]:
    kinds = _items(owner, "register_resource_kinds", answer)
    if not all(isinstance(kind, str) and _RESOURCE_KIND.fullmatch(kind) for kind in kinds):
        raise PluginError(owner, "a resource kind is 1 to 64 capitals, digits and underscores, a capital first")
    return kinds


def _items(owner: str, hook: str, answer: object) -> list[Any]:
    if isinstance(answer, str) or not hasattr(answer, "__iter__"):
        raise PluginError(owner, f"{hook} must return an iterable")
    return list(answer)
