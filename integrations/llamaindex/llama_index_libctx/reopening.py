"""Pickling components on a library file: by the arguments that open them again."""

from typing import Any

from llama_index.core.bridge.pydantic import BaseModel

from libctx_core.access import Scope
from llama_index_libctx.library import MEMORY


def refuse_scope(scope: Scope | None) -> None:
    """Refuse to write down a component that is held under a scope.

    Raises:
        TypeError: There is a scope; what is opened again without it could do more.
    """
    if scope is not None:
        raise TypeError("a scope is handed over, not copied: what is held under one cannot be serialised")


def reopening_state(component: BaseModel, scope: Scope | None) -> dict[str, Any]:
    """Return a pickle state from which LlamaIndex calls the constructor with the component's fields.

    Raises:
        TypeError: The component is in memory, or held under a scope.
    """
    refuse_scope(scope)
    fields = dict(component.__dict__)
    if fields.get("path") == MEMORY:
        raise TypeError(f"a {type(component).__name__} in memory cannot be pickled; give it a file")
    return {"__dict__": fields, "__pydantic_private__": None}
