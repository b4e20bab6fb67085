"""What a scope lets through and keeps out of a bank, and what a denied call never touches."""

import pytest

from libctx_core.access import (
    Boundary,
    ContextAccessDenied,
    DenialReason,
    Operation,
    Principal,
    Resource,
    ResourceMetadata,
    Rights,
    UnscopedPolicy,
)
from libctx_core.bank import CacheConfig, ContextWindow, LoreBook, StorageMode, TodoList, TodoListTask
from libctx_core.errors import InvalidIdentifierError, InvalidMetadataError, ResourceExistsError, ScopeActiveError
from libctx_core.errors.bank import PayloadError
from libctx_core.tokens import TokenCounter
from tests.bank.helpers import ALL_MINE, KIND, LEGACY, MINE, REQUIRE, THEIRS, TODO_KIND, denied, only, scope, window

MODES = [StorageMode.MEMORY_ONLY, StorageMode.MEMORY_AND_DISK, StorageMode.DISK_ONLY, StorageMode.DISK_WITH_CACHE]


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def page(bank, mode):
    bank.create_context_window("page", MINE, window("private value"), mode)
    return "page"


class TestReading:
    def test_unscoped_code_reads_a_protected_page_as_before(self, bank, page):
        assert bank.get(page).context_elements == ["private value"]

    def test_an_unauthorized_read_is_denied(self, bank, access, page, store):
        store.calls.clear()
        with access.scope(scope(access, Rights.all_on(Resource("other")))):
            error = denied(bank.get, page)
        assert (error.operation, error.resource_kind, error.resource_key) == (Operation.READ, KIND, page)
        assert error.reason is DenialReason.MISSING_PERMISSION
        assert store.values_touched() == 0

    def test_a_page_key_never_matches_a_selector(self, bank, access, page):
        with access.scope(scope(access, Rights.all_on(Resource(page), Boundary(page)))):
            denied(bank.get, page)

    def test_a_boundary_covers_its_resources(self, bank, access, page):
        with access.scope(scope(access, Rights.read_only(Boundary("workspace-3")))):
            assert bank.get(page).context_elements == ["private value"]

    def test_a_page_without_enrolment_is_shared_in_a_legacy_scope_only(self, bank, access):
        bank.emplace("shared", window("x"))
        with access.scope(scope(access, mode=LEGACY)):
            assert bank.get("shared").context_elements == ["x"]
        with access.scope(scope(access)):
            assert denied(bank.get, "shared").reason is DenialReason.METADATA_UNAVAILABLE
            assert denied(bank.emplace, "shared", window()).operation is Operation.WRITE
            assert denied(bank.emplace, "new", window()).operation is Operation.CREATE

    def test_what_is_read_is_a_copy(self, bank, access, page):
        with access.scope(scope(access)):
            bank.get(page).context_elements.append("changed")
            assert bank.get(page).context_elements == ["private value"]

    def test_references_are_refused_under_any_scope(self, bank, access, page):
        bank.emplace("shared", window("x"))
        for rights_mode, key in ((REQUIRE, page), (LEGACY, page), (LEGACY, "shared")):
            with access.scope(scope(access, mode=rights_mode)):
                assert denied(bank.get, key, copy=False).reason is DenialReason.UNSAFE_REFERENCE
                error = denied(bank.with_reference, key, lambda window: pytest.fail("ran"))
                assert (error.operation, error.reason) == (Operation.WRITE, DenialReason.UNSAFE_REFERENCE)
                assert denied(bank.banked_reference).reason is DenialReason.UNSAFE_REFERENCE
                assert denied(bank.get_todo_list, "todo", copy=False).reason in {
                    DenialReason.UNSAFE_REFERENCE,
                    DenialReason.METADATA_UNAVAILABLE,
                }

    def test_references_are_there_without_a_scope(self, bank):
        bank.emplace("live", window("x"), StorageMode.MEMORY_ONLY)
        bank.get("live", copy=False).add_text("y")
        assert bank.get("live").context_elements == ["x", "y"]
        assert bank.with_reference("live", lambda live: len(live.context_elements)) == 2

    def test_a_query_is_denied_like_a_read(self, bank, access, page):
        with access.scope(scope(access, only(write=True))):
            for call in (bank.query_lorebook, bank.search_memory, bank.simulate_lorebook_trigger):
                arguments = (page,) if call == bank.query_lorebook else (page, "text")
                assert denied(call, *arguments).operation is Operation.READ

    def test_filling_a_prompt_cannot_bypass_the_scope(self, bank, access, page):
        counter = TokenCounter.for_encoding("cl100k_base")
        with access.scope(scope(access, only(write=True, list=True))):
            assert denied(bank.select, page, "private value", 100, counter).operation is Operation.READ
        with access.scope(scope(access, only(read=True))):
            assert bank.select(page, "private", 100, counter).context_elements == ["private value"]

    async def test_the_async_twin_denies_the_same(self, bank, access, page):
        async with access.scope(scope(access, only(write=True))):
            with pytest.raises(ContextAccessDenied):
                await bank.aget(page)
            await bank.aappend_element(page, "more")
        async with access.scope(scope(access)):
            assert (await bank.aget(page)).context_elements == ["private value", "more"]


