"""Loading plugins so that one that is broken stands alone."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import pluggy

from libctx_core.errors import PluginConflictError, PluginError, PluginNotFoundError
from libctx_core.plugins import built_in, specs
from libctx_core.plugins.calls import HookCalls
from libctx_core.plugins.contributions import OTHER_KINDS, Contributions
from libctx_core.plugins.discovery import by_name, installed, package_of, wanted_by
from libctx_core.plugins.markers import PROJECT
from libctx_core.plugins.status import Origin, PluginStatus

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BUILT_IN = "libctx"
"""Name of the plugin that holds the library's own parts."""


class Loader:
    """Registers plugins with pluggy and takes in what they bring.

    Attributes:
        calls: Calls the hooks of what is loaded.
        contributions: What the loaded plugins registered.
        statuses: Every plugin met so far, by name.
    """

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(specs)
        self.calls = HookCalls(self._manager.hook)
        self.contributions = Contributions()
        self.statuses: dict[str, PluginStatus] = {}
        self.admit(built_in, BUILT_IN, "built-in")

    def load(self, selection: Sequence[str | object] | None, environment: Mapping[str, str]) -> None:
        """Load the plugins that were selected.

        Args:
            selection: Names of installed plugins and plugin objects, which must all load; or
                None to load what the environment lists, or else whatever is installed, and
                to go on past what fails.
            environment: Usually `os.environ`.

        Raises:
            PluginNotFoundError: A selected name is not installed.
            PluginConflictError: Two packages install a selected name.
            PluginError: A selected plugin cannot be used.
        """
        groups = by_name(installed())
        if selection is None:
            self._load_tolerantly(groups, wanted_by(environment))
            return
        for chosen in selection:
            if isinstance(chosen, str):
                self._load_named(chosen, groups.get(chosen, ()))
            else:
                self.admit(chosen, name_of(chosen), "given")
        for name, entries in groups.items():
            self._note_unselected(name, entries)

    def _load_tolerantly(self, groups: "dict[str, tuple[EntryPoint, ...]]", wanted: frozenset[str] | None) -> None:
        for name, entries in groups.items():
            if wanted is not None and name not in wanted:
                self._note_unselected(name, entries)
                continue
            try:
                self._load_named(name, entries)
            except PluginError as error:
                self.statuses[name] = PluginStatus(name, "installed", "failed", package_of(entries), error=str(error))
        for name in (wanted or frozenset()) - groups.keys():
            self.statuses[name] = PluginStatus(name, "installed", "failed", error="is not installed")

    def _note_unselected(self, name: str, entries: "tuple[EntryPoint, ...]") -> None:
        if name not in self.statuses:
            self.statuses[name] = PluginStatus(name, "installed", "not selected", package_of(entries))

    def _load_named(self, name: str, entries: "tuple[EntryPoint, ...]") -> None:
        if not entries:
            raise PluginNotFoundError(name, "is not installed")
        if len(entries) > 1:
            raise PluginConflictError("plugin", name, (package_of(entries[:1]), package_of(entries[1:2])))
        try:
            plugin = entries[0].load()
        except (Exception, SystemExit) as error:
            raise PluginError(name, f"cannot be imported: {type(error).__name__}: {error}") from error
        self.admit(plugin, name, "installed", package_of(entries))

    def admit(
        self, plugin: object, name: str, origin: Origin, package: str = "", *, refused: Collection[str] = ()
    ) -> None:
        """Register one plugin and take in what it brings; all of it or nothing.

        Args:
            plugin: A module or an instance.
            name: Its name.
            origin: Where it came from.
            package: Distribution and version that bring it.
            refused: Hooks it may not implement, because it is too late for them.

        Raises:
            PluginConflictError: Another plugin has the name.
            PluginError: It is not a plugin, or what it brings cannot be used.
        """
        if self._manager.has_plugin(name):
            raise PluginConflictError("plugin", name, (self.statuses[name].package or name, package or name))
        if self._manager.is_registered(plugin):
            raise PluginError(name, f"is loaded already, as {self._manager.get_name(plugin)!r}")
        if inspect.isclass(plugin):
            raise PluginError(name, "is a class; a plugin is a module or an instance")
        try:
            self._register(plugin, name)
            hooks = self._inspect(plugin, name)
            late = sorted(set(hooks).intersection(refused))
            if late:
                raise PluginError(name, f"implements {late[0]}, which must be loaded before the library opens")
            self._collect(name)
        except PluginError:
            self.contributions.drop(name)
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            raise
        self.statuses[name] = PluginStatus(name, origin, "loaded", package, hooks)

    def _register(self, plugin: object, name: str) -> None:
        try:
            self._manager.register(plugin, name)
        except Exception as error:
            raise PluginError(name, f"cannot be registered: {error}") from error

    def _inspect(self, plugin: object, name: str) -> tuple[str, ...]:
        """Return the hooks a plugin implements, refusing what could not be called."""
        hooks = []
        for caller in self._manager.get_hookcallers(plugin) or ():
            for implementation in caller.get_hookimpls():
                if implementation.plugin_name != name:
                    continue
                if not caller.has_spec():
                    if implementation.optionalhook:
                        continue
                    raise PluginError(name, f"implements {caller.name!r}, which is no hook")
                if implementation.wrapper or implementation.hookwrapper:
                    raise PluginError(name, f"{caller.name} is a wrapper; hooks here are called one by one")
                _refuse_async(name, caller.name, implementation.function)
                hooks.append(caller.name)
        if not hooks:
            raise PluginError(name, "implements no hook; mark its functions with libctx_core.plugins.hookimpl")
        return tuple(sorted(hooks))

    def _collect(self, name: str) -> None:
        for hook in (*self.contributions.factories, *OTHER_KINDS):
            for implementation in self.calls.implementations(hook):
                if implementation.plugin_name != name:
                    continue
                try:
                    self.contributions.take(name, hook, self.calls.call(implementation, hook, {}))
                except PluginError:
                    raise
                except Exception as error:
                    raise PluginError(name, f"{hook} raised {type(error).__name__}: {error}") from error


def name_of(plugin: object) -> str:
    """Name a plugin object: a module by its name, anything else by its class."""
    return str(getattr(plugin, "__name__", type(plugin).__name__))


def _refuse_async(plugin: str, hook: str, function: Callable[..., object]) -> None:
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise PluginError(plugin, f"{hook} is async; hooks are synchronous")
