"""Names, descriptions and JSON schemas of the memory tools."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from libctx_core.errors import InvalidInputError

_STRING: Final = {"type": "string"}
_STRINGS: Final = {"type": "array", "items": {"type": "string"}}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool.

    Attributes:
        name: Its wire name.
        keyword: Its name in the function.
        schema: JSON Schema of its value.
        required: Whether it must be given.
    """

    name: str
    keyword: str
    schema: Mapping[str, Any]
    required: bool = True


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """What a model is told about a tool.

    Attributes:
        name: Its wire name, without prefix.
        method: The function of `MemoryTools` behind it.
        description: What it does.
        arguments: Its arguments.
        empty: Makes the value that stands for nothing.
    """

    name: str
    method: str
    description: str
    arguments: tuple[Argument, ...]
    empty: Callable[[], Any]

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {argument.name: dict(argument.schema) for argument in self.arguments},
            "required": [argument.name for argument in self.arguments if argument.required],
            "additionalProperties": False,
        }

    def keywords(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return wire arguments as keywords of the function.

        Raises:
            InvalidInputError: One is unknown, or a required one is missing.
        """
        known = {argument.name: argument for argument in self.arguments}
        if unknown := arguments.keys() - known.keys():
            raise InvalidInputError("arguments", f"holds {len(unknown)} that {self.name} does not take")
        for argument in self.arguments:
            if argument.required and argument.name not in arguments:
                raise InvalidInputError(argument.name, "is missing")
        return {known[name].keyword: value for name, value in arguments.items()}


def _nothing() -> None:
    """Stand for a missing object."""


def _nothing_found() -> dict[str, list[Any]]:
    return {"lorebookMatches": [], "elementMatches": []}


_ENTRY: Final = {
    "type": "object",
    "properties": {
        "key": _STRING,
        "value": _STRING,
        "weight": {"type": "integer"},
        "linkedKeys": _STRINGS,
        "aliasKeys": _STRINGS,
        "requiredKeys": _STRINGS,
    },
    "required": ["key", "value"],
}
_TODO: Final = {
    "type": "object",
    "properties": {
        "tasks": {
            "type": "object",
            "properties": {
                "tasks": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "taskNumber": {"type": "integer"},
                            "task": _STRING,
                            "completionRequirements": _STRING,
                            "isComplete": {"type": "boolean"},
                        },
                        "required": ["taskNumber", "task"],
                    },
                }
            },
        },
        "workHistory": _STRINGS,
    },
}
_PAGE: Final = Argument("pageKey", "page_key", {**_STRING, "description": "Key of the memory page."})
_KEY: Final = Argument("key", "key", {**_STRING, "description": "Key or alias of the lorebook entry."})
_REGEX: Final = Argument(
    "extractRegex",
    "extract_regex",
    {**_STRING, "description": "Regular expression whose first match is returned."},
    required=False,
)

SPECS: Final = (
    ToolSchema("listPageKeys", "list_page_keys", "List the memory pages you may read.", (), list),
    ToolSchema("getLorebookEntry", "get_lorebook_entry", "Read one lorebook entry of a page.", (_PAGE, _KEY), _nothing),
    ToolSchema("getLorebook", "get_lorebook", "Read all lorebook entries of a page.", (_PAGE,), dict),
    ToolSchema(
        "queryLorebook",
        "query_lorebook",
        "Find lorebook entries of a page by text, weight, required keys and aliases.",
        (
            _PAGE,
            Argument("query", "query", {**_STRING, "description": "Text in key or value."}, required=False),
            Argument("minWeight", "min_weight", {"type": "integer"}, required=False),
            Argument("requiredKeys", "required_keys", _STRINGS, required=False),
            Argument("aliasKeys", "alias_keys", _STRINGS, required=False),
            _REGEX,
        ),
        list,
    ),
    ToolSchema(
        "simulateLorebookTrigger",
        "simulate_lorebook_trigger",
        "List the lorebook entries of a page that a text would bring up.",
        (_PAGE, Argument("text", "text", _STRING)),
        list,
    ),
    ToolSchema(
        "searchMemory",
        "search_memory",
        "Search the lorebook and the elements of a page for a text.",
        (_PAGE, Argument("query", "query", _STRING), _REGEX),
        _nothing_found,
    ),
    ToolSchema(
        "updateLorebookEntry",
        "update_lorebook_entry",
        "Add or replace a lorebook entry of a page.",
        (_PAGE, Argument("entry", "entry", _ENTRY)),
        bool,
    ),
    ToolSchema(
        "deleteLorebookEntry",
        "delete_lorebook_entry",
        "Delete a lorebook entry of a page.",
        (_PAGE, _KEY),
        bool,
    ),
    ToolSchema("getTodoList", "get_todo_list", "Read a todo list.", (_PAGE,), _nothing),
    ToolSchema(
        "updateTodoList",
        "update_todo_list",
        "Update the tasks of a todo list.",
        (_PAGE, Argument("todoList", "todo_list", _TODO)),
        bool,
    ),
)
"""The ten tools."""
