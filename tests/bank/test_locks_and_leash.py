"""Locks hide, the leash limits, and neither ever widens what the scope allows."""

import asyncio

import pytest

from libctx_core.bank import ContextWindow, Leash, StorageMode, TodoList, TodoListTask, current_leash, introspection
from libctx_core.bank.leash import PERMISSIVE
from libctx_core.bank.locks import ContextLocks
from libctx_core.errors.bank import PageLockedError
from tests.bank.helpers import MINE, scope, window


class TestLocks:
    def test_a_page_lock_covers_its_page_and_every_page_of_its_bundle(self):
        locks = ContextLocks()
        locks.add("x", "a, b", is_page=True)
        assert [locks.page_is_locked(page) for page in ("x", "a", "b", "c")] == [True, True, True, False]

    def test_a_key_lock_holds_on_its_pages_or_everywhere(self):
        locks = ContextLocks()
        locks.add("secret", ["a"])
        locks.add("always")
        assert locks.key_is_locked("a", "secret")
        assert not locks.key_is_locked("b", "secret")
        assert locks.key_is_locked("any", "always")

    def test_page_and_key_locks_of_one_name_are_two_locks(self):
        locks = ContextLocks()
        locks.add("x", is_page=True)
        locks.add("x", locked=False)
        assert locks.page_is_locked("x")
        assert not locks.key_is_locked("p", "x")
        assert locks.names(is_page=True) == locks.names() == ["x"]
        assert locks.remove("x")
        assert not locks.remove("x")
        assert locks.page_is_locked("x")

    def test_names_are_compared_exactly(self):
        locks = ContextLocks()
        locks.add("Page", is_page=True)
        assert not locks.page_is_locked("page")

    @pytest.mark.parametrize(("answer", "holds"), [(True, False), (False, True), ("yes", True), (KeyError, True)])
    def test_a_passthrough_lets_in_only_on_true(self, answer, holds):
        def passthrough():
            if answer is KeyError:
                raise KeyError
            return answer

        locks = ContextLocks()
        locks.add("x", is_page=True, passthrough=passthrough)
        assert locks.page_is_locked("x") is holds

    def test_states_change(self):
        locks = ContextLocks()
        locks.add("x", is_page=True, locked=False)
        assert not locks.page_is_locked("x")
        assert locks.set_state("x", locked=True, is_page=True)
        assert locks.page_is_locked("x")
        assert not locks.set_state("none", locked=True)


class TestLockedPages:
    def test_a_locked_page_reads_as_empty_even_with_every_right(self, bank, access):
        bank.create_context_window("k", MINE, window("x"), StorageMode.DISK_ONLY)
        bank.admin().add_lock("k", is_page=True)
        with access.scope(scope(access)):
            assert bank.get("k").is_empty()
            with pytest.raises(PageLockedError):
                bank.mutate("k", lambda page: pytest.fail("ran"))
        bank.admin().set_lock_state("k", locked=False, is_page=True)
        assert bank.get("k").context_elements == ["x"]

    def test_t24_the_lock_comes_before_a_retrieval_function(self, bank):
        bank.admin().set_retrieval("k", lambda key: pytest.fail("called"))
        bank.admin().add_lock("k", is_page=True)
        assert bank.get("k").is_empty()

    def test_locked_todo_lists_read_as_empty(self, bank):
        bank.emplace_todo_list("k", TodoList([TodoListTask(1, "a")]))
        bank.admin().add_lock("bundle", "k", is_page=True)
        assert bank.get_todo_list("k").is_empty()

    def test_locked_keys_are_left_out_of_selection_also_on_new_and_disk_pages(self, bank):
        from libctx_core.tokens import TokenCounter

        bank.admin().add_lock("hidden")
        page = ContextWindow()
        page.add_lore_book_entry("hidden", "secret", alias_keys=["open"])
        page.add_lore_book_entry("shown", "public", linked_keys=["hidden"])
        bank.emplace("k", page, StorageMode.DISK_ONLY)
        counter = TokenCounter.for_encoding("cl100k_base")
        selected = bank.select("k", "hidden open shown", 100, counter)
        assert list(selected.lore_book_keys) == ["shown"]
        assert [result.entry.key for result in bank.query_lorebook("k")] == ["shown"]
        assert bank.simulate_lorebook_trigger("k", "hidden shown") == ["shown"]
        assert bank.search_memory("k", "secret").lorebook_matches == ()


class TestLeash:
    def test_nesting_intersects_and_never_broadens(self):
        outer = Leash.on(["a", "b"], allow_write=True)
        with introspection(outer), introspection(PERMISSIVE) as effective:
            assert effective == outer
            with introspection(Leash.on(["b", "c"])) as inner:
                assert inner == Leash.on(["b"])
            assert current_leash() == outer
        assert current_leash() is None

    def test_wildcards(self):
        everything = Leash.on(["*"])
        assert everything.intersect(Leash.on(["a"])).allowed_page_keys == {"a"}
        assert Leash.on(["a"]).intersect(everything).allowed_page_keys == {"a"}
        assert everything.may_read("anything")
        assert not Leash().may_read("a")

    @pytest.mark.parametrize(
        ("exists", "create", "allowed"), [(True, False, True), (False, False, False), (False, True, True)]
    )
    def test_creation_is_a_right_of_its_own(self, exists, create, allowed):
        leash = Leash.on(["a"], allow_write=True, allow_page_creation=create)
        assert leash.may_write("a", exists=exists) is allowed
        assert not leash.may_write("b", exists=True)

    def test_the_callers_set_can_change_without_effect(self):
        pages = {"a"}
        leash = Leash.on(pages)
        pages.add("b")
        assert not leash.covers("b")

    async def test_leaving_it_in_another_context_widens_nothing(self):
        async def holds():
            with introspection(Leash.on(["a"])):
                yield

        generator = holds()
        with introspection(Leash.on(["b"])):
            await anext(generator)
            inner = current_leash()
            await asyncio.create_task(generator.aclose())
            assert current_leash() is inner
