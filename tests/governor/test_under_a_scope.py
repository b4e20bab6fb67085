"""Threads, shelves, desks, memories and counts under scopes: decided before a value is touched."""

import pytest

from libctx_core import LibraryOfContext
from libctx_core.access import (
    Boundary,
    ContextAccess,
    EnforcementMode,
    Principal,
    Resource,
    ResourceMetadata,
    Rights,
)
from libctx_core.errors import ContextAccessDenied, EventNotFoundError, RecordNotFoundError, ScopeActiveError

QUESTION = "What is the code of the vault?"


@pytest.fixture
def access():
    return ContextAccess()


@pytest.fixture
def library(access):
    with LibraryOfContext(":memory:", plugins=[], context_access=access) as opened:
        yield opened


def tenant(access, name, *, mode=EnforcementMode.REQUIRE_ENROLLMENT):
    """Return a scope with every right on one boundary."""
    return access.issue_root_scope(Principal(name), Rights.all_on(Boundary(name)), mode)


@pytest.fixture
def two(library, access):
    """Two tenants, each with a thread, a book and a memory in a collection of its own."""
    scopes = {}
    for name, code in (("red", "R-111"), ("blue", "B-222")):
        scopes[name] = tenant(access, name)
        view = library.scoped(scopes[name])
        governor = view.open_context_governor("chat", collection=name, token_budget=900)
        governor.prepare(f"The code of the vault is {code}.", event_id="fact")
        governor.commit("Noted.")
        view.shelve(f"The vault manual of {name} says {code}.", collection=name, book_id="manual")
        view.memories(name).remember(f"Vault code {code} belongs to {name}.")
        governor.flush()
        view.memories(name).flush()
    return library, scopes


def test_each_tenant_sees_its_own_and_nothing_of_the_other(two) -> None:
    library, scopes = two
    for name, own, other in (("red", "R-111", "B-222"), ("blue", "B-222", "R-111")):
        view = library.scoped(scopes[name])
        found = view.consult(QUESTION, k=50, everything=True)
        assert own in str(found)
        assert other not in str(found)
        assert [info.key.collection for info in view.threads()] == [name]
        stats = view.stats()
        assert (stats.threads, stats.events, stats.bytes) == (1, 2, None)
        assert stats.records < library.stats().records


@pytest.mark.parametrize(
    "attempt",
    [
        lambda g: g.prepare("hello"),
        lambda g: g.record("user", "hello"),
        lambda g: g.build_prompt(focus=QUESTION),
        lambda g: g.recall(QUESTION),
        lambda g: g.open_event("fact"),
        lambda g: list(g.history()),
        lambda g: list(g.export()),
        lambda g: g.status(),
        lambda g: g.protect("mine"),
        lambda g: g.protect_event("fact"),
        lambda g: g.release("fact"),
        lambda g: g.amend("fact", "changed"),
        lambda g: g.revisions("fact"),
        lambda g: g.redact("fact"),
        lambda g: g.retry_failed("fact"),
        lambda g: g.remember(["fact"]),
        lambda g: g.flush(),
        lambda g: g.delete(),
    ],
)
def test_every_operation_on_a_foreign_thread_is_denied_and_changes_nothing(two, attempt) -> None:
    library, scopes = two
    before = list(library.open_context_governor("chat", collection="red").history())
    intruder = library.scoped(scopes["blue"]).open_context_governor("chat", collection="red", token_budget=900)
    with pytest.raises(ContextAccessDenied) as raised:
        attempt(intruder)
    assert "R-111" not in str(raised.value)
    assert list(library.open_context_governor("chat", collection="red").history()) == before


def test_a_foreign_thread_and_a_missing_one_answer_alike(two) -> None:
    library, scopes = two
    view = library.scoped(scopes["blue"])
    answers = []
    for session in ("chat", "never-was"):
        with pytest.raises(ContextAccessDenied) as raised:
            view.open_context_governor(session, collection="red").build_prompt()
        answers.append((raised.value.operation, raised.value.reason))
    assert answers[0] == answers[1]


