"""Calling a hook: strictly, for the first result, or as a notification."""

import inspect
import logging
import traceback
from collections import deque
from collections.abc import Collection
from typing import Any

import pluggy

from libctx_core.errors import LibctxError, PluginError
from libctx_core.plugins.status import Fault

MAX_FAULTS = 100
"""Isolated faults remembered; older ones are forgotten."""

_log = logging.getLogger("libctx.plugins")


class HookCalls:
    """Calls implementations one by one, so that one that fails is known and stands alone.

    Attributes:
        faults: The latest isolated faults, oldest first.
    """

    def __init__(self, hooks: pluggy.HookRelay) -> None:
        self._hooks = hooks
        self.faults: deque[Fault] = deque(maxlen=MAX_FAULTS)

    def implementations(self, hook: str) -> list[pluggy.HookImpl]:
        """Return the implementations of a hook in call order."""
        caller: pluggy.HookCaller = getattr(self._hooks, hook)
        found = caller.get_hookimpls()
        found.reverse()
        return found

    def strict(self, hook: str, /, **arguments: Any) -> list[tuple[str, Any]]:
        """Call every implementation and return ``(plugin, result)`` of those that answered.

        Raises:
            LibctxError: As an implementation raised it.
            PluginError: An implementation raised anything else.
        """
        answers = []
        for implementation in self.implementations(hook):
            result = self.call(implementation, hook, arguments)
            if result is not None:
                answers.append((implementation.plugin_name, result))
        return answers

    def first(self, hook: str, /, **arguments: Any) -> tuple[str, Any] | None:
        """Return ``(plugin, result)`` of the first implementation that answers; strict."""
        for implementation in self.implementations(hook):
            result = self.call(implementation, hook, arguments)
            if result is not None:
                return implementation.plugin_name, result
        return None

    def notify(self, hook: str, /, *, only: Collection[str] | None = None, **arguments: Any) -> list[tuple[str, Any]]:
        """Call every implementation, or those of the plugins named in `only`; exceptions become faults."""
        answers = []
        for implementation in self.implementations(hook):
            if only is not None and implementation.plugin_name not in only:
                continue
            try:
                result = self.call(implementation, hook, arguments)
            except LibctxError as error:
                self.record(implementation.plugin_name, hook, error.__cause__ or error)
                continue
            if result is not None:
                answers.append((implementation.plugin_name, result))
        return answers

    def call(self, implementation: pluggy.HookImpl, hook: str, arguments: dict[str, Any]) -> Any:
        """Call one implementation with the arguments it asks for.

        Raises:
            LibctxError: As the implementation raised it.
            PluginError: It raised anything else, or returned a coroutine.
        """
        try:
            result = implementation.function(*[arguments[name] for name in implementation.argnames])
        except LibctxError:
            raise
        except Exception as error:
            raise PluginError(implementation.plugin_name, f"{hook} raised {type(error).__name__}") from error
        if inspect.iscoroutine(result):
            result.close()
            raise PluginError(implementation.plugin_name, f"{hook} returned a coroutine; hooks are synchronous")
        return result

    def record(self, plugin: str, hook: str, error: BaseException) -> None:
        """Remember an isolated fault and log it."""
        frames = list(traceback.walk_tb(error.__traceback__))
        place = f" at {frames[-1][0].f_code.co_filename}:{frames[-1][1]}" if frames else ""
        fault = Fault(plugin, hook, f"{type(error).__name__}{place}")
        self.faults.append(fault)
        _log.warning("plugin %s failed in %s: %s", plugin, hook, fault.error)
