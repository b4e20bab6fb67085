"""The ten memory tools over a bank, as functions of JSON arguments that return JSON values.

The secure tools raise a typed denial where the scope says no; the leash and locks answer
with an empty value. The plain twins keep the older contract: whatever is refused is
simply empty.
"""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from libctx_core.access import ContextAccessDenied, DenialReason, Operation, ResourceKind
from libctx_core.bank.bank import ContextBank
from libctx_core.bank.bridge import twin
from libctx_core.bank.codec import entry_from_json, entry_to_json, todo_from_json, todo_to_json
from libctx_core.bank.leash import NO_LEASH_DENIES, PERMISSIVE, Leash, current_leash
from libctx_core.bank.lorebook import resolve_key
from libctx_core.bank.query import INT_MIN, LoreBookQueryResult
from libctx_core.bank.toolspecs import SPECS, ToolSchema
from libctx_core.bank.window import ContextWindow
from libctx_core.errors import InvalidInputError
from libctx_core.errors.bank import PageLockedError, ToolConflictError

PREFIX: Final = "secure_"
Json = Any


class _Refused(Exception):
    """A key lock, or a missing entry, ends a change before anything is stored."""


class MemoryTools:
    """The ten tools, raising where the scope denies.

    Args:
        bank: The bank, bound to a scope or not.
        allow_unscoped: Work without any scope; by default that is refused, because the
            permissive leash of these tools would open every page.
        default_leash: What holds where no leash is in force.
    """

    def __init__(self, bank: ContextBank, *, allow_unscoped: bool = False, default_leash: Leash = PERMISSIVE) -> None:
        self._bank = bank
        self._allow_unscoped = allow_unscoped
        self._default_leash = default_leash

    def serves(self, bank: ContextBank) -> bool:
        """Return whether these are the tools of this bank, under the same handle."""
        return self._bank.shares_pages_with(bank)

    def list_page_keys(self) -> list[str]:
        """Return the pages that scope, leash and locks let the caller see."""
        self._require_scope(Operation.ENUMERATE)
        leash = self._leash()
        keys = self._bank.page_keys(strict=True)
        return [key for key in keys if leash.may_read(key) and not self._bank.page_is_locked(key)]

    def get_lorebook_entry(self, page_key: str, key: str) -> Json:
        """Return the entry of a key or alias, or None."""
        window = self._readable(page_key)
        name = None if window is None else resolve_key(window.lore_book_keys, _text("key", key))
        if window is None or name is None or self._bank.locked(page_key)(name):
            return None
        return entry_to_json(window.lore_book_keys[name])

    def get_lorebook(self, page_key: str) -> Json:
        """Return the unlocked entries of a page by key."""
        window = self._readable(page_key)
        if window is None:
            return {}
        locked = self._bank.locked(page_key)
        return {name: entry_to_json(entry) for name, entry in window.lore_book_keys.items() if not locked(name)}

    def query_lorebook(
        self,
        page_key: str,
        query: str = "",
        min_weight: int = INT_MIN,
        required_keys: Sequence[str] = (),
        alias_keys: Sequence[str] = (),
        extract_regex: str = "",
    ) -> Json:
        """Return the entries that pass every filter, each with what the pattern extracts."""
        if self._readable(page_key) is None:
            return []
        found = self._bank.query_lorebook(
            page_key,
            _text("query", query),
            min_weight=_whole("minWeight", min_weight),
            required_keys=_texts("requiredKeys", required_keys),
            alias_keys=_texts("aliasKeys", alias_keys),
            extract_regex=_text("extractRegex", extract_regex),
        )
        return [_result_to_json(result) for result in found]

    def simulate_lorebook_trigger(self, page_key: str, text: str) -> Json:
        """Return the entries a text would hit."""
        if self._readable(page_key) is None:
            return []
        return self._bank.simulate_lorebook_trigger(page_key, _text("text", text))

    def search_memory(self, page_key: str, query: str, extract_regex: str = "") -> Json:
        """Return the entries and elements that hold a text."""
        if self._readable(page_key) is None:
            return {"lorebookMatches": [], "elementMatches": []}
        found = self._bank.search_memory(
            page_key, _text("query", query), extract_regex=_text("extractRegex", extract_regex)
        )
        return {
            "lorebookMatches": [_result_to_json(result) for result in found.lorebook_matches],
            "elementMatches": [
                {"element": match.element, "extraction": match.extraction} for match in found.element_matches
            ],
        }

    def update_lorebook_entry(self, page_key: str, entry: Mapping[str, Any]) -> bool:
        """Add or replace an entry; False where leash or lock refuse."""
        replacement = entry_from_json(dict(entry) if isinstance(entry, Mapping) else entry)

        def put(window: ContextWindow) -> None:
            self._refuse_locked(page_key, window, replacement.key)
            window.put_entry(replacement)

        return self._change(page_key, put)

    def delete_lorebook_entry(self, page_key: str, key: str) -> bool:
        """Remove the entry of a key or alias; False where there is none, or leash or lock refuse."""
        wanted = _text("key", key)

        def remove(window: ContextWindow) -> None:
            name = self._refuse_locked(page_key, window, wanted)
            if name is None:
                raise _Refused
            del window.lore_book_keys[name]

        return self._change(page_key, remove)

    def get_todo_list(self, page_key: str) -> Json:
        """Return a todo list, or None."""
        self._require_scope(Operation.READ, todo=True)
        exists = self._bank.require(Operation.READ, page_key, todo=True)
        if not exists or not self._leash().may_read(page_key) or self._bank.page_is_locked(page_key):
            return None
        return todo_to_json(self._bank.get_todo_list(page_key))

    def update_todo_list(self, page_key: str, todo_list: Mapping[str, Any]) -> bool:
        """Update a todo list; False where leash or lock refuse."""
        if not isinstance(todo_list, Mapping):
            raise InvalidInputError("todoList", "must be an object")
        replacement = todo_from_json(dict(todo_list))
        self._require_scope(Operation.WRITE, todo=True)
        exists = self._bank.require(Operation.WRITE, page_key, todo=True)
        if not self._leash().may_write(page_key, exists=exists) or self._bank.page_is_locked(page_key):
            return False
        self._bank.emplace_todo_list(page_key, replacement)
        return True

    # -- checks -------------------------------------------------------------------------

    def _leash(self) -> Leash:
        return current_leash() or self._default_leash

    def _require_scope(self, operation: Operation, *, todo: bool = False) -> None:
        authority = self._bank.authority
        if authority.scope is None and not self._allow_unscoped:
            kind = ResourceKind.TODO_LIST if todo else ResourceKind.CONTEXT_WINDOW
            raise authority.denial(operation, kind, "<execution>", DenialReason.UNSCOPED_EXECUTION)

    def _readable(self, page_key: str) -> ContextWindow | None:
        """Return a page that may be read, None where the leash or a lock hides it."""
        self._require_scope(Operation.READ)
        self._bank.require(Operation.READ, page_key)
        if not self._leash().may_read(page_key) or self._bank.page_is_locked(page_key):
            return None
        return self._bank.get(page_key)

    def _refuse_locked(self, page_key: str, window: ContextWindow, name: str) -> str | None:
        """Return the canonical key of a name; an alias of a locked entry is as locked as its key."""
        locked = self._bank.locked(page_key)
        canonical = resolve_key(window.lore_book_keys, name)
        if locked(name) or (canonical is not None and locked(canonical)):
            raise _Refused
        return canonical

    def _change(self, page_key: str, block: Any) -> bool:
        self._require_scope(Operation.WRITE)
        exists = self._bank.require(Operation.WRITE, page_key)
        if not self._leash().may_write(page_key, exists=exists):
            return False
        try:
            self._bank.change_blindly(page_key, block)
        except (_Refused, PageLockedError):
            return False
        return True


