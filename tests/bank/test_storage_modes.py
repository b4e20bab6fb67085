"""Storage modes, caching, versions, callbacks: one pipeline for both colours."""

import asyncio
import threading

import pytest

from libctx_core.access import ContextAccessDenied, Resource, Rights
from libctx_core.bank import (
    CacheConfig,
    ContextBank,
    ContextWindow,
    EvictionPolicy,
    StorageMode,
    TodoList,
    TodoListTask,
)
from libctx_core.errors.bank import PayloadError, RetrievalEmptyError, VersionConflictError, WriteBackError
from tests.bank.helpers import KIND, MINE, THEIRS, denied, only, scope, window

CACHED, DISK, MEMORY, BOTH = (
    StorageMode.DISK_WITH_CACHE,
    StorageMode.DISK_ONLY,
    StorageMode.MEMORY_ONLY,
    StorageMode.MEMORY_AND_DISK,
)


class TestModes:
    def test_a_missing_page_reads_as_an_empty_one(self, bank):
        assert bank.get("none").is_empty()
        assert bank.get_todo_list("none").is_empty()
        assert not bank.exists("none")

    def test_memory_only_never_reaches_the_store(self, bank, store):
        bank.emplace("k", window("x"), MEMORY)
        assert bank.get("k").context_elements == ["x"]
        assert store.values_touched() == 0
        assert bank.page_keys() == ["k"]

    def test_memory_and_disk_is_read_once(self, bank, store):
        bank.emplace("k", window("x"))
        for _ in range(3):
            bank.get("k")
        assert store.calls["read"] == 0
        assert store.calls["write"] == 1

    def test_disk_only_is_read_every_time_and_listed_on_demand(self, bank, store):
        bank.emplace("k", window("x"), DISK)
        for _ in range(3):
            assert bank.get("k").context_elements == ["x"]
        assert store.calls["read"] == 3
        assert bank.page_keys(stored=False) == []
        assert bank.page_keys() == ["k"]

    def test_disk_only_after_memory_serves_no_old_copy(self, bank):
        bank.emplace("k", window("old"))
        bank.emplace("k", window("new"), DISK)
        assert bank.get("k").context_elements == ["new"]

    def test_eviction_keeps_what_is_stored(self, bank):
        bank.emplace("k", window("x"))
        assert bank.evict("k")
        assert not bank.evict("k")
        assert bank.get("k").context_elements == ["x"]

    def test_eviction_of_a_memory_page_ends_it(self, bank):
        bank.emplace("k", window("x"), MEMORY)
        assert bank.evict("k")
        assert bank.get("k").is_empty()

    def test_clear_cache_touches_cached_pages_only(self, bank):
        bank.emplace("cached", window("c"), CACHED)
        bank.emplace("both", window("b"), BOTH)
        bank.emplace("memory", window("m"), MEMORY)
        assert bank.clear_cache() == 1
        assert [bank.get(key).context_elements for key in ("cached", "both", "memory")] == [["c"], ["b"], ["m"]]

    def test_a_page_survives_the_bank(self, bank, store):
        bank.create_context_window("k", MINE, window("x"), BOTH)
        again = ContextBank(store, bank.authority)
        assert again.get("k").context_elements == ["x"]
        assert again.page_keys() == ["k"]
        again.close()

    def test_another_writer_is_seen_at_once(self, bank, store):
        other = ContextBank(store, bank.authority)
        bank.emplace("k", window("first"))
        assert other.get("k").context_elements == ["first"]
        bank.emplace("k", window("second"))
        assert other.get("k").context_elements == ["second"]
        other.delete("k")
        assert bank.get("k").is_empty()
        other.close()

    @pytest.mark.parametrize("source", [MEMORY, BOTH, DISK, CACHED])
    @pytest.mark.parametrize("target", [MEMORY, BOTH, DISK, CACHED])
    def test_unscoped_callers_move_pages_by_storing(self, bank, source, target):
        bank.emplace("k", window("old"), source)
        bank.emplace("k", window("new"), target)
        assert bank.get("k").context_elements == ["new"]
        assert bank.page_keys() == ["k"]


