"""Payload documents: windows and todo lists as strict JSON with the schema's wire names."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, NoReturn, TypeVar

from libctx_core.access import ResourceKind
from libctx_core.bank.lorebook import LoreBook
from libctx_core.bank.todo import TodoList, TodoListTask
from libctx_core.bank.window import ContextWindow, ConverseData, ConverseHistory
from libctx_core.errors import InvalidInputError, InvalidTextError
from libctx_core.errors.bank import PayloadError

T = TypeVar("T", ContextWindow, TodoList)

MAX_VERSION: Final = 2**53 - 1
"""Largest version that every JSON reader keeps exact."""


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """How one kind of page is stored, read and copied.

    Attributes:
        kind: Resource kind of the page.
        encode: To its document, UTF-8 JSON.
        decode: From its document; raises `PayloadError`.
        page: The class of the page.
    """

    kind: str
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]
    page: type[T]

    def empty(self) -> T:
        """Return a page that holds nothing."""
        return self.page()

    def check(self, payload: object) -> T:
        """Return a page if it is of this kind.

        Raises:
            PayloadError: It is something else.
        """
        if type(payload) is not self.page:
            raise PayloadError("page", f"must be a {self.page.__name__}")
        return payload


def parse_object(document: bytes) -> dict[str, Any]:
    """Return the JSON object of a document.

    Raises:
        PayloadError: It is not UTF-8, not strict JSON, or no object.
    """
    try:
        value = json.loads(document.decode("utf-8"), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise PayloadError("document", "is not strict JSON") from error
    if type(value) is not dict:
        raise PayloadError("document", "is not an object")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _dump(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise InvalidTextError("page", "holds a lone surrogate") from error


def _field(fields: dict[str, Any], name: str, kind: type[Any], default: Any) -> Any:
    value = fields.get(name, default)
    if type(value) is not kind:
        raise PayloadError(name, f"must be {kind.__name__}")
    return value


def version_of(fields: dict[str, Any]) -> int:
    """Return the version field of a payload, 0 if it has none.

    Raises:
        PayloadError: It is no integer from 0 to `MAX_VERSION`.
    """
    version = _field(fields, "version", int, 0)
    if not 0 <= version <= MAX_VERSION:
        raise PayloadError("version", f"must be from 0 to {MAX_VERSION}")
    return int(version)


def document_version(document: bytes) -> int:
    """Return the version a document was stored as."""
    return version_of(parse_object(document))


# -- lorebook and windows --------------------------------------------------------


def entry_to_json(entry: LoreBook) -> dict[str, Any]:
    """Return an entry with its wire names."""
    return {
        "key": entry.key,
        "value": entry.value,
        "weight": entry.weight,
        "linkedKeys": list(entry.linked_keys),
        "aliasKeys": list(entry.alias_keys),
        "requiredKeys": list(entry.required_keys),
    }


def entry_from_json(fields: Any) -> LoreBook:
    """Return the entry a wire object describes.

    Raises:
        PayloadError: A field has another type, or the key is blank.
    """
    if type(fields) is not dict:
        raise PayloadError("entry", "must be an object")
    try:
        return LoreBook(
            _field(fields, "key", str, ""),
            _field(fields, "value", str, ""),
            _field(fields, "weight", int, 0),
            tuple(_field(fields, "linkedKeys", list, [])),
            tuple(_field(fields, "aliasKeys", list, [])),
            tuple(_field(fields, "requiredKeys", list, [])),
        )
    except InvalidInputError as error:
        raise PayloadError(error.field, error.detail) from error


def window_to_json(window: ContextWindow) -> dict[str, Any]:
    """Return a window with its wire names."""
    return {
        "loreBookKeys": {key: entry_to_json(entry) for key, entry in window.lore_book_keys.items()},
        "contextElements": list(window.context_elements),
        "converseHistory": {"history": [_turn_to_json(turn) for turn in window.converse_history]},
        "version": window.version,
    }


def _turn_to_json(turn: ConverseData) -> dict[str, Any]:
    fields: dict[str, Any] = {"role": turn.role, "content": {"text": turn.content}}
    if turn.uuid:
        fields["uuid"] = turn.uuid
    return fields


def _turn_from_json(fields: Any) -> ConverseData:
    if type(fields) is not dict:
        raise PayloadError("history", "must hold objects")
    content = fields.get("content", "")
    text = content.get("text", "") if type(content) is dict else content
    try:
        return ConverseData(_field(fields, "role", str, ""), text, _field(fields, "uuid", str, ""))
    except InvalidInputError as error:
        raise PayloadError(error.field, error.detail) from error


def history_from_json(fields: Any) -> ConverseHistory:
    """Return the conversation a wire object describes; uuids may be missing.

    Raises:
        PayloadError: A field has another type, or a role is unknown.
    """
    if type(fields) is not dict:
        raise PayloadError("converseHistory", "must be an object")
    return ConverseHistory([_turn_from_json(turn) for turn in _field(fields, "history", list, [])])


def window_from_json(fields: dict[str, Any]) -> ContextWindow:
    """Return the window a wire object describes.

    Raises:
        PayloadError: A field has another type.
    """
    elements = _field(fields, "contextElements", list, [])
    if any(type(element) is not str for element in elements):
        raise PayloadError("contextElements", "must hold str")
    return ContextWindow(
        {key: entry_from_json(entry) for key, entry in _field(fields, "loreBookKeys", dict, {}).items()},
        elements,
        history_from_json(fields.get("converseHistory", {})),
        version_of(fields),
    )


# -- todo lists --------------------------------------------------------------------


def todo_to_json(todo: TodoList) -> dict[str, Any]:
    """Return a todo list with its wire names."""
    return {
        "tasks": {
            "tasks": [
                {
                    "taskNumber": task.task_number,
                    "task": task.task,
                    "completionRequirements": task.completion_requirements,
                    "isComplete": task.is_complete,
                }
                for task in todo.tasks
            ]
        },
        "workHistory": list(todo.work_history),
        "version": todo.version,
    }


def todo_from_json(fields: dict[str, Any]) -> TodoList:
    """Return the todo list a wire object describes.

    Raises:
        PayloadError: A field has another type.
    """
    history = _field(fields, "workHistory", list, [])
    if any(type(line) is not str for line in history):
        raise PayloadError("workHistory", "must hold str")
    tasks = _field(_field(fields, "tasks", dict, {}), "tasks", list, [])
    return TodoList([_task_from_json(task) for task in tasks], history, version_of(fields))


def _task_from_json(fields: Any) -> TodoListTask:
    if type(fields) is not dict:
        raise PayloadError("tasks", "must hold objects")
    return TodoListTask(
        _field(fields, "taskNumber", int, 0),
        _field(fields, "task", str, ""),
        _field(fields, "completionRequirements", str, ""),
        _field(fields, "isComplete", bool, False),
    )


WINDOW: Final[Codec[ContextWindow]] = Codec(
    str(ResourceKind.CONTEXT_WINDOW),
    lambda window: _dump(window_to_json(window)),
    lambda document: window_from_json(parse_object(document)),
    ContextWindow,
)
TODO: Final[Codec[TodoList]] = Codec(
    str(ResourceKind.TODO_LIST),
    lambda todo: _dump(todo_to_json(todo)),
    lambda document: todo_from_json(parse_object(document)),
    TodoList,
)