def test_recall_ids_of_other_tenants_open_nothing(two) -> None:
    library, scopes = two
    red = library.open_context_governor("chat", collection="red").open_event("fact")
    blue = library.scoped(scopes["blue"]).open_context_governor("chat", collection="blue")
    with pytest.raises(EventNotFoundError):
        blue.open_event(red.recall_id)


def test_wider_reach_never_reaches_further_than_the_scope(two) -> None:
    library, scopes = two
    view = library.scoped(scopes["blue"])
    for options in ({"reach": "collection"}, {"reach": "owner"}, {"teams": ["red"]}):
        governor = view.open_context_governor("chat", collection="blue", owner="x", token_budget=900, **options)
        assert "R-111" not in str(governor.build_prompt(focus=QUESTION).messages)
        assert "R-111" not in str(governor.recall(QUESTION, k=50))


def test_a_right_on_a_collection_opens_no_shelf_of_a_team_of_that_name(two, access) -> None:
    library, scopes = two
    team = access.issue_root_scope(
        Principal("reds"), Rights.all_on(Boundary("team:red")), EnforcementMode.REQUIRE_ENROLLMENT
    )
    library.scoped(team).shelve("The team vault holds T-333.", team="red")
    question = "What does the team vault hold?"
    assert "T-333" in str(library.scoped(team).consult(question, teams=["red"]))
    outsider = library.scoped(scopes["red"])
    assert "T-333" not in str(outsider.consult(question, collection="red", teams=["red"], everything=True))
    with pytest.raises(ContextAccessDenied):
        outsider.shelve("mine now", team="red")
    assert "R-111" not in str(library.scoped(team).consult(QUESTION, everything=True))


@pytest.mark.parametrize(
    "call",
    [
        lambda governor: governor.delete(),
        lambda governor: governor.redact("fact"),
        lambda governor: governor.amend("fact", "changed"),
        lambda governor: governor.protect_event("fact"),
        lambda governor: governor.retry_failed("fact"),
    ],
)
def test_permission_that_ends_before_the_transaction_begins_is_noticed_in_it(two, access, monkeypatch, call) -> None:
    library, scopes = two
    governor = library.scoped(scopes["red"]).open_context_governor("chat", collection="red")
    write = library.database.write

    def late(work, **options):
        access.revoke(scopes["red"])
        return write(work, **options)

    monkeypatch.setattr(library.database, "write", late)
    with pytest.raises(ContextAccessDenied):
        call(governor)
    monkeypatch.undo()
    fact = library.open_context_governor("chat", collection="red").open_event("fact")
    assert (fact.text, fact.protected) == ("The code of the vault is R-111.", False)


def test_foreign_books_and_memories_stay(two) -> None:
    library, scopes = two
    book = library.consult("vault manual of red", collection="red")[0].record_id
    view = library.scoped(scopes["blue"])
    with pytest.raises((ContextAccessDenied, RecordNotFoundError)):
        view.forget(book)
    with pytest.raises(ContextAccessDenied):
        view.shelve("mine now", collection="red")
    with pytest.raises(ContextAccessDenied):
        view.promote("chat", "fact", collection="red")
    with pytest.raises(ContextAccessDenied):
        view.memories("red").remember("mine now")
    assert "R-111" not in str(view.memories("red").search("vault code"))
    with pytest.raises(ContextAccessDenied):
        view.delete_thread("chat", collection="red")


def test_ranking_statistics_of_other_tenants_change_nothing(two, access) -> None:
    library, scopes = two
    view = library.scoped(scopes["blue"])
    before = [(hit.record_id, hit.score) for hit in view.consult(QUESTION, k=10, everything=True)]
    red = library.scoped(scopes["red"]).open_context_governor("noise", collection="red")
    red.record_many([{"role": "user", "content": f"vault code number {n} vault vault"} for n in range(50)])
    red.flush()
    assert [(hit.record_id, hit.score) for hit in view.consult(QUESTION, k=10, everything=True)] == before