class TestCachePolicies:
    def fill(self, bank, policy):
        bank.admin().configure_cache(CacheConfig(max_entries=2, policy=policy))
        for key in ("b", "a"):
            bank.emplace(key, window(key), CACHED)
        for _ in range(3):
            bank.get("b")
        bank.get("a")
        bank.emplace("c", window("c"), CACHED)
        return {key for _, key in bank.pages.state.cache.addresses()}

    @pytest.mark.parametrize(
        ("policy", "kept"),
        [
            (EvictionPolicy.LRU, {"a", "c"}),
            (EvictionPolicy.LFU, {"a", "b"}),
            (EvictionPolicy.FIFO, {"a", "c"}),
            (EvictionPolicy.MANUAL, {"a", "b", "c"}),
        ],
    )
    def test_who_goes_first(self, bank, policy, kept):
        assert self.fill(bank, policy) == kept
        assert all(bank.get(key).context_elements == [key] for key in "abc")

    def test_bytes_are_limited_too(self, bank):
        bank.admin().configure_cache(CacheConfig(max_memory_bytes=3000))
        for number in range(5):
            bank.emplace(f"k{number}", window("x" * 1000), CACHED)
        assert 1 <= bank.cache_statistics()["entries"] <= 2
        assert bank.cache_statistics()["bytes"] <= 3000

    def test_over_the_limit_without_candidates_ends(self, bank):
        bank.admin().configure_cache(CacheConfig(max_entries=0))
        for number in range(3):
            bank.emplace(f"k{number}", window("x"), BOTH)
        assert bank.get("k0").context_elements == ["x"]


class TestVersions:
    @pytest.mark.parametrize("mode", [MEMORY, BOTH, DISK])
    def test_versions_count_stores(self, bank, mode):
        for expected in range(3):
            bank.emplace("k", ContextWindow(version=99), mode)
            assert bank.get("k").version == expected
        bank.delete("k")
        bank.emplace("k", window(), mode)
        assert bank.get("k").version == 0

    @pytest.mark.parametrize("mode", [MEMORY, BOTH, DISK])
    def test_optimistic_stores(self, bank, mode):
        bank.emplace("k", window("a"), mode)
        bank.emplace("k", window("b"), mode, expected_version=0)
        with pytest.raises(VersionConflictError) as error:
            bank.emplace("k", window("c"), mode, expected_version=0)
        assert (error.value.expected, error.value.found) == (0, 1)
        assert bank.get("k").context_elements == ["b"]

    @pytest.mark.parametrize("mode", [MEMORY, BOTH])
    def test_twelve_threads_of_seventy_five_changes_lose_none(self, bank, mode):
        bank.emplace("k", window(), mode)

        def work(number):
            for step in range(75 if mode is MEMORY else 5):
                bank.mutate("k", lambda page, text=f"{number}:{step}": page.add_text(text))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        elements = bank.get("k").context_elements
        assert len(elements) == len(set(elements)) == (900 if mode is MEMORY else 60)

    async def test_concurrent_async_changes_lose_none(self, bank):
        bank.emplace("k", window(), MEMORY)

        async def change(number):
            async def block(page):
                await asyncio.sleep(0)
                page.add_text(str(number))

            await bank.amutate("k", block)

        await asyncio.gather(*[change(number) for number in range(20)])
        assert sorted(map(int, bank.get("k").context_elements)) == list(range(20))

    def test_a_failing_change_stores_nothing(self, bank):
        bank.emplace("k", window("x"))

        def fail(page):
            page.clear()
            raise KeyError

        with pytest.raises(KeyError):
            bank.mutate("k", fail)
        assert bank.get("k").context_elements == ["x"]
        assert bank.get("k").version == 0

    def test_a_change_that_is_always_overtaken_gives_up(self, bank, monkeypatch):
        monkeypatch.setattr("libctx_core.bank.changes.MAX_RETRIES", 3)
        attempts = []

        def overtaken(page):
            attempts.append(page.version)
            bank.emplace("k", window("faster"))

        bank.emplace("k", window("x"))
        with pytest.raises(VersionConflictError):
            bank.mutate("k", overtaken)
        assert attempts == [0, 1, 2]
        assert bank.get("k").context_elements == ["faster"]

    def test_merge_and_store(self, bank):
        assert not bank.fetch_merge_save("k", window("local"))
        mine = window("more")
        assert bank.fetch_merge_save("k", mine)
        assert bank.get("k").context_elements == ["more", "local"]
        assert mine.context_elements == ["more"]


