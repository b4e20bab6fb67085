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
