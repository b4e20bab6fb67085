"""Hooks where they act: before storage, at the desk, at the scope, and after a commit."""

from dataclasses import replace

import pytest

from libctx_core import LibraryOfContext
from libctx_core.access import Boundary, ContextAccess, EnforcementMode, Principal, Rights
from libctx_core.errors import ContextAccessDenied, InvalidInputError, LibctxError
from libctx_core.plugins import hookimpl
from libctx_core.ports import ProtectionProposal


class Refused(LibctxError, ValueError):
    """A test's own refusal."""

    code = "test_refused"


def test_text_is_rewritten_before_anything_of_it_is_stored(tmp_path) -> None:
    class Masking:
        @hookimpl
        def sanitize_event(self, event):
            if "refuse" in str(event.content):
                raise Refused("not stored")
            return replace(event, content=str(event.content).replace("4111-1111", "[card]"))

    path = tmp_path / "pii.sqlite"
    with LibraryOfContext(path, plugins=[Masking()]) as library:
        governor = library.open_context_governor("t", token_budget=600)
        prompt = governor.prepare("My card is 4111-1111.", event_id="card")
        assert prompt.messages[-1]["content"] == "My card is [card]."
        assert governor.prepare("My card is 4111-1111.", event_id="card").event_id == "card"
        with pytest.raises(Refused):
            governor.record("user", "please refuse this")
        assert len(list(governor.history())) == 1
        governor.flush()
    for file in tmp_path.iterdir():
        assert b"4111-1111" not in file.read_bytes()


def test_a_plugin_may_choose_what_lies_on_the_desk() -> None:
    class OnlyTulips:
        @hookimpl
        def select_context(self, request):
            return [c.record_id for c in request.candidates if "tulips" in c.text]

    with LibraryOfContext(":memory:", plugins=[OnlyTulips()]) as library:
        library.shelve("The garden has red tulips.")
        library.shelve("The garden has white roses.")
        governor = library.open_context_governor("t", token_budget=600)
        prompt = governor.prepare("Which flowers does the garden have?")
        assert [item.hit.text for item in prompt.desk] == ["The garden has red tulips."]


def test_policies_protect_only_where_they_are_named_and_say_why() -> None:
    seen = []

    class Allergies:
        @hookimpl
        def propose_protections(self, events):
            return [
                ProtectionProposal(event.event_id, "an allergy is a constraint", event.text, "the user says it is gone")
                for event in events
                if "allergic" in event.text
            ]

        @hookimpl
        def on_event(self, observations):
            seen.extend(observations)

    with LibraryOfContext(":memory:", plugins=[Allergies()]) as library:
        plain = library.open_context_governor("plain", token_budget=600)
        assert not plain.record("user", "I am allergic to nuts.").protected
        name = next(status.name for status in library.plugins.statuses if "llergies" in status.name)
        careful = library.open_context_governor("careful", token_budget=600, policies=[name])
        event = careful.record("user", "I am allergic to nuts.")
        assert careful.open_event(event.event_id).protected
    applied = [item for item in seen if item.name == "libctx.protection.applied"]
    assert applied[0].attributes["libctx.reason"] == "an allergy is a constraint"
    assert all("nuts" not in str(item.attributes) for item in seen if item is not applied[0])


def test_observers_hear_of_commits_and_their_failure_changes_nothing() -> None:
    heard = []

    class Listening:
        @hookimpl
        def on_event(self, observations):
            heard.extend(item.name for item in observations)
            raise RuntimeError("deaf")

        @hookimpl
        def library_opened(self, library):
            heard.append("opened")

        @hookimpl
        def library_closing(self, library):
            heard.append("closing")

    with LibraryOfContext(":memory:", plugins=[Listening()]) as library:
        governor = library.open_context_governor("t", token_budget=600)
        governor.prepare("hello")
    assert heard[0] == "opened"
    assert heard[-1] == "closing"
    assert {"libctx.event.recorded", "libctx.prompt.built"} <= set(heard)


def test_a_plugin_can_deny_what_a_scope_allows_and_never_grant() -> None:
    access = ContextAccess()

    class Curfew:
        @hookimpl
        def check_access(self, question):
            return [item.resource_id for item in question.resources if item.resource_id.endswith("/night")]

    with LibraryOfContext(":memory:", plugins=[Curfew()], context_access=access) as library:
        scope = access.issue_root_scope(
            Principal("ada"), Rights.all_on(Boundary("default")), EnforcementMode.REQUIRE_ENROLLMENT
        )
        view = library.scoped(scope)
        view.open_context_governor("day").prepare("hello")
        with pytest.raises(ContextAccessDenied):
            view.open_context_governor("night").prepare("hello")
        other = access.issue_root_scope(Principal("bob"), Rights(), EnforcementMode.REQUIRE_ENROLLMENT)
        with pytest.raises(ContextAccessDenied):
            library.scoped(other).open_context_governor("day").build_prompt()