class TestCallbacks:
    def test_a_retrieval_function_serves_and_reverts(self, bank, store):
        bank.emplace("k", window("stored"))
        bank.admin().set_retrieval("k", lambda key: window(f"served {key}"))
        assert bank.get("k").context_elements == ["served k"]
        assert bank.exists("virtual") is False
        bank.admin().set_retrieval("virtual", lambda key: window("v"))
        assert bank.exists("virtual")
        assert set(bank.page_keys()) == {"k", "virtual"}
        bank.admin().set_retrieval("k", None)
        assert bank.get("k").context_elements == ["stored"]

    def test_a_retrieval_function_must_return_a_page(self, bank):
        bank.admin().set_retrieval("k", lambda key: None)
        with pytest.raises(RetrievalEmptyError):
            bank.get("k")
        bank.admin().set_retrieval("k", lambda key: "text")
        with pytest.raises(PayloadError):
            bank.get("k")

    def test_a_denied_retrieval_is_not_called(self, bank, access):
        bank.admin().register_resource_metadata("k", THEIRS)
        bank.admin().set_retrieval("k", lambda key: pytest.fail("called"))
        with access.scope(scope(access)):
            denied(bank.get, "k")
            denied(bank.mutate, "k", lambda page: None)

    def test_a_write_back_function_replaces_the_store(self, bank, store):
        kept = {}
        bank.admin().set_write_back("k", lambda key, page: kept.update({key: page}) or True)
        bank.emplace("k", window("x"))
        assert kept["k"].context_elements == ["x"]
        assert store.calls["write"] == 0
        bank.mutate("k", lambda page: page.add_text("y"))
        assert kept["k"].context_elements == ["y"]

    def test_a_write_back_function_that_refuses_is_an_error(self, bank):
        bank.admin().set_write_back("k", lambda key, page: False)
        with pytest.raises(WriteBackError):
            bank.emplace("k", window("x"))

    def test_a_denied_write_calls_no_write_back(self, bank, access):
        bank.create_context_window("k", THEIRS, window(), MEMORY)
        bank.admin().set_write_back("k", lambda key, page: pytest.fail("called"))
        with access.scope(scope(access)):
            denied(bank.emplace, "k", window())
            denied(bank.append_element, "k", "x")

    @pytest.mark.parametrize("colour", ["sync", "async"])
    async def test_both_colours_of_callback_work_from_both_colours_of_call(self, bank, access, colour):
        seen = []

        def serve(key):
            seen.append(access.current_scope())
            return window("served")

        async def aserve(key):
            await asyncio.sleep(0)
            return serve(key)

        bank.create_context_window("k", MINE, window(), MEMORY)
        bank.admin().set_retrieval("k", serve if colour == "sync" else aserve)
        async with access.scope(scope(access)):
            assert (await bank.aget("k")).context_elements == ["served"]
            assert bank.get("k").context_elements == ["served"]
        assert len(seen) == 2
        assert None not in seen

    async def test_an_async_callback_runs_on_the_callers_own_loop(self, bank):
        loops = []

        async def serve(key):
            loops.append(asyncio.get_running_loop())
            return window("x")

        bank.admin().set_retrieval("k", serve)
        await bank.aget("k")
        assert loops == [asyncio.get_running_loop()]

    def test_t23_a_callback_may_use_its_own_page_and_reaches_no_other(self, bank, access):
        bank.create_context_window("k", MINE, window("stored"), MEMORY)
        bank.create_context_window("other", THEIRS, window("secret"), MEMORY)
        bank.emplace("shared", window("legacy"))
        seen = []

        def write_back(key, page):
            seen.append(bank.get(key).context_elements)
            for foreign in ("other", "shared"):
                seen.append(denied(bank.get, foreign).resource_key)
            return True

        bank.admin().set_write_back("k", write_back)
        both = Rights.all_on(Resource("resource-17"), Resource("resource-99"))
        with access.scope(scope(access, both)):
            bank.emplace("k", window("new"))
            assert bank.get("other").context_elements == ["secret"]
        assert seen == [["stored"], "other", "shared"]

    @pytest.mark.timeout(20)
    async def test_t23_a_callback_in_another_thread_does_not_deadlock(self, bank):
        bank.emplace("k", window("x"), MEMORY)

        async def serve(key):
            bank.admin().set_retrieval("k", None)
            return await bank.aget(key)

        bank.admin().set_retrieval("k", serve)
        assert (await bank.aget("k")).context_elements == ["x"]

    def test_t22_a_page_that_moves_while_it_is_fetched_is_decided_again(self, bank, access):
        bank.create_context_window("k", MINE, window("x"), MEMORY)
        moved = threading.Event()

        def serve(key):
            thread = threading.Thread(
                target=lambda: (bank.admin().register_resource_metadata("k", THEIRS), moved.set())
            )
            thread.start()
            thread.join()
            return window("secret")

        bank.admin().set_retrieval("k", serve)
        with access.scope(scope(access)):
            denied(bank.get, "k")
        assert moved.is_set()