class TestWriting:
    def test_a_write_needs_write(self, bank, access, page, store):
        store.calls.clear()
        with access.scope(scope(access, only(read=True, create=True, delete=True, list=True))):
            error = denied(bank.emplace, page, window("overwritten"))
            assert (error.operation, error.reason) == (Operation.WRITE, DenialReason.MISSING_PERMISSION)
        assert store.values_touched() == 0
        assert bank.get(page).context_elements == ["private value"]

    def test_t16_create_on_a_pre_enrolled_key_suffices_once(self, bank, access):
        bank.admin().register_resource_metadata("k", MINE)
        with access.scope(scope(access, only(create=True))):
            bank.emplace("k", window("first"))
            assert denied(bank.emplace, "k", window("second")).operation is Operation.WRITE
        assert bank.get("k").context_elements == ["first"]

    def test_t16_write_alone_does_not_create(self, bank, access):
        bank.admin().register_resource_metadata("k", MINE)
        with access.scope(scope(access, only(write=True))):
            assert denied(bank.emplace, "k", window("first")).operation is Operation.CREATE

    def test_t16_enrolled_creation_on_a_pre_enrolled_key_always_fails(self, bank, access):
        bank.admin().register_resource_metadata("k", MINE)
        with access.scope(scope(access)), pytest.raises(ResourceExistsError):
            bank.create_context_window("k", MINE, window())

    def test_a_mutation_needs_read_and_write_and_leaves_the_value_otherwise(self, bank, access, page):
        for rights in (only(read=True), only(write=True), only(create=True)):
            with access.scope(scope(access, rights)):
                denied(bank.mutate, page, lambda window: pytest.fail("ran"))
        assert bank.get(page).context_elements == ["private value"]
        with access.scope(scope(access, only(read=True, write=True))):
            assert bank.mutate(page, lambda window: window.add_text("y")).context_elements == ["private value", "y"]

    def test_t19_write_alone_appends_and_replaces_but_returns_no_content(self, bank, access, page):
        with access.scope(scope(access, only(write=True))):
            assert bank.append_element(page, "blind") is None
            assert bank.put_entry(page, LoreBook("k", "v")) is None
            assert bank.emplace(page, window("replaced")) is None
            denied(bank.get, page)
            denied(bank.fetch_merge_save, page, window())

    def test_a_write_only_scope_updates_a_known_page_without_enumerate(self, bank, access, page):
        with access.scope(scope(access, only(write=True))):
            bank.emplace(page, window("updated"))
            assert bank.page_keys() == []
        assert bank.get(page).context_elements == ["updated"]

    def test_t20_no_reference_is_kept_in_any_direction(self, bank, access, page):
        kept = []
        given = window("given")
        with access.scope(scope(access)):
            bank.emplace(page, given)
            given.add_text("later")
            result = bank.mutate(page, kept.append)
            kept[0].add_text("later still")
            result.add_text("and later")
            assert bank.get(page).context_elements == ["given"]

    def test_what_is_no_page_is_refused(self, bank):
        for call in (lambda: bank.emplace("k", TodoList()), lambda: bank.emplace_todo_list("k", window())):
            with pytest.raises(PayloadError):
                call()


