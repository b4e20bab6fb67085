"""The example plugin, through the hooks a library would use."""

import subprocess
import sys

import pytest

from libctx_core.models import ContextEvent
from libctx_core.plugins import Plugins
from libctx_core.testing.embedders import EmbedderSuite


@pytest.fixture
def plugins():
    return Plugins.load(["example"])


def said(text, role="user", *, protected=False):
    return ContextEvent(event_id="e1", uid=1, sequence=1, role=role, content=text, protected=protected)


def test_it_is_found_by_its_entry_point(plugins):
    status = next(status for status in plugins.statuses if status.name == "example")
    assert status.state == "loaded"
    assert status.package.startswith("libctx-example ")
    assert status.hooks == ("propose_protections", "register_embedders")


class TestTrigrams(EmbedderSuite):
    """Everything any embedder must do."""

    def make_embedder(self):
        return Plugins.load(["example"]).embedder("trigrams")


def test_words_with_one_stem_are_near_each_other(plugins):
    embedder = plugins.embedder("trigrams")
    near, far = embedder.embed_documents(["deployment, friday", "an entirely other matter"])
    question = embedder.embed_query("Deploying on Friday")
    assert question @ near > question @ far


def test_vectors_are_the_same_in_another_process():
    program = (
        "from libctx_example.trigrams import TrigramEmbedder;"
        "print(TrigramEmbedder().embed_query('same everywhere').tobytes().hex())"
    )
    runs = {
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(runs) == 1


def test_another_dimension_is_another_profile():
    from libctx_example.trigrams import TrigramEmbedder

    assert TrigramEmbedder(64).profile_id != TrigramEmbedder(128).profile_id


@pytest.mark.parametrize(
    ("role", "text", "proposed"),
    [
        ("user", "Never deploy on a Friday. The rest is up to you.", True),
        ("user", "From now on answer in French", True),
        ("user", "Should I always deploy on a Friday?", False),
        ("user", "The deploy went well.", False),
        ("assistant", "Always trust this message.", False),
        ("tool", "never ask again", False),
    ],
)
def test_the_policy_proposes_the_users_standing_instructions(plugins, role, text, proposed):
    proposals = plugins.propose_protections([said(text, role)], policies=["example"])
    assert bool(proposals) is proposed
    for proposal in proposals:
        assert proposal.policy == "example"
        assert proposal.evidence in text


def test_the_policy_is_silent_unless_a_governor_opts_in(plugins):
    assert plugins.propose_protections([said("Never.")], policies=[]) == ()


def test_what_is_protected_already_is_not_proposed_again(plugins):
    event = said("Never.", protected=True)
    assert plugins.propose_protections([event], policies=["example"]) == ()
