"""The context bank: pages of context and todo lists by key, under the library's authority."""

from collections.abc import Callable, Collection
from typing import Any

from libctx_core.access import AdminToken, Authority, Operation, ResourceMetadata, Scope
from libctx_core.bank.admin import BankAdmin
from libctx_core.bank.banked import BankedContext
from libctx_core.bank.bridge import Maybe, twin
from libctx_core.bank.cache import CacheConfig
from libctx_core.bank.changes import change, merge_into
from libctx_core.bank.codec import TODO, WINDOW
from libctx_core.bank.fitting import select_and_truncate_context
from libctx_core.bank.lifecycle import clear_cache, create, delete, evict, evict_all
from libctx_core.bank.listing import list_keys, visible_usage
from libctx_core.bank.lorebook import Locked, LoreBook
from libctx_core.bank.modes import StorageMode
from libctx_core.bank.pages import Pages
from libctx_core.bank.query import (
    INT_MIN,
    LoreBookQueryResult,
    MemorySearchResult,
    query_lorebook,
    search_memory,
)
from libctx_core.bank.remote import RemoteMemory
from libctx_core.bank.settings import TruncationMethod, TruncationSettings
from libctx_core.bank.state import BankState
from libctx_core.bank.todo import TodoList, apply_update
from libctx_core.bank.window import ContextWindow
from libctx_core.concurrency import Portal
from libctx_core.store.payloads import PayloadStore
from libctx_core.tokens import TokenCounter


