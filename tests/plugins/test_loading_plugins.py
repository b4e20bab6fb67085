"""Which plugins load, what happens to broken ones, and what is refused."""

import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace

import pytest

from libctx_core.errors import PluginConflictError, PluginError, PluginNotFoundError
from libctx_core.plugins import Plugins, discovery, hookimpl, loader

MODULES = {
    "good": (
        "from libctx_core.plugins import hookimpl\n@hookimpl\ndef register_resource_kinds():\n    return ['GOOD']\n"
    ),
    "broken": "raise ImportError('no such wheel')\n",
    "exits": "import sys; sys.exit(3)\n",
    "fails": "from libctx_core.plugins import hookimpl\n@hookimpl\ndef register_embedders():\n    return 1 / 0\n",
    "half": (
        "from libctx_core.plugins import hookimpl\n@hookimpl\ndef register_embedders():\n    return {'half': dict}\n"
        "@hookimpl\ndef register_resource_kinds():\n    return ['lower case']\n"
    ),
}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install the given modules as entry points, and return a function that does so."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(*names, twice=()):
        for name in names:
            (tmp_path / f"trial_{name}.py").write_text(MODULES[name], encoding="utf-8")
        entries = [EntryPoint(name, f"trial_{name}", "libctx") for name in (*names, *twice)]
        monkeypatch.setattr(loader, "installed", lambda: tuple(entries))

    yield install
    for name in MODULES:
        sys.modules.pop(f"trial_{name}", None)


def states(plugins):
    return {status.name: status.state for status in plugins.statuses}


def test_a_broken_plugin_is_recorded_and_the_others_go_on(installed):
    installed("broken", "exits", "fails", "good", "half")
    plugins = Plugins.load(environment={})
    assert states(plugins) == {
        "libctx": "loaded",
        "good": "loaded",
        "broken": "failed",
        "exits": "failed",
        "fails": "failed",
        "half": "failed",
    }
    assert plugins.resource_kinds() == {"GOOD"}
    errors = {status.name: status.error for status in plugins.statuses}
    assert "no such wheel" in errors["broken"]
    assert "ZeroDivisionError" in errors["fails"]


def test_what_a_plugin_brought_before_it_failed_is_taken_back(installed):
    installed("half")
    with pytest.raises(PluginNotFoundError):
        Plugins.load(environment={}).embedder("half")


def test_the_environment_chooses(installed):
    installed("broken", "good")
    plugins = Plugins.load(environment={"LIBCTX_PLUGINS": " good , missing"})
    assert states(plugins) == {"libctx": "loaded", "good": "loaded", "broken": "not selected", "missing": "failed"}
    assert states(Plugins.load(environment={"LIBCTX_PLUGINS": ""}))["good"] == "not selected"


def test_plugins_named_in_code_must_load(installed):
    installed("broken", "good")
    assert states(Plugins.load(["good"], environment={"LIBCTX_PLUGINS": ""}))["good"] == "loaded"
    with pytest.raises(PluginError, match="cannot be imported: ImportError"):
        Plugins.load(["broken"])
    with pytest.raises(PluginNotFoundError):
        Plugins.load(["missing"])


def test_two_packages_with_one_plugin_name_conflict(installed):
    installed("good", twice=["good"])
    assert states(Plugins.load(environment={}))["good"] == "failed"
    with pytest.raises(PluginConflictError):
        Plugins.load(["good"])


async def asynchronous(observations):
    """Would never be awaited."""


def generator_wrapper(observations):
    yield


class AsClass:
    @hookimpl
    def on_event(self, observations):
        """A method, but of a class that nobody instantiated."""


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (SimpleNamespace(on_event=hookimpl(asynchronous)), "is async"),
        (SimpleNamespace(on_events=hookimpl(lambda observations: None)), "is no hook"),
        (SimpleNamespace(on_event=hookimpl(lambda events: None)), "cannot be registered"),
        (SimpleNamespace(on_event=hookimpl(wrapper=True)(generator_wrapper)), "is a wrapper"),
        (SimpleNamespace(on_event=lambda observations: None), "implements no hook"),
        (AsClass, "is a class"),
    ],
)
def test_what_could_not_be_called_is_refused_while_loading(plugin, reason):
    with pytest.raises(PluginError, match=reason):
        Plugins.load([plugin])


def test_a_coroutine_from_a_plain_function_is_a_fault():
    plugins = Plugins.load([SimpleNamespace(on_event=hookimpl(lambda observations: asynchronous(observations)))])
    plugins.on_event([])
    assert len(plugins.faults) == 1


def test_an_instance_is_a_plugin_and_is_loaded_once():
    plugin = AsClass()
    plugins = Plugins.load([plugin])
    assert plugins.implements("on_event")
    with pytest.raises(PluginConflictError):
        plugins.register(plugin)
    with pytest.raises(PluginError, match="loaded already"):
        plugins.register(plugin, "again")
    others = dict.fromkeys(discovery.by_name(discovery.installed()), "not selected")
    assert states(plugins) == {"AsClass": "loaded", "libctx": "loaded", **others}


def test_an_optional_hook_of_another_release_is_ignored():
    @hookimpl(optionalhook=True)
    def hook_of_tomorrow():
        """Not specified here."""

    plugin = SimpleNamespace(hook_of_tomorrow=hook_of_tomorrow, on_event=hookimpl(lambda observations: None))
    assert states(Plugins.load([plugin]))["SimpleNamespace"] == "loaded"


def test_each_library_has_its_own_plugins():
    with_observer = Plugins.load([AsClass()])
    without = Plugins.load([])
    assert with_observer.implements("on_event")
    assert not without.implements("on_event")


@pytest.mark.parametrize("hook", ["check_access", "sqlite_connect"])
def test_what_a_library_asks_for_when_it_opens_cannot_come_later(hook):
    arguments = {"check_access": lambda question: None, "sqlite_connect": lambda connection: None}
    plugins = Plugins.load([])
    plugins.library_opened("library")
    with pytest.raises(PluginError, match="before the library opens"):
        plugins.register(SimpleNamespace(**{hook: hookimpl(arguments[hook])}))
    assert not plugins.implements(hook)


def test_faults_are_bounded():
    plugins = Plugins.load([SimpleNamespace(on_event=hookimpl(lambda observations: 1 / 0))])
    for _ in range(250):
        plugins.on_event([])
    assert len(plugins.faults) == 100


def test_plugins_show_themselves(installed):
    installed("broken", "good")
    plugins = Plugins.load(environment={})
    assert "no such wheel" in str(plugins)
    assert "<td>good</td>" in plugins._repr_html_()
    assert {record["name"] for record in plugins.to_records()} == {"libctx", "broken", "good"}
