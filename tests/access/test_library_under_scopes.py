"""Attack D and E on the whole library: threads, search, desks, shelves, memories, counts under scopes."""

import contextlib

import pytest

import libctx_core
from libctx_core import LibraryOfContext
from libctx_core.access import (
    Boundary,
    ContextAccess,
    ContextAccessDenied,
    EnforcementMode,
    Principal,
    Resource,
    Rights,
    UnscopedPolicy,
)
from libctx_core.errors import LibctxError, RecordNotFoundError, ScopeActiveError

REQUIRE, LEGACY = EnforcementMode.REQUIRE_ENROLLMENT, EnforcementMode.LEGACY_COMPATIBLE
TEXT = "The vault code of the {} office is {}."


@pytest.fixture
def access():
    return ContextAccess()


@pytest.fixture
def library(tmp_path, access):
    with LibraryOfContext(tmp_path / "library.sqlite", context_access=access, plugins=()) as library:
        yield library


def tenant(access, name, mode=REQUIRE, **options):
    return access.issue_root_scope(Principal(name), Rights.all_on(Boundary(name), **options), mode)


@pytest.fixture
def tenants(library, access):
    scopes = {name: tenant(access, name) for name in ("u1", "u10")}
    for name, scope in scopes.items():
        with access.scope(scope):
            governor = library.open_context_governor("s", collection=name)
            for number in range(12):
                governor.record("user", TEXT.format(name, f"{name}-{number}"))
            library.shelve(f"The handbook of {name} says: lock the vault.", collection=name)
    library.flush()
    return scopes


def texts(hits):
    return [hit.text for hit in hits]


class TestThreads:
    def test_the_first_write_enrols_and_needs_create(self, library, access):
        reader = access.issue_root_scope(Principal("r"), Rights.read_only(Boundary("u1")), REQUIRE)
        with access.scope(reader), pytest.raises(ContextAccessDenied):
            library.open_context_governor("new", collection="u1").record("user", "hello")
        assert library.threads() == []

    def test_another_tenants_thread_is_closed_in_every_way(self, library, access, tenants):
        event = library.open_context_governor("s", collection="u1").record("user", "last words")
        library.flush()
        with access.scope(tenants["u10"]):
            governor = library.open_context_governor("s", collection="u1")
            attempts = [
                lambda: governor.record("user", "intrusion"),
                lambda: governor.prepare("question?"),
                lambda: governor.build_prompt(),
                lambda: governor.recall("vault"),
                lambda: governor.open_event(event.event_id),
                lambda: list(governor.history()),
                lambda: governor.amend(event.event_id, "changed"),
                lambda: governor.protect_event(event.event_id),
                lambda: governor.revisions(event.event_id),
                lambda: governor.redact(event.event_id),
                lambda: governor.release(event.event_id),
                lambda: governor.remember([event.event_id]),
                lambda: list(governor.export()),
                lambda: governor.delete(),
                lambda: governor.retry_failed(event.event_id),
                lambda: governor.status(),
                lambda: library.delete_thread("s", collection="u1"),
                lambda: library.promote("s", event.event_id, collection="u1"),
            ]
            for attempt in attempts:
                with pytest.raises(LibctxError) as error:
                    attempt()
                assert "vault" not in str(error.value)
                assert "u1-" not in str(error.value)
        history = list(library.open_context_governor("s", collection="u1").history())
        assert len(history) == 13
        assert history[-1].text == "last words"

    def test_a_foreign_thread_and_a_missing_one_answer_alike(self, library, access, tenants):
        def outcome(session):
            with access.scope(tenants["u10"]), pytest.raises(ContextAccessDenied) as denial:
                library.open_context_governor(session, collection="u1").recall("vault")
            return denial.value.reason, str(denial.value)

        assert outcome("s") == outcome("nobody")

    def test_deleting_a_foreign_thread_and_a_missing_one_answer_alike(self, library, access, tenants):
        def outcome(session):
            with access.scope(tenants["u10"]), pytest.raises(ContextAccessDenied) as denial:
                library.delete_thread(session, collection="u1")
            return denial.value.reason, str(denial.value)

        assert outcome("s") == outcome("nobody")

    def test_prefix_namespaces_do_not_match(self, library, access, tenants):
        with access.scope(tenants["u1"]), pytest.raises(ContextAccessDenied):
            library.open_context_governor("s", collection="u10").recall("vault")

    def test_collections_with_the_separator_do_not_meet(self, library, access):
        first = access.issue_root_scope(Principal("p"), Rights.all_on(Resource("thread:a/b/c"), Boundary("a")), REQUIRE)
        with access.scope(first):
            library.open_context_governor("b/c", collection="a").record("user", "mine")
        second = access.issue_root_scope(Principal("q"), Rights.all_on(Boundary("a/b")), REQUIRE)
        with access.scope(second):
            library.open_context_governor("c", collection="a/b").record("user", "secret")
        with access.scope(first), pytest.raises(ContextAccessDenied):
            list(library.open_context_governor("c", collection="a/b").history())