class TestCreating:
    def test_the_seeds_example(self, bank, access, mode):
        rights = Rights(readable_resources={Resource("resource-17")}, creatable_resources={Resource("resource-17")})
        with access.scope(scope(access, rights)):
            private = ContextWindow()
            private.add_text("private value")
            bank.create_context_window("private-page", MINE, private, mode)
            private.add_text("kept by the caller")
            assert bank.get("private-page").context_elements == ["private value"]

    def test_creation_needs_create_for_the_proposed_enrolment(self, bank, access, mode, store):
        store.calls.clear()
        with access.scope(scope(access)):
            error = denied(bank.create_context_window, "k", THEIRS, window(), mode)
        assert (error.operation, error.reason) == (Operation.CREATE, DenialReason.MISSING_PERMISSION)
        assert store.values_touched() == 0

    @pytest.mark.parametrize("other", MODES)
    def test_t17_a_key_is_taken_in_every_plane(self, bank, access, page, other):
        with access.scope(scope(access)), pytest.raises(ResourceExistsError):
            bank.create_context_window(page, MINE, window(), other)
        bank.emplace("unenrolled", window(), StorageMode.MEMORY_ONLY)
        with pytest.raises(ResourceExistsError):
            bank.create_context_window("unenrolled", MINE, window(), other)

    def test_wrong_arguments_are_value_errors(self, bank):
        with pytest.raises(InvalidMetadataError):
            bank.create_context_window("k", ResourceMetadata(TODO_KIND, "r"), window())
        for key in ("", "  ", 7, "a\x00b", "__banked_context", "x" * 5000):
            with pytest.raises(InvalidIdentifierError):
                bank.create_context_window(key, MINE, window())
        newer = ResourceMetadata(KIND, "r", None, 2)
        assert denied(bank.create_context_window, "k", newer, window()).reason is DenialReason.INVALID_METADATA

    def test_todo_lists_are_created_with_their_own_kind(self, bank, access, mode):
        metadata = ResourceMetadata(TODO_KIND, "resource-17", "workspace-3")
        todo = TodoList([TodoListTask(1, "write tests")])
        with access.scope(scope(access)):
            bank.create_todo_list("k", metadata, todo, mode)
            assert bank.get_todo_list("k").find(1).task == "write tests"
        with access.scope(scope(access, Rights())):
            assert denied(bank.get_todo_list, "k").resource_kind == TODO_KIND
            assert denied(bank.emplace_todo_list, "k", todo).operation is Operation.WRITE


class TestDeletingAndEvicting:
    def test_delete_needs_delete(self, bank, access, page):
        with access.scope(scope(access, only(read=True, write=True, create=True, list=True))):
            assert denied(bank.delete, page).operation is Operation.DELETE
            assert denied(bank.evict, page).operation is Operation.DELETE
            denied(bank.delete_todo_list, "todo")
            denied(bank.evict, "todo", todo=True)
        assert bank.get(page).context_elements == ["private value"]
        with access.scope(scope(access, only(delete=True))):
            assert bank.delete(page)
        assert bank.get(page).is_empty()
        assert bank.admin().get_resource_metadata(page, KIND) is None

    def test_t35_a_deleted_key_becomes_shared_unless_it_stays_reserved(self, bank, access, page):
        assert bank.delete(page, reserve=True)
        other = scope(access, Rights.all_on(Resource("other")), LEGACY)
        with access.scope(other):
            denied(bank.emplace, page, window("mine now"))
        bank.admin().delete_resource_metadata(page, KIND)
        with access.scope(other):
            bank.emplace(page, window("mine now"))

    def test_evict_all_stops_at_the_first_denial(self, bank, access):
        bank.create_context_window("a", MINE, window("a"), StorageMode.MEMORY_AND_DISK)
        bank.create_context_window("b", THEIRS, window("b"), StorageMode.MEMORY_AND_DISK)
        with access.scope(scope(access)):
            denied(bank.evict_all)
        assert bank.evict_all() == 1
        assert bank.get("a").context_elements == ["a"]

    def test_clear_cache_keeps_what_the_scope_may_not_delete(self, bank, access):
        for key, metadata in (("a", MINE), ("b", THEIRS)):
            bank.create_context_window(key, metadata, window(key), StorageMode.DISK_WITH_CACHE)
        with access.scope(scope(access)):
            assert bank.clear_cache() == 1
        assert bank.cache_statistics()["entries"] == 1
        assert bank.clear_cache() == 1

    def test_automatic_eviction_keeps_another_tenants_pages(self, bank, access, events):
        bank.admin().configure_cache(CacheConfig(max_entries=1))
        bank.create_context_window("theirs", THEIRS, window("x"), StorageMode.DISK_WITH_CACHE)
        with access.scope(scope(access, only(create=True, write=True))):
            bank.create_context_window("mine", MINE, window("y"), StorageMode.DISK_WITH_CACHE)
        kept = set(bank.pages.state.cache.addresses())
        assert kept == {(KIND, "theirs"), (KIND, "mine")}
        assert events == []


