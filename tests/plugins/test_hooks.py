"""Each hook, seen from a plugin that implements it and a library that calls it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from pydantic import BaseModel

from libctx_core.artifacts import Artifact
from libctx_core.errors import BlankContentError, PluginConflictError, PluginError, PluginNotFoundError
from libctx_core.models import ContextEvent
from libctx_core.plugins import Plugins, hookimpl
from libctx_core.ports import (
    AccessQuestion,
    DeskCandidate,
    DeskRequest,
    IncomingEvent,
    Observation,
    ProtectionProposal,
    ResourceRef,
    ToolSpec,
)


class FlatEmbedder:
    profile_id = "flat-4"
    dimension = 4

    def embed_documents(self, texts):
        return np.tile(self.embed_query(""), (len(texts), 1))

    def embed_query(self, text):
        return np.full(4, 0.5, dtype=np.float32)


class WordCount(BaseModel):
    words: int


class WordCounter:
    name = "words"
    exact = False

    def count(self, text):
        return len(text.split())


def plugin(name="one", **functions):
    """A plugin object whose hooks are the given functions."""
    return SimpleNamespace(__name__=name, **{hook: hookimpl(function) for hook, function in functions.items()})


def loaded(*plugins):
    return Plugins.load(plugins)


def boom(*_):
    raise RuntimeError("a secret text")


QUESTION = AccessQuestion("ada", "READ", (ResourceRef("THREAD", "t1"), ResourceRef("THREAD", "t2", "b")))
INCOMING = IncomingEvent("default", "s", "user", "call 555-0100")
EVENTS = (
    ContextEvent(event_id="e1", uid=1, sequence=1, role="user", content="never deploy on Friday"),
    ContextEvent(event_id="e2", uid=2, sequence=2, role="assistant", content="noted"),
)
REQUEST = DeskRequest("default", "s", "friday", 100, (DeskCandidate("r1", "a", 1, 2.0), DeskCandidate("r2", "b", 1, 1)))


# -- collected --------------------------------------------------------------------


def test_hook_register_storage_backends(tmp_path):
    plugins = loaded(plugin(register_storage_backends=lambda: {"elsewhere": lambda path, **options: (path, options)}))
    assert plugins.names("register_storage_backends") == ("elsewhere", "sqlite")
    assert plugins.storage_backend("elsewhere")("p", durability="full", read_only=False, on_connect=None)[0] == "p"
    store = plugins.storage_backend("sqlite")(
        str(tmp_path / "x.sqlite"), durability="full", read_only=False, on_connect=None
    )
    store.close()


def test_hook_register_vector_indexes():
    factory = object
    plugins = loaded(plugin(register_vector_indexes=lambda: {"mine": factory}))
    assert plugins.vector_index("mine") is factory


def test_hook_register_embedders():
    plugins = loaded(plugin(register_embedders=lambda: {"flat": FlatEmbedder}))
    assert plugins.embedder("flat").profile_id == "flat-4"
    with pytest.raises(PluginNotFoundError, match=r"known: .*flat"):
        plugins.embedder("round")


def test_hook_register_tokenizers():
    plugins = loaded(plugin(register_tokenizers=lambda: {"words": WordCounter}))
    assert plugins.tokenizer("words").count("a b c") == 3


def test_hook_register_source_adapters():
    plugins = loaded(plugin(register_source_adapters=lambda: {"mail": dict}))
    assert plugins.source_adapter("mail") == {}


def test_hook_register_rerankers():
    plugins = loaded(plugin(register_rerankers=lambda: {"by-length": list}))
    assert plugins.reranker("by-length") == []


def test_hook_register_extractors():
    plugins = loaded(plugin(register_extractors=lambda: {"facts": set}))
    assert plugins.extractor("facts") == set()


def test_hook_register_artifact_families():
    class Plan(Artifact[WordCount]):
        family = "plan"

    assert loaded(plugin(register_artifact_families=lambda: [Plan])).artifact_families() == (Plan,)
    both = loaded(
        plugin(register_artifact_families=lambda: [Plan]), plugin("two", register_artifact_families=lambda: [Plan])
    )
    with pytest.raises(PluginConflictError, match="'two'"):
        both.artifact_families()


def test_hook_register_tools():
    tool = ToolSpec("clock", "Tell the time.", {"type": "object", "properties": {}}, lambda governor: "noon")
    assert loaded(plugin(register_tools=lambda: [tool])).tools() == (tool,)
    with pytest.raises(PluginConflictError, match="'one'"):
        loaded(plugin(register_tools=lambda: [tool]), plugin("two", register_tools=lambda: [tool])).tools()


def test_hook_register_resource_kinds():
    plugins = loaded(
        plugin(register_resource_kinds=lambda: ["MAILBOX"]),
        plugin("two", register_resource_kinds=lambda: ("MAILBOX", "CALENDAR_2")),
    )
    assert plugins.resource_kinds() == {"MAILBOX", "CALENDAR_2"}


@pytest.mark.parametrize(
    ("hook", "answer"),
    [
        ("register_embedders", ["flat"]),
        ("register_embedders", {"flat": "no factory"}),
        ("register_embedders", {"a:b": dict}),
        ("register_embedders", {" ": dict}),
        ("register_tools", ["clock"]),
        ("register_tools", 7),
        ("register_artifact_families", [dict]),
        ("register_artifact_families", {"plan": dict}),
        ("register_artifact_families", [Artifact, Artifact]),
        ("register_resource_kinds", "MAILBOX"),
        ("register_resource_kinds", ["mailbox"]),
    ],
)
def test_what_a_plugin_brings_is_checked(hook, answer):
    with pytest.raises(PluginError, match="'one'"):
        loaded(plugin(**{hook: lambda: answer}))


def test_one_name_of_two_plugins_is_a_conflict_that_names_both_owners():
    plugins = loaded(
        plugin("one", register_embedders=lambda: {"flat": FlatEmbedder}),
        plugin("two", register_embedders=lambda: {"flat": FlatEmbedder}),
    )
    with pytest.raises(PluginConflictError) as caught:
        plugins.embedder("flat")
    assert caught.value.owners == ("one", "two")
    assert plugins.embedder("two:flat").dimension == 4
    assert "one:flat" in plugins.names("register_embedders")


def test_a_factory_that_fails_or_builds_something_else_is_reported_with_its_owner():
    plugins = loaded(plugin(register_embedders=lambda: {"bad": boom, "odd": dict}))
    with pytest.raises(PluginError, match=r"'one'.*'bad'.*RuntimeError") as caught:
        plugins.embedder("bad")
    assert "secret" not in str(caught.value)
    with pytest.raises(PluginError, match="no Embedder"):
        plugins.embedder("odd")


# -- strict -----------------------------------------------------------------------


def test_hook_sqlite_connect():
    seen = []
    loaded(plugin(sqlite_connect=lambda connection: seen.append(connection))).sqlite_connect("connection")
    assert seen == ["connection"]
    with pytest.raises(PluginError, match="sqlite_connect raised RuntimeError"):
        loaded(plugin(sqlite_connect=lambda connection: boom())).sqlite_connect("connection")


def test_hook_sanitize_event():
    plugins = loaded(
        plugin(
            "mask", sanitize_event=lambda event: replace(event, content=event.content.replace("555-0100", "[phone]"))
        ),
        plugin("shout", sanitize_event=lambda event: replace(event, content=event.content.upper())),
        plugin("nothing", sanitize_event=lambda event: None),
    )
    assert plugins.sanitize_event(INCOMING).content == "CALL [phone]"  # later plugins run first


def refuse(event):
    raise BlankContentError("content", "refused by policy")


def test_sanitize_event_refuses_with_its_own_error_and_fails_closed():
    with pytest.raises(BlankContentError):
        loaded(plugin(sanitize_event=refuse)).sanitize_event(INCOMING)
    with pytest.raises(PluginError) as caught:
        loaded(plugin(sanitize_event=lambda event: boom())).sanitize_event(INCOMING)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("answer", ["text", replace(INCOMING, role="system"), replace(INCOMING, session_id="other")])
def test_sanitize_event_cannot_move_an_event(answer):
    with pytest.raises(PluginError, match="same thread and role"):
        loaded(plugin(sanitize_event=lambda event: answer)).sanitize_event(INCOMING)


# -- first ------------------------------------------------------------------------


def test_hook_select_context():
    assert loaded().select_context(REQUEST) is None
    plugins = loaded(
        plugin("silent", select_context=lambda request: None), plugin(select_context=lambda request: ["r2"])
    )
    assert plugins.select_context(REQUEST) == ("r2",)


@pytest.mark.parametrize("answer", ["r1", ["r9"], [["r1"]], 5])
def test_select_context_chooses_among_the_candidates(answer):
    with pytest.raises(PluginError, match="candidates"):
        loaded(plugin(select_context=lambda request: answer)).select_context(REQUEST)


def test_hook_resolve_containment():
    pairs = [("page", "shelf"), ("page", "vault")]
    assert loaded().resolve_containment(pairs) == frozenset()
    plugins = loaded(plugin(resolve_containment=lambda pairs: [("page", "shelf"), ("other", "vault")]))
    assert plugins.resolve_containment(pairs) == {("page", "shelf")}


async def test_plugins_are_a_containment_resolver():
    from libctx_core.access import Boundary, Operation, Resource, Rights
    from libctx_core.access.containment import aresolve_rights

    plugins = loaded(plugin(resolve_containment=lambda pairs: [("kitchen", "house")]))
    granted = Rights(readable_resources={Boundary("house")})
    wanted = Rights(readable_resources={Resource("kitchen"), Resource("shed")})
    narrowed = await aresolve_rights(granted, wanted, plugins)
    assert {selector.id for selector in narrowed.selectors(Operation.READ)} == {"kitchen"}


# -- deny-only --------------------------------------------------------------------


def test_hook_check_access():
    assert loaded().check_access(QUESTION) == frozenset()
    plugins = loaded(
        plugin("grants", check_access=lambda question: []),
        plugin("denies", check_access=lambda question: {"t2"}),
        plugin("silent", check_access=lambda question: None),
    )
    assert plugins.check_access(QUESTION) == {"t2"}


@pytest.mark.parametrize("answer", [{"t9"}, "t1", 5, True, [["t1"]]])
def test_check_access_denies_everything_on_an_answer_it_does_not_understand(answer):
    assert loaded(plugin(check_access=lambda question: answer)).check_access(QUESTION) == {"t1", "t2"}


def test_check_access_denies_everything_on_an_exception_and_records_it():
    plugins = loaded(plugin(check_access=lambda question: boom()))
    assert plugins.check_access(QUESTION) == {"t1", "t2"}
    assert [(fault.plugin, fault.hook) for fault in plugins.faults] == [("one", "check_access")]
    assert "secret" not in plugins.faults[0].error


# -- notify -----------------------------------------------------------------------


def proposal(event_id="e1", **changes):
    return replace(ProtectionProposal(event_id, "a standing rule", "never", "the user lifts it"), **changes)


def test_hook_propose_protections():
    plugins = loaded(plugin("rules", propose_protections=lambda events: [proposal()]))
    assert plugins.propose_protections(EVENTS, policies=()) == ()
    assert plugins.propose_protections(EVENTS, policies=["rules"]) == (proposal(policy="rules"),)


@pytest.mark.parametrize("answer", [[proposal("e9")], [proposal(evidence=" ")], ["e1"], 5, (1 / 0 for _ in "x")])
def test_a_proposal_that_cannot_be_used_is_recorded_and_others_go_on(answer):
    plugins = loaded(
        plugin("bad", propose_protections=lambda events: answer),
        plugin("good", propose_protections=lambda events: [proposal()]),
    )
    assert plugins.propose_protections(EVENTS, policies=["bad", "good"]) == (proposal(policy="good"),)
    assert plugins.faults[-1].plugin == "bad"


def test_hook_on_event():
    seen = []
    plugins = loaded(
        plugin("bad", on_event=boom), plugin("good", on_event=lambda observations: seen.extend(observations))
    )
    told = Observation("libctx.event.recorded", {"gen_ai.conversation.id": "s"})
    plugins.on_event([told])
    assert seen == [told]
    assert [fault.plugin for fault in plugins.faults] == ["bad"]


def test_hook_library_opened():
    early, late = [], []
    plugins = loaded(plugin("early", library_opened=lambda library: early.append(library)))
    plugins.library_opened("library")
    plugins.register(plugin("late", library_opened=lambda library: late.append(library)))
    assert early == late == ["library"]


def test_hook_library_closing():
    seen = []
    plugins = loaded(plugin(library_closing=lambda library: seen.append(library)))
    plugins.library_opened("library")
    plugins.library_closing("library")
    plugins.register(plugin("late", library_opened=lambda library: seen.append("too late")))
    assert seen == ["library"]