def test_a_check_that_fails_denies_only_while_it_fails() -> None:
    access = ContextAccess()
    scope = access.issue_root_scope(Principal("ada"), Rights.all_on(Boundary("default")))
    broken = True

    class Moody:
        @hookimpl
        def check_access(self, question):
            if broken:
                raise RuntimeError("no answer")

    with LibraryOfContext(":memory:", plugins=[Moody()], context_access=access) as library:
        governor = library.scoped(scope).open_context_governor("t")
        broken = False
        governor.prepare("hello")
        broken = True
        other = library.scoped(scope).open_context_governor("other")
        with pytest.raises(ContextAccessDenied):
            other.prepare("hello")
        assert library.plugins.faults[-1].hook == "check_access"
        broken = False
        other.prepare("hello")
        assert {hit.thread.session_id for hit in recalled(library, scope)} == {"t", "other"}


def test_rules_that_change_are_asked_anew_when_the_plugin_says_so() -> None:
    access = ContextAccess()
    scope = access.issue_root_scope(Principal("ada"), Rights.all_on(Boundary("default")))

    class Rules:
        closed = frozenset()

        @hookimpl
        def library_opened(self, library):
            self.library = library

        @hookimpl
        def check_access(self, question):
            return [item.resource_id for item in question.resources if item.resource_id in self.closed]

        def close(self, *resources):
            self.closed = frozenset(resources)
            self.library.authority.guard.forget()

    rules = Rules()
    with LibraryOfContext(":memory:", plugins=[rules], context_access=access) as library:
        for session in ("day", "night"):
            library.scoped(scope).open_context_governor(session).prepare("hello")
        assert len(recalled(library, scope)) == 2
        rules.close("thread:default/night")
        assert [hit.thread.session_id for hit in recalled(library, scope)] == ["day"]
        with pytest.raises(ContextAccessDenied):
            library.scoped(scope).open_context_governor("night").prepare("hello again")
        rules.close()
        assert len(recalled(library, scope)) == 2


def recalled(library, scope):
    assert library.flush()
    return library.scoped(scope).consult("hello", everything=True)


def test_denials_and_revocations_reach_the_plugins_of_the_library_they_concern() -> None:
    heard: list[tuple[str, str, dict]] = []
    told = []
    access = ContextAccess(on_event=lambda event: told.append(event.name))
    scope = access.issue_root_scope(Principal("ada"), Rights.all_on(Boundary("default")))

    class Auditing:
        def __init__(self, name):
            self.name = name

        @hookimpl
        def on_event(self, observations):
            heard.extend((self.name, item.name, dict(item.attributes)) for item in observations)

    with (
        LibraryOfContext(":memory:", plugins=[Auditing("one")], context_access=access) as library,
        LibraryOfContext(":memory:", plugins=[Auditing("two")], context_access=access),
    ):
        with pytest.raises(ContextAccessDenied):
            library.scoped(scope).open_context_governor("t", collection="vault").record("user", "a secret")
        access.revoke(scope)
    denial = {
        "libctx.operation": "CREATE",
        "libctx.resource_kind": "THREAD",
        "libctx.resource_key": "vault/t",
        "libctx.reason": "MISSING_PERMISSION",
        "libctx.chain": "ada",
    }
    assert heard[0] == ("one", "libctx.access.denied", denial)
    revoked = [(name, "libctx.access.revoked", {"libctx.chain": "ada"}) for name in ("one", "two")]
    assert sorted(heard[1:], key=lambda entry: entry[0]) == revoked
    assert told == ["access.denied", "access.revoked"]
    access.revoke(access.issue_root_scope(Principal("ada"), Rights()))
    assert len(heard) == 3


def test_a_connection_hook_sees_every_connection() -> None:
    class Doubling:
        @hookimpl
        def sqlite_connect(self, connection):
            connection.create_scalar_function("twice", lambda value: value * 2, 1)

    with LibraryOfContext(":memory:", plugins=[Doubling()]) as library, library.database.read() as connection:
        assert connection.execute("SELECT twice(21)").get == 42


def test_an_embedder_is_chosen_by_name() -> None:
    with LibraryOfContext(":memory:", plugins=[], embedder=False) as library:
        governor = library.open_context_governor("t", token_budget=600)
        governor.record("user", "The kettle is broken.")
        governor.flush()
        assert governor.recall("kettle")[0].matched_by == ("lexical",)
    with pytest.raises(LibctxError, match="no-such"):
        LibraryOfContext(":memory:", plugins=[], embedder="no-such")
    with pytest.raises(InvalidInputError):
        LibraryOfContext(":memory:", plugins=[]).open_context_governor("t", tokenizer="no-such")