class TestListing:
    def test_keys_are_filtered_by_enumerate(self, bank, access):
        bank.create_context_window("mine", MINE, window(), StorageMode.MEMORY_ONLY)
        bank.create_context_window("also", ResourceMetadata(KIND, "z", "workspace-3"), window(), StorageMode.DISK_ONLY)
        bank.create_context_window("theirs", THEIRS, window(), StorageMode.MEMORY_AND_DISK)
        bank.emplace("shared", window())
        assert set(bank.page_keys()) == {"mine", "also", "theirs", "shared"}
        by_boundary = Rights(enumerable_resources={Boundary("workspace-3")})
        with access.scope(scope(access, by_boundary)):
            assert set(bank.page_keys()) == {"mine", "also"}
        with access.scope(scope(access, by_boundary, LEGACY)):
            assert set(bank.page_keys()) == {"mine", "also", "shared"}

    def test_t27_no_right_lists_nothing_or_is_denied_on_demand(self, bank, access, page):
        with access.scope(scope(access, only(read=True))):
            assert bank.page_keys() == []
            assert denied(bank.page_keys, strict=True).resource_key == "<enumeration>"

    def test_t26_one_malformed_enrolment_hides_one_key_and_is_reported(self, bank, access, tmp_path, events, store):
        bank.create_context_window("good", MINE, window(), StorageMode.DISK_ONLY)
        bank.create_context_window("bad", MINE, window(), StorageMode.DISK_ONLY)
        damage(tmp_path, store)
        with access.scope(scope(access)):
            assert bank.page_keys() == ["good"]
        assert [(event.name, event.resource_key) for event in events] == [("access.excluded", "bad")]

    def test_orphans_are_not_listed(self, bank, access):
        bank.admin().register_resource_metadata("orphan", MINE)
        with access.scope(scope(access)):
            assert bank.page_keys() == []
        assert bank.page_keys() == []

    def test_statistics_count_visible_pages_only(self, bank, access):
        bank.create_context_window("theirs", THEIRS, window("x"), StorageMode.MEMORY_AND_DISK)
        with access.scope(scope(access)):
            assert bank.cache_statistics() == {"entries": 0, "bytes": 0}


def damage(tmp_path, store):
    """Make the enrolment of the page `bad` malformed."""
    sidecar = tmp_path / "lore" / "bad.bank.access"
    if sidecar.exists():
        sidecar.write_bytes(b"not-json")
        return
    from libctx_core.store.database import Database

    database = Database(tmp_path / "library.sqlite")
    database.write(lambda c: c.execute("UPDATE owner SET metadata_version = NULL WHERE key = 'bad'"))
    database.close()