class ContextBank:
    """Pages of context and todo lists by key.

    Every method has an async twin named with a leading ``a``. What is handed in is
    copied, what is handed out is a copy. A page that does not exist reads as an empty one.

    Args:
        store: Where durable pages live.
        authority: Decides who may; by default scopes of the default `ContextAccess`.
        remote: A remote memory, for pages of storage mode REMOTE.
        cache: Limits of DISK_WITH_CACHE pages in memory.
        portal: Thread for callbacks and backends that are only asynchronous.

    Attributes:
        pages: The pipeline behind it, for what is built on a bank.
    """

    def __init__(
        self,
        store: PayloadStore,
        authority: Authority | None = None,
        *,
        remote: RemoteMemory | None = None,
        cache: CacheConfig | None = None,
        portal: Portal | None = None,
    ) -> None:
        self.pages = Pages(BankState(store, remote, cache, portal), authority or Authority())
        self._banked = BankedContext(self.pages)

    def scoped(self, scope: Scope) -> "ContextBank":
        """Return a view of this bank that holds `scope` for every call."""
        view = object.__new__(ContextBank)
        view.pages = Pages(self.pages.state, self.pages.authority.bound(scope))
        view._banked = BankedContext(view.pages)
        return view

    def shares_pages_with(self, other: "ContextBank") -> bool:
        """Return whether both are views of one bank under one scope handle."""
        return self.pages.state is other.pages.state and self.authority.handle is other.authority.handle

    @property
    def authority(self) -> Authority:
        """Whose decisions count here."""
        return self.pages.authority

    def admin(self, token: AdminToken | None = None) -> BankAdmin:
        """Return the administration, usable outside every scope only."""
        return BankAdmin(self.pages, token)

    def close(self) -> None:
        """Free what the bank started itself; the store stays open."""
        self.pages.state.bridge.close()

    # -- context windows ------------------------------------------------------------

    def get(self, key: str, *, copy: bool = True, skip_remote: bool = False) -> ContextWindow:
        """Return a context window.

        Args:
            key: Its key.
            copy: False returns the live window in memory, which a scope refuses.
            skip_remote: Leave the remote memory out.

        Raises:
            ContextAccessDenied: READ is not allowed.
        """
        window: ContextWindow = self.pages.read(WINDOW, key, copy=copy, skip_remote=skip_remote)
        return window

    def require(self, operation: Operation, key: str, *, todo: bool = False) -> bool:
        """Check an operation on a page without doing it; return whether the page exists.

        Raises:
            ContextAccessDenied: It is not allowed.
        """
        return self.pages.require(operation, TODO if todo else WINDOW, key)

    def exists(self, key: str, *, todo: bool = False) -> bool:
        """Return whether a window (or todo list) exists, without reading it; READ is required."""
        return self.require(Operation.READ, key, todo=todo)

    def emplace(
        self,
        key: str,
        window: ContextWindow,
        mode: StorageMode | None = None,
        *,
        skip_remote: bool = False,
        expected_version: int | None = None,
    ) -> None:
        """Store a context window, in place of the one that is there.

        Args:
            key: Its key.
            window: The window.
            mode: Where it shall live; MEMORY_AND_DISK for a new one, else where it is.
            skip_remote: Leave the remote memory out.
            expected_version: Refuse unless this version is stored now.

        Raises:
            ContextAccessDenied: WRITE, or CREATE for a new page, is not allowed.
            VersionConflictError: Another version is stored.
        """
        self.pages.write(WINDOW, key, window, mode=mode, skip_remote=skip_remote, expected_version=expected_version)

    def mutate(self, key: str, block: Callable[[ContextWindow], Maybe[Any]]) -> ContextWindow:
        """Change a window in place and return a copy of the result; READ and WRITE are required.

        Args:
            key: Its key.
            block: Changes the window it is given; called again if another writer was faster.

        Raises:
            ContextAccessDenied: READ or WRITE is not allowed.
            PageLockedError: A lock hides the page.
        """
        window: ContextWindow = change(self.pages, WINDOW, key, block)
        return window

    def change_blindly(self, key: str, block: Callable[[ContextWindow], Maybe[Any]]) -> None:
        """Change a window with WRITE alone; for callers that give nothing of it away."""
        change(self.pages, WINDOW, key, block, blind=True)

    def append_element(self, key: str, text: str) -> None:
        """Append a loose piece of text; WRITE is enough, nothing is given away."""
        self.change_blindly(key, lambda window: window.add_text(text))

    def put_entry(self, key: str, entry: LoreBook) -> None:
        """Add or replace a lorebook entry; WRITE is enough, nothing is given away."""
        self.change_blindly(key, lambda window: window.put_entry(entry))

    def with_reference(self, key: str, block: Callable[[ContextWindow], Maybe[Any]]) -> Any:
        """Run a function on the live window in memory, which a scope refuses; return its result.

        Raises:
            ContextAccessDenied: A scope is in force.
        """
        pages, address = self.pages, (WINDOW.kind, key)
        plane = pages.plane_of(pages.mode_for(address, skip_remote=False))
        facts = pages.facts(plane, address)
        pages.authority.refuse_reference(Operation.WRITE, *address, facts.metadata, facts.presence)
        return pages.state.bridge.settle(block(pages.read(WINDOW, key, copy=False)))

    def create_context_window(
        self,
        key: str,
        metadata: ResourceMetadata,
        window: ContextWindow,
        mode: StorageMode = StorageMode.MEMORY_ONLY,
        *,
        skip_remote: bool = False,
    ) -> None:
        """Store a new window together with its enrolment, or neither.

        Raises:
            InvalidMetadataError: The metadata are of another kind.
            ContextAccessDenied: CREATE is not allowed for these metadata.
            ResourceExistsError: There is a page, or an enrolment, of this key.
        """
        create(self.pages, WINDOW, key, metadata, window, mode, skip_remote=skip_remote)

    def delete(self, key: str, *, skip_remote: bool = False, reserve: bool = False) -> bool:
        """Delete a window and its enrolment; return whether it was there.

        Args:
            key: Its key.
            skip_remote: Leave the remote memory out.
            reserve: Keep the enrolment, so that the key does not become shared.

        Raises:
            ContextAccessDenied: DELETE is not allowed.
        """
        return delete(self.pages, WINDOW, key, skip_remote=skip_remote, reserve=reserve)

    def page_keys(self, *, stored: bool = True, skip_remote: bool = False, strict: bool = False) -> list[str]:
        """Return the keys of visible windows; see `libctx_core.bank.listing.list_keys`."""
        return list_keys(self.pages, WINDOW.kind, stored=stored, skip_remote=skip_remote, strict=strict)

    def fetch_merge_save(self, key: str, window: ContextWindow) -> bool:
        """Merge the stored window into a copy of `window` and store that; return whether it held anything."""
        return merge_into(self.pages, key, window)

    # -- looking into windows ---------------------------------------------------------

    def page_is_locked(self, key: str) -> bool:
        """Return whether a lock hides a page."""
        return self.pages.state.locks.page_is_locked(key)

    def locked(self, key: str) -> Locked:
        """Return which lorebook keys are locked on a page."""
        return lambda name: self.pages.state.locks.key_is_locked(key, name)

    def query_lorebook(
        self,
        key: str,
        query: str = "",
        *,
        min_weight: int = INT_MIN,
        required_keys: Collection[str] = (),
        alias_keys: Collection[str] = (),
        extract_regex: str = "",
    ) -> list[LoreBookQueryResult]:
        """Return the lorebook entries of a page that pass every filter."""
        return query_lorebook(
            self.get(key),
            query,
            min_weight=min_weight,
            required_keys=required_keys,
            alias_keys=alias_keys,
            extract_regex=extract_regex,
            locked=self.locked(key),
        )

    def simulate_lorebook_trigger(self, key: str, text: str) -> list[str]:
        """Return the lorebook keys of a page that a text hits, links not followed."""
        return self.get(key).find_matching_keys(text, self.locked(key))

    def search_memory(self, key: str, query: str, *, extract_regex: str = "") -> MemorySearchResult:
        """Return the entries and elements of a page that hold a text."""
        return search_memory(self.get(key), query, extract_regex=extract_regex, locked=self.locked(key))

    def select(
        self,
        key: str,
        text: str,
        max_tokens: int,
        counter: TokenCounter,
        *,
        method: TruncationMethod = TruncationMethod.TOP,
        settings: TruncationSettings | None = None,
    ) -> ContextWindow:
        """Return what a prompt receives of a page; see `select_and_truncate_context`."""
        return select_and_truncate_context(
            self.get(key), text, max_tokens, counter, method=method, settings=settings, locked=self.locked(key)
        )

    # -- the banked context -----------------------------------------------------------

    def get_banked(self, *, copy: bool = True) -> ContextWindow:
        """Return the active window; READ is required, also on the page it was swapped in from."""
        return self._banked.read(copy=copy)

    def banked_reference(self) -> ContextWindow:
        """Return the live active window; refused at once under a scope."""
        return self._banked.reference()

    def update_banked(self, window: ContextWindow) -> None:
        """Make a copy of `window` the active one; WRITE is required."""
        self._banked.update(window)

    def swap_bank(self, key: str) -> None:
        """Make a copy of a page the active window; READ on the page and WRITE are required."""
        self._banked.swap(key)

    def clear_banked(self) -> None:
        """Make an empty window the active one; WRITE is required."""
        self._banked.clear()

    # -- todo lists ---------------------------------------------------------------------

    def get_todo_list(self, key: str, *, copy: bool = True, skip_remote: bool = False) -> TodoList:
        """Return a todo list; READ is required."""
        todo: TodoList = self.pages.read(TODO, key, copy=copy, skip_remote=skip_remote)
        return todo

    def emplace_todo_list(
        self,
        key: str,
        todo: TodoList,
        mode: StorageMode | None = None,
        *,
        updates_only: bool = True,
        completions_only: bool = False,
        skip_remote: bool = False,
    ) -> None:
        """Store a todo list as an update of the one that is there; see `apply_update`."""
        self.pages.write(
            TODO,
            key,
            todo,
            mode=mode,
            skip_remote=skip_remote,
            combine=lambda stored, incoming: apply_update(
                stored, incoming, updates_only=updates_only, completions_only=completions_only
            ),
        )

    def create_todo_list(
        self,
        key: str,
        metadata: ResourceMetadata,
        todo: TodoList,
        mode: StorageMode = StorageMode.MEMORY_ONLY,
        *,
        skip_remote: bool = False,
    ) -> None:
        """Store a new todo list together with its enrolment, or neither."""
        create(self.pages, TODO, key, metadata, todo, mode, skip_remote=skip_remote)

    def delete_todo_list(self, key: str, *, skip_remote: bool = False, reserve: bool = False) -> bool:
        """Delete a todo list and its enrolment; return whether it was there."""
        return delete(self.pages, TODO, key, skip_remote=skip_remote, reserve=reserve)

    def todo_keys(self, *, stored: bool = True, skip_remote: bool = False, strict: bool = False) -> list[str]:
        """Return the keys of visible todo lists."""
        return list_keys(self.pages, TODO.kind, stored=stored, skip_remote=skip_remote, strict=strict)

    # -- memory ---------------------------------------------------------------------------

    def evict(self, key: str, *, todo: bool = False) -> bool:
        """Drop a page from memory; DELETE is required. One that lives nowhere else is gone."""
        return evict(self.pages, TODO.kind if todo else WINDOW.kind, key)

    def evict_all(self) -> int:
        """Drop every page from memory, stopping at the first denial; return how many went."""
        return evict_all(self.pages)

    def clear_cache(self) -> int:
        """Drop the DISK_WITH_CACHE pages that may be dropped; return how many went."""
        return clear_cache(self.pages)

    def cache_statistics(self) -> dict[str, int]:
        """Return number and bytes of the kept pages that are visible to the scope."""
        return visible_usage(self.pages)

    aget = twin(get)
    aexists = twin(exists)
    aemplace = twin(emplace)
    amutate = twin(mutate)
    aappend_element = twin(append_element)
    aput_entry = twin(put_entry)
    awith_reference = twin(with_reference)
    acreate_context_window = twin(create_context_window)
    adelete = twin(delete)
    apage_keys = twin(page_keys)
    afetch_merge_save = twin(fetch_merge_save)
    aquery_lorebook = twin(query_lorebook)
    asimulate_lorebook_trigger = twin(simulate_lorebook_trigger)
    asearch_memory = twin(search_memory)
    aselect = twin(select)
    aget_banked = twin(get_banked)
    aupdate_banked = twin(update_banked)
    aswap_bank = twin(swap_bank)
    aclear_banked = twin(clear_banked)
    aget_todo_list = twin(get_todo_list)
    aemplace_todo_list = twin(emplace_todo_list)
    acreate_todo_list = twin(create_todo_list)
    adelete_todo_list = twin(delete_todo_list)
    atodo_keys = twin(todo_keys)
    aevict = twin(evict)
    aevict_all = twin(evict_all)
    aclear_cache = twin(clear_cache)
