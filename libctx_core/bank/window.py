"""The context window: lorebook, loose elements and conversation that make up one banked page."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from libctx_core.bank.lorebook import Locked, LoreBook, matching_keys, never_locked, resolve_key, union
from libctx_core.errors import InvalidInputError

CONVERSE_ROLES = ("developer", "system", "user", "agent", "assistant")


@dataclass(frozen=True, slots=True)
class ConverseData:
    """One turn of a conversation.

    Attributes:
        role: Who speaks, one of `CONVERSE_ROLES`.
        content: What was said; text that looks like JSON stays text.
        uuid: Its identity, empty for none.
    """

    role: str
    content: str
    uuid: str = ""

    def __post_init__(self) -> None:
        if self.role not in CONVERSE_ROLES:
            raise InvalidInputError("role", f"must be one of {', '.join(CONVERSE_ROLES)}")
        if type(self.content) is not str or type(self.uuid) is not str:
            raise InvalidInputError("content, uuid", "must be str")


@dataclass(slots=True)
class ConverseHistory:
    """The turns of a conversation, oldest first."""

    history: list[ConverseData] = field(default_factory=list)

    def add(self, role: str, content: str, uuid: str = "") -> bool:
        """Append a turn unless one with this uuid is there; return whether it was appended."""
        return self.add_turn(ConverseData(role, content, uuid))

    def add_turn(self, turn: ConverseData) -> bool:
        """Append a turn unless one with its uuid is there; turns without uuid are never the same."""
        if turn.uuid and any(known.uuid == turn.uuid for known in self.history):
            return False
        self.history.append(turn)
        return True

    def __len__(self) -> int:
        return len(self.history)

    def __iter__(self) -> Iterator[ConverseData]:
        return iter(self.history)


@dataclass(slots=True)
class ContextWindow:
    """One page of context. Its parts are immutable, so a copy shares them and costs little.

    Attributes:
        lore_book_keys: Lorebook entries by key.
        context_elements: Loose pieces of text.
        converse_history: A conversation.
        version: How often the page was stored since it was created; set by the bank.
    """

    lore_book_keys: dict[str, LoreBook] = field(default_factory=dict)
    context_elements: list[str] = field(default_factory=list)
    converse_history: ConverseHistory = field(default_factory=ConverseHistory)
    version: int = 0

    def copy(self) -> "ContextWindow":
        """Return a window that shares nothing mutable with this one."""
        return ContextWindow(
            dict(self.lore_book_keys),
            list(self.context_elements),
            ConverseHistory(list(self.converse_history.history)),
            self.version,
        )

    def add_text(self, text: str) -> None:
        """Append a loose piece of text."""
        if type(text) is not str:
            raise InvalidInputError("text", "must be a str")
        self.context_elements.append(text)

    def add_lore_book_entry(
        self,
        key: str,
        value: str,
        weight: int = 0,
        *,
        linked_keys: Iterable[str] = (),
        alias_keys: Iterable[str] = (),
        required_keys: Iterable[str] = (),
    ) -> None:
        """Add a lorebook entry, or replace the one of this key."""
        self.put_entry(LoreBook(key, value, weight, tuple(linked_keys), tuple(alias_keys), tuple(required_keys)))

    def put_entry(self, entry: LoreBook) -> None:
        """Add a lorebook entry, or replace the one of its key."""
        self.lore_book_keys[entry.key] = entry

    def find_lore_book_entry(self, name: str) -> LoreBook | None:
        """Return the entry with this key or alias, exact spellings first, or None."""
        key = resolve_key(self.lore_book_keys, name)
        return None if key is None else self.lore_book_keys[key]

    def find_matching_keys(self, text: str, locked: Locked = never_locked) -> list[str]:
        """Return the lorebook keys that a text hits, links not followed."""
        return matching_keys(self.lore_book_keys, text, locked)

    def is_empty(self) -> bool:
        """Return whether nothing is in it."""
        return not (self.lore_book_keys or self.context_elements or self.converse_history.history)

    def clear(self) -> None:
        """Empty it; the version stays."""
        self.lore_book_keys.clear()
        self.context_elements.clear()
        self.converse_history.history.clear()

    def clean_lorebook(self) -> None:
        """Drop lorebook entries without text."""
        for key in [key for key, entry in self.lore_book_keys.items() if not entry.value.strip()]:
            del self.lore_book_keys[key]

    def merge(
        self,
        other: "ContextWindow",
        *,
        emplace_lorebook_keys: bool = True,
        append_keys: bool = False,
        emplace_converse_history: bool = False,
        only_emplace_if_null: bool = False,
    ) -> None:
        """Take over what another window holds.

        Args:
            other: The other window; it is not changed.
            emplace_lorebook_keys: Replace the text of entries both have.
            append_keys: Append the other's text instead of replacing.
            emplace_converse_history: Replace the conversation by the other's.
            only_emplace_if_null: Do that only where this window has none.
        """
        for key, theirs in other.lore_book_keys.items():
            ours = self.lore_book_keys.get(key)
            self.lore_book_keys[key] = (
                theirs if ours is None else _merged(ours, theirs, append=append_keys, emplace=emplace_lorebook_keys)
            )
        known = set(self.context_elements)
        for element in other.context_elements:
            if element not in known:
                known.add(element)
                self.context_elements.append(element)
        occupied = only_emplace_if_null and bool(self.converse_history.history)
        if (emplace_converse_history or only_emplace_if_null) and not occupied:
            self.converse_history = ConverseHistory(list(other.converse_history.history))


def _merged(ours: LoreBook, theirs: LoreBook, *, append: bool, emplace: bool) -> LoreBook:
    replaced = theirs.value if emplace else ours.value
    value = f"{ours.value} {theirs.value}" if append else replaced
    return LoreBook(
        ours.key,
        value,
        theirs.weight if emplace and not append else ours.weight,
        union(ours.linked_keys, theirs.linked_keys),
        union(ours.alias_keys, theirs.alias_keys),
        union(ours.required_keys, theirs.required_keys),
    )


@dataclass(slots=True)
class MiniBank:
    """Several windows by name, carried together."""

    context_map: dict[str, ContextWindow] = field(default_factory=dict)

    def copy(self) -> "MiniBank":
        """Return a bank that shares nothing mutable with this one."""
        return MiniBank({key: window.copy() for key, window in self.context_map.items()})

    def is_empty(self) -> bool:
        """Return whether it holds no window, or only empty ones."""
        return all(window.is_empty() for window in self.context_map.values())

    def merge(
        self,
        other: "MiniBank",
        *,
        emplace_lorebook_keys: bool = True,
        append_keys: bool = False,
        emplace_converse_history: bool = False,
        only_emplace_if_null: bool = False,
    ) -> None:
        """Merge window by window; windows that are new here are copied in."""
        for key, window in other.context_map.items():
            ours = self.context_map.get(key)
            if ours is None:
                self.context_map[key] = window.copy()
            else:
                ours.merge(
                    window,
                    emplace_lorebook_keys=emplace_lorebook_keys,
                    append_keys=append_keys,
                    emplace_converse_history=emplace_converse_history,
                    only_emplace_if_null=only_emplace_if_null,
                )