class TestBetweenCheckAndAct:
    """Attack B: the enrolment changes between the decision and the store's transaction."""

    @pytest.mark.parametrize("action", ["write", "delete", "read"])
    def test_a_page_enrolled_elsewhere_in_between_is_not_touched(self, bank, access, store, action):
        bank.create_context_window("k", MINE, window("first"), DISK)

        def move(name):
            if name == action:
                store.before = lambda name: None
                store.put_metadata("k", THEIRS)

        store.before = move
        with access.scope(scope(access)):
            if action == "write":
                denied(bank.emplace, "k", window("overwritten"))
            elif action == "delete":
                denied(bank.delete, "k")
            else:
                denied(bank.get, "k")
        assert bank.get("k").context_elements == ["first"]


class TestTodoLists:
    def stored(self, bank):
        bank.emplace_todo_list("k", TodoList([TodoListTask(1, "a"), TodoListTask(2, "b")], ["began"]))

    def test_updates_match_by_number_and_add_nothing(self, bank):
        self.stored(bank)
        bank.emplace_todo_list("k", TodoList([TodoListTask(2, "B", is_complete=True), TodoListTask(9, "smuggled")]))
        todo = bank.get_todo_list("k")
        assert [(task.task_number, task.task, task.is_complete) for task in todo.tasks] == [
            (1, "a", False),
            (2, "B", True),
        ]
        assert todo.work_history == ["began"]
        assert todo.version == 1

    def test_unknown_numbers_alone_change_nothing(self, bank):
        self.stored(bank)
        bank.emplace_todo_list("k", TodoList([TodoListTask(8, "x"), TodoListTask(9, "y")]))
        assert [task.task for task in bank.get_todo_list("k").tasks] == ["a", "b"]

    def test_completions_only(self, bank):
        self.stored(bank)
        changed = TodoList([TodoListTask(1, "rewritten", is_complete=True)], ["forged"])
        bank.emplace_todo_list("k", changed, completions_only=True)
        todo = bank.get_todo_list("k")
        assert todo.find(1) == TodoListTask(1, "a", is_complete=True)
        assert todo.work_history == ["began"]

    def test_replacement(self, bank):
        self.stored(bank)
        bank.emplace_todo_list("k", TodoList([TodoListTask(5, "only")]), updates_only=False)
        assert [task.task_number for task in bank.get_todo_list("k").tasks] == [5]
        assert bank.get_todo_list("k").find(1) is None

    def test_the_same_rules_apply_to_disk_only_lists_and_keys(self, bank, access):
        bank.emplace_todo_list("d", TodoList([TodoListTask(1, "a")]), DISK)
        bank.emplace_todo_list("d", TodoList([TodoListTask(2, "b")]))
        assert [task.task for task in bank.get_todo_list("d").tasks] == ["a"]
        assert bank.todo_keys() == ["d"]
        assert bank.page_keys() == []
        assert bank.delete_todo_list("d")
        with access.scope(scope(access, only(read=True))), pytest.raises(ContextAccessDenied):
            bank.get_todo_list("d")
        assert KIND == "CONTEXT_WINDOW"