class TestOrphansAndDamage:
    def test_an_enrolment_without_payload_authorizes_nothing(self, bank, access):
        bank.admin().register_resource_metadata("orphan", MINE)
        with access.scope(scope(access)):
            for call in (bank.get, bank.delete, bank.evict, bank.exists):
                assert denied(call, "orphan").reason is DenialReason.INVALID_METADATA
            error = denied(bank.mutate, "orphan", lambda window: None)
            assert error.reason is DenialReason.INVALID_METADATA

    def test_a_malformed_enrolment_denies_everybody(self, bank, access, tmp_path, store):
        bank.create_context_window("bad", MINE, window("x"), StorageMode.DISK_ONLY)
        damage(tmp_path, store)
        for mode in (LEGACY, REQUIRE):
            with access.scope(scope(access, mode=mode)):
                assert denied(bank.get, "bad").reason is DenialReason.INVALID_METADATA
                assert denied(bank.emplace, "bad", window()).reason is DenialReason.INVALID_METADATA
        with pytest.raises((ResourceExistsError, ContextAccessDenied)):
            bank.create_context_window("bad", MINE, window())
        problems = {(finding.problem, finding.key) for finding in bank.admin().doctor()}
        assert ("invalid", "bad") in problems

    def test_t36_doctor_finds_orphans_unenrolled_and_duplicates(self, bank):
        bank.admin().register_resource_metadata("orphan", ResourceMetadata(KIND, "o"))
        bank.emplace("unenrolled", window())
        for key in ("one", "two"):
            bank.create_context_window(key, MINE, window(), StorageMode.DISK_ONLY)
        found = {(finding.problem, finding.key) for finding in bank.admin().doctor()}
        assert found == {("orphan", "orphan"), ("unenrolled", "unenrolled"), ("duplicate", "one"), ("duplicate", "two")}


class TestBankedContext:
    def test_t21_swapping_a_page_in_does_not_make_it_public(self, bank, access):
        bank.create_context_window("secret", THEIRS, window("their secret"), StorageMode.DISK_ONLY)
        bank.admin().register_resource_metadata("", ResourceMetadata("BANKED_CONTEXT", "resource-17"))
        both = Rights.all_on(Resource("resource-17"), Resource("resource-99"))
        with access.scope(scope(access, both)):
            bank.swap_bank("secret")
            assert bank.get_banked().context_elements == ["their secret"]
        with access.scope(scope(access)):
            error = denied(bank.get_banked)
            assert error.resource_key == "secret"
            denied(bank.swap_bank, "secret")
            bank.clear_banked()
            assert bank.get_banked().is_empty()

    def test_the_slot_has_its_own_enrolment(self, bank, access):
        bank.update_banked(window("active"))
        with access.scope(scope(access)):
            assert denied(bank.get_banked).reason is DenialReason.METADATA_UNAVAILABLE
            assert denied(bank.update_banked, window()).resource_key == "<banked-context>"
        with access.scope(scope(access, mode=LEGACY)):
            assert bank.get_banked().context_elements == ["active"]
            assert denied(bank.get_banked, copy=False).reason is DenialReason.UNSAFE_REFERENCE
        bank.admin().register_resource_metadata("ignored", ResourceMetadata("BANKED_CONTEXT", "resource-17"))
        with access.scope(scope(access, only(read=True))):
            assert bank.get_banked().context_elements == ["active"]
            assert denied(bank.update_banked, window()).operation is Operation.WRITE
        assert bank.banked_reference() is bank.banked_reference()
        assert bank.get_banked(copy=False) is bank.banked_reference()

    def test_t32_no_page_can_have_its_storage_name(self, bank):
        with pytest.raises(InvalidIdentifierError):
            bank.get("__banked_context")


ACTIONS = {
    "enrol": lambda admin: admin.register_resource_metadata("k", MINE),
    "unenrol": lambda admin: admin.delete_resource_metadata("k", KIND),
    "look": lambda admin: admin.get_resource_metadata("k", KIND),
    "retrieval": lambda admin: admin.set_retrieval("k", lambda key: window()),
    "write-back": lambda admin: admin.set_write_back("k", lambda key, page: True),
    "remote": lambda admin: admin.set_remote(None),
    "cache": lambda admin: admin.configure_cache(CacheConfig()),
    "mode": lambda admin: admin.set_storage_mode("k", StorageMode.DISK_ONLY),
    "storage": lambda admin: admin.storage_metadata(),
    "add lock": lambda admin: admin.add_lock("k", is_page=True),
    "remove lock": lambda admin: admin.remove_lock("k"),
    "unlock": lambda admin: admin.set_lock_state("k", locked=False),
    "locks": lambda admin: admin.lock_names(),
    "doctor": lambda admin: admin.doctor(),
}


