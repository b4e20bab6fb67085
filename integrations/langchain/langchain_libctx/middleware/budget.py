"""How many tokens a model request may hold, and what it needs besides messages."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.utils.function_calling import convert_to_openai_tool

from libctx_core.errors import InvalidBudgetError
from libctx_core.tokens import TokenCounter

TokenBudget: TypeAlias = int | float | Callable[[Any], int] | None

FALLBACK = 8_000
"""Tokens of a request where neither a budget is given nor the model tells its window."""

OUTPUT_SHARE = 0.1
"""Part of the model's window left for the reply where the window alone gives the budget."""


def budget_of(request: Any, wanted: TokenBudget) -> int:
    """Return the tokens of one request.

    Args:
        request: The model request; its model may have changed since the last one.
        wanted: A number of tokens, a share of the model's window (a float up to 1), a
            function of the request, or None for the window less the room for a reply.

    Raises:
        InvalidBudgetError: It is not positive.
    """
    window = window_of(request.model)
    if callable(wanted):
        wanted = wanted(request)
    if wanted is None:
        budget = FALLBACK if window is None else int(window * (1 - OUTPUT_SHARE))
    elif isinstance(wanted, float):
        if not 0 < wanted <= 1:
            raise InvalidBudgetError("token_budget", "as a float it is a share of the model's window, up to 1")
        budget = int((window or FALLBACK) * wanted)
    else:
        budget = wanted if window is None else min(wanted, window)
    if budget <= 0:
        raise InvalidBudgetError("token_budget", f"must be above 0, is {budget}")
    return budget


def window_of(model: Any) -> int | None:
    """Return the input window a model's profile tells, if it has one."""
    profile = getattr(model, "profile", None)
    if not isinstance(profile, Mapping):
        return None
    value = profile.get("max_input_tokens")
    return value if isinstance(value, int) and value > 0 else None


def name_of(model: Any) -> str | None:
    """Return the name by which a model's tokens are counted, if it has one."""
    for attribute in ("model_name", "model", "model_id"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return value
    return None


class ToolTokens:
    """Counts tool schemas once per set of tools."""

    def __init__(self) -> None:
        self._last: tuple[tuple[Any, ...], Any, str, int] | None = None

    def count(self, tools: Sequence[Any], response_format: Any, counter: TokenCounter) -> int:
        """Return the tokens of the tools and of the structured output asked for."""
        wanted = tuple(tools)
        last = self._last
        if last is not None and last[2] == counter.name and last[1] is response_format and _same(last[0], wanted):
            return last[3]
        schemas = [tool if isinstance(tool, dict) else convert_to_openai_tool(tool) for tool in wanted]
        schemas.extend(output_schemas(response_format))
        tokens = counter.count_tools(schemas) if schemas else 0
        self._last = (wanted, response_format, counter.name, tokens)
        return tokens


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def output_schemas(response_format: Any) -> list[dict[str, Any]]:
    """Return the JSON schemas that a structured output adds to a request."""
    if response_format is None:
        return []
    specs = getattr(response_format, "schema_specs", None) or [getattr(response_format, "schema_spec", None)]
    found = [spec.json_schema for spec in specs if spec is not None]
    schema = getattr(response_format, "schema", None)
    if not found and schema is not None:
        found = [convert_to_openai_tool(schema)]
    return found