@dataclass(frozen=True, slots=True)
class BankTool:
    """One tool, ready for a model.

    Attributes:
        schema: Its wire name, description and parameters.
        name: The name it is registered under.
        tools: What it works on.
        safe: Return the empty value instead of raising a denial.
    """

    schema: ToolSchema
    name: str
    tools: MemoryTools = field(repr=False)
    safe: bool = False

    @property
    def description(self) -> str:
        """What it does, for the model."""
        return self.schema.description

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of its arguments."""
        return self.schema.parameters

    def call(self, arguments: Mapping[str, Any] | None = None) -> Json:
        """Run it with arguments by their wire names and return a JSON value.

        Raises:
            InvalidInputError: An argument is unknown, missing, or of another type.
            ContextAccessDenied: The scope does not allow it, unless the tool is `safe`.
        """
        keywords = self.schema.keywords(arguments or {})
        try:
            return getattr(self.tools, self.schema.method)(**keywords)
        except ContextAccessDenied:
            if self.safe:
                return self.schema.empty()
            raise

    acall = twin(call)


def secure_tools(bank: ContextBank, *, allow_unscoped: bool = False) -> list[BankTool]:
    """Return the ten secure tools of a bank."""
    tools = MemoryTools(bank, allow_unscoped=allow_unscoped)
    return [BankTool(schema, PREFIX + schema.name, tools) for schema in SPECS]


def plain_tools(bank: ContextBank) -> list[BankTool]:
    """Return the ten plain tools: without a leash they see nothing, and they never raise a denial."""
    tools = MemoryTools(bank, allow_unscoped=True, default_leash=NO_LEASH_DENIES)
    return [BankTool(schema, schema.name, tools, safe=True) for schema in SPECS]


def register_secure_tools(
    registry: MutableMapping[str, BankTool],
    bank: ContextBank,
    options: MutableMapping[str, dict[str, Any]] | None = None,
    *,
    allow_unscoped: bool = False,
) -> list[str]:
    """Put the secure tools into a registry, and their schemas into a model's options.

    Args:
        registry: Tools by name.
        bank: The bank they work on.
        options: Schemas by name, as offered to a model; what is there already stays.
        allow_unscoped: Let the tools work without a scope.

    Returns:
        The ten names.

    Raises:
        ToolConflictError: A name is taken by anything but an equal tool; nothing was registered.
    """
    tools = secure_tools(bank, allow_unscoped=allow_unscoped)
    for tool in tools:
        known = registry.get(tool.name)
        if known is not None and not (isinstance(known, BankTool) and known.tools.serves(bank)):
            raise ToolConflictError(tool.name)
    for tool in tools:
        registry[tool.name] = tool
        if options is not None:
            options.setdefault(tool.name, tool.parameters)
    return [tool.name for tool in tools]


def _text(name: str, value: object) -> str:
    if type(value) is not str:
        raise InvalidInputError(name, "must be a string")
    return value


def _texts(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise InvalidInputError(name, "must be a list of strings")
    return tuple(_text(name, item) for item in value)


def _whole(name: str, value: object) -> int:
    if type(value) is not int:
        raise InvalidInputError(name, "must be a whole number")
    return value


def _result_to_json(result: LoreBookQueryResult) -> dict[str, Any]:
    return {"entry": entry_to_json(result.entry), "extraction": result.extraction}