def test_a_thread_is_enrolled_with_its_first_event(library, access) -> None:
    scope = access.issue_root_scope(
        Principal("ada"), Rights.all_on(Resource("r-1")), EnforcementMode.REQUIRE_ENROLLMENT
    )
    wanted = ResourceMetadata("THREAD", "r-1", "project")
    governor = library.open_context_governor("t", scope=scope, resource=wanted)
    governor.prepare("first")
    assert list(governor.history())
    other = library.open_context_governor("u", scope=scope, resource=ResourceMetadata("THREAD", "r-2", "project"))
    with pytest.raises(ContextAccessDenied):
        other.prepare("second")
    assert [info.key.session_id for info in library.threads()] == ["t"]


def test_write_only_may_record_and_not_read(library, access) -> None:
    library.open_context_governor("t", resource=ResourceMetadata("THREAD", "t-1")).record("user", "start")
    only_write = Rights(writable_resources=frozenset({Resource("t-1")}))
    scope = access.issue_root_scope(Principal("logger"), only_write, EnforcementMode.REQUIRE_ENROLLMENT)
    governor = library.open_context_governor("t", scope=scope)
    governor.record("assistant", "logged")
    for attempt in (lambda: list(governor.history()), lambda: governor.build_prompt(), lambda: governor.prepare("?")):
        with pytest.raises(ContextAccessDenied):
            attempt()
    assert len(list(library.open_context_governor("t").history())) == 2


def test_a_library_that_requires_access_refuses_whoever_has_none(access, tmp_path) -> None:
    with LibraryOfContext(tmp_path / "a.sqlite", plugins=[], context_access=access, access="required") as library:
        governor = library.open_context_governor("t")
        for attempt in (
            lambda: governor.prepare("hello"),
            lambda: governor.build_prompt(),
            lambda: library.shelve("book"),
            lambda: library.consult("anything"),
            lambda: library.memory.remember("x"),
        ):
            with pytest.raises(ContextAccessDenied):
                attempt()
        assert library.threads() == []
        with access.scope(tenant(access, "default")):
            governor.prepare("hello")
        assert library.scoped(tenant(access, "default")).stats().events == 1


def test_administration_is_refused_under_a_scope(library, access, tmp_path) -> None:
    with access.scope(tenant(access, "red")):
        for attempt in (lambda: library.backup(tmp_path / "b"), library.vacuum, library.reindex):
            with pytest.raises(ScopeActiveError):
                attempt()


def test_a_handle_holds_whatever_the_context_says(two, access) -> None:
    library, scopes = two
    held = library.scoped(scopes["blue"]).open_context_governor("chat", collection="red")
    with access.scope(scopes["red"]), pytest.raises(ContextAccessDenied):
        held.build_prompt()


def test_a_revoked_scope_reads_nothing_more(two, access) -> None:
    library, _ = two
    scope = tenant(access, "red")
    governor = library.scoped(scope).open_context_governor("chat", collection="red")
    assert list(governor.history())
    access.revoke(scope)
    with pytest.raises(ContextAccessDenied):
        list(governor.history())
    with pytest.raises(ContextAccessDenied):
        library.scoped(scope).consult(QUESTION, everything=True)


def test_unenrolled_threads_stay_open_to_legacy_scopes_only(library, access) -> None:
    library.open_context_governor("old").record("user", "plain")
    legacy = tenant(access, "x", mode=EnforcementMode.LEGACY_COMPATIBLE)
    assert list(library.open_context_governor("old", scope=legacy).history())
    with pytest.raises(ContextAccessDenied):
        list(library.open_context_governor("old", scope=tenant(access, "x")).history())