class TestSearch:
    def test_what_is_found_is_ones_own_and_complete(self, library, access, tenants):
        for name, scope in tenants.items():
            with access.scope(scope):
                found = library.consult("vault code office", 50, everything=True)
            assert len(found) == 13
            assert all(name in hit.text.replace(".", "").split() or f"{name}-" in hit.text for hit in found)

    def test_every_reach_stays_inside(self, library, access, tenants):
        with access.scope(tenants["u1"]):
            for reach in ("thread", "owner", "collection"):
                governor = library.open_context_governor("s", collection="u1", reach=reach, teams=("u10",))
                assert all("u10" not in text for text in texts(governor.recall("vault code", 50)))
                prompt = governor.build_prompt(focus="vault code of the u10 office")
                assert "u10" not in str(prompt.messages).replace("vault code of the u10 office", "")
            assert all("u10" not in text for text in texts(library.consult("vault", 50, collection="u10")))

    @pytest.mark.parametrize(
        "query", ["x') OR '1'='1", "*", "%", '"', "NEAR(", "owner:1", "u10", "'; DROP TABLE owner; --", "\\"]
    )
    def test_no_query_text_reaches_further(self, library, access, tenants, query):
        with access.scope(tenants["u1"]):
            found = library.consult(query, 50, everything=True)
        assert all("u10" not in hit.text for hit in found)

    def test_scores_do_not_depend_on_what_others_hold(self, library, access, tenants):
        def scores():
            with access.scope(tenants["u1"]):
                return [(hit.text, hit.score) for hit in library.consult("vault handbook", 20, everything=True)]

        before = scores()
        with access.scope(tenants["u10"]):
            governor = library.open_context_governor("more", collection="u10")
            for number in range(40):
                governor.record("user", f"vault handbook vault handbook {number}")
        library.flush()
        assert scores() == before

    def test_asking_again_after_a_right_was_taken_finds_nothing_cached(self, library, access, tenants):
        with access.scope(tenants["u1"]):
            assert library.consult("vault", 5, everything=True)
        access.revoke(tenants["u1"])
        with access.scope(tenants["u1"]), pytest.raises(ContextAccessDenied):
            library.consult("vault", 5, everything=True)
        with access.scope(tenant(access, "nobody")):
            assert library.consult("vault", 5, everything=True) == []

    def test_a_recall_id_of_another_tenant_opens_nothing(self, library, access, tenants):
        foreign = library.open_context_governor("s", collection="u10").recall("vault", 1)[0].record_id
        with access.scope(tenants["u1"]):
            governor = library.open_context_governor("s", collection="u1")
            with pytest.raises(LibctxError) as there:
                governor.open_event(foreign)
            with pytest.raises(LibctxError) as nowhere:
                governor.open_event("e999999999")
            assert type(there.value) is type(nowhere.value)


class TestCountsAndNames:
    def test_lists_and_statistics_show_ones_own(self, library, access, tenants):
        with access.scope(tenants["u1"]):
            assert [thread.key.collection for thread in library.threads()] == ["u1"]
            assert library.threads("u10") == []
            statistics = library.stats()
        assert (statistics.threads, statistics.events) == (1, 12)
        assert statistics.bytes is None
        assert library.stats().threads == 2

    def test_a_legacy_scope_sees_what_is_not_enrolled(self, library, access, tenants):
        library.open_context_governor("open", collection="shared").record("user", "for everybody")
        with access.scope(tenant(access, "u1", LEGACY)):
            assert {thread.key.collection for thread in library.threads()} == {"u1", "shared"}
        with access.scope(tenants["u1"]):
            assert {thread.key.collection for thread in library.threads()} == {"u1"}

    def test_administration_is_closed_inside_a_scope(self, library, access, tenants, tmp_path):
        with access.scope(tenants["u1"]):
            for call in (lambda: library.backup(tmp_path / "copy"), library.vacuum, library.reindex):
                with pytest.raises(ScopeActiveError):
                    call()
        assert not (tmp_path / "copy").exists()


class TestShelvesAndMemories:
    def test_a_foreign_shelf_is_closed(self, library, access, tenants):
        with access.scope(tenants["u10"]):
            with pytest.raises(ContextAccessDenied):
                library.shelve("planted", collection="u1")
            assert library.consult("handbook", 5, collection="u1") == []

    def test_a_foreign_book_cannot_be_forgotten(self, library, access, tenants):
        book = library.consult("handbook lock", 1, collection="u10")[0].record_id
        with access.scope(tenants["u1"]):
            for record_id in (book, "r999999999999"):
                with pytest.raises(RecordNotFoundError):
                    library.forget(record_id)
        assert library.consult("handbook lock", 1, collection="u10")

    def test_foreign_memories_are_closed(self, library, access, tenants):
        with access.scope(tenants["u1"]):
            library.memories("u1").remember("The vault opens at nine.")
        with access.scope(tenants["u10"]):
            with pytest.raises(LibctxError):
                library.memories("u1").remember("planted")
            with contextlib.suppress(LibctxError):
                assert library.memories("u1").search("vault").hits == ()


class TestPolicies:
    def test_a_library_may_require_scopes_everywhere(self, tmp_path, access):
        with LibraryOfContext(
            tmp_path / "strict.sqlite", context_access=access, access="required", plugins=()
        ) as library:
            for call in (
                lambda: library.open_context_governor("s").record("user", "x"),
                lambda: library.consult("x"),
                lambda: library.shelve("x"),
                library.threads,
            ):
                try:
                    assert not call()
                except ContextAccessDenied:
                    continue
            with access.scope(tenant(access, "u1")):
                library.open_context_governor("s", collection="u1").record("user", "x")
            assert library.authority.unscoped_policy is UnscopedPolicy.DENY

    def test_a_view_and_a_governor_hold_their_scope_in_threads_too(self, library, access, tenants):
        from concurrent.futures import ThreadPoolExecutor

        view = library.scoped(tenants["u1"])
        with ThreadPoolExecutor(2) as pool:
            found = pool.submit(view.consult, "vault", 50, everything=True).result()
            governor = library.open_context_governor("s", collection="u10", scope=tenants["u1"])
            with pytest.raises(ContextAccessDenied):
                pool.submit(governor.recall, "vault").result()
        assert found
        assert all("u10" not in hit.text for hit in found)

    def test_the_default_access_is_the_modules(self, tmp_path):
        with LibraryOfContext(tmp_path / "open.sqlite", plugins=()) as library:
            assert library.authority.access is libctx_core.access.access