class TestAdministration:
    """T18 and T39: what could lead around a scope is administration."""

    @pytest.mark.parametrize("action", ACTIONS)
    def test_nothing_of_it_works_inside_a_scope(self, bank, access, action):
        act = ACTIONS[action]
        act(bank.admin())
        everything = Rights.all_on(Resource("resource-17"), Boundary("workspace-3"), delegable=True)
        with access.scope(scope(access, everything, LEGACY)), pytest.raises(ScopeActiveError):
            act(bank.admin())
        with pytest.raises(ScopeActiveError):
            act(bank.scoped(scope(access, everything, LEGACY)).admin())

    def test_t38_an_unusable_enrolment_is_not_stored(self, bank):
        for metadata in (ResourceMetadata(KIND, "r", None, 2), ResourceMetadata("NO_SUCH_KIND", "r")):
            with pytest.raises(InvalidMetadataError):
                bank.admin().register_resource_metadata("k", metadata)

    def test_t39_where_unscoped_use_is_denied_the_token_administers(self, store):
        from libctx_core.access import Authority, ContextAccess
        from libctx_core.bank import ContextBank
        from libctx_core.errors import AdminTokenError

        strict = ContextAccess(unscoped_policy=UnscopedPolicy.DENY)
        token = strict.take_admin_token()
        bank = ContextBank(store, Authority(strict))
        assert denied(bank.get, "k").reason is DenialReason.UNSCOPED_EXECUTION
        assert denied(bank.page_keys).reason is DenialReason.UNSCOPED_EXECUTION
        with pytest.raises(AdminTokenError):
            bank.admin().doctor()
        bank.admin(token).register_resource_metadata("k", MINE)

    def test_t37_kinds_do_not_share_a_storage_mode(self, bank):
        bank.emplace("same", window(), StorageMode.DISK_ONLY)
        bank.emplace_todo_list("same", TodoList(), StorageMode.MEMORY_ONLY)
        modes = {(entry.kind, entry.storage_mode) for entry in bank.admin().storage_metadata()}
        assert modes == {(KIND, StorageMode.DISK_ONLY), (TODO_KIND, StorageMode.MEMORY_ONLY)}

    @pytest.mark.parametrize("target", MODES)
    def test_t17_moving_a_page_takes_its_enrolment_along(self, bank, access, page, target):
        bank.admin().set_storage_mode(page, target)
        with access.scope(scope(access, Rights.all_on(Resource("other")), LEGACY)):
            denied(bank.get, page)
        with access.scope(scope(access)):
            assert bank.get(page).context_elements == ["private value"]
        assert bank.page_keys() == [page]

    def test_t17_a_scoped_caller_cannot_choose_another_plane(self, bank, access, page, mode):
        other = StorageMode.MEMORY_ONLY if mode is not StorageMode.MEMORY_ONLY else StorageMode.DISK_ONLY
        with access.scope(scope(access)):
            with pytest.raises(ScopeActiveError):
                bank.emplace(page, window("x"), other)
            bank.emplace(page, window("x"), mode)
        bank.admin().register_resource_metadata("enrolled", MINE)
        with access.scope(scope(access)), pytest.raises(ScopeActiveError):
            bank.emplace("enrolled", window("x"), StorageMode.MEMORY_ONLY)


class TestHandles:
    def test_a_view_holds_its_scope_whatever_the_context_says(self, bank, access, page):
        view = bank.scoped(scope(access, only(read=True)))
        assert view.get(page).context_elements == ["private value"]
        with access.scope(scope(access, Rights())):
            assert view.get(page).context_elements == ["private value"]
        with access.scope(scope(access)):
            denied(view.emplace, page, window())
            bank.emplace(page, window("updated"))
        assert view.get(page).context_elements == ["updated"]

    def test_child_principals_act_with_their_own_rights(self, bank, access, page):
        delegable = Rights.all_on(Resource("resource-17"), delegable=True)
        with access.scope(scope(access, delegable)):
            with access.child_scope(Principal("worker"), only(read=True)):
                assert bank.get(page).context_elements == ["private value"]
                denied(bank.emplace, page, window())
            bank.emplace(page, window("x"))

    def test_rights_are_those_of_the_moment_of_issue(self, bank, access, page):
        selectors = set(ALL_MINE.readable_resources)
        issued = scope(access, Rights(readable_resources=selectors))
        selectors.clear()
        with access.scope(issued):
            assert bank.get(page).context_elements == ["private value"]
