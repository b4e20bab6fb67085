"""Which session a call belongs to: a name, a callable, or a key of the running configuration."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeAlias

from langchain_core.runnables.config import var_child_runnable_config

from libctx_core.access.metadata import ResourceMetadata
from libctx_core.errors import LibctxError
from libctx_core.governor import ContextGovernor
from libctx_core.library import LibraryView

SessionId: TypeAlias = str | Callable[[], str]

MAX_GOVERNORS = 256
"""Governors kept per adapter; they are light, and opened again when needed."""


class MissingSessionError(LibctxError, ValueError):
    """A session was promised by the configuration, and the running configuration names none.

    Attributes:
        key: The key of ``configurable`` that should name it.
    """

    code = "missing_session"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"no session: config['configurable'][{key!r}] is not set here; pass it to the runnable, "
            "or give the class a session_id (chains called on their own do not show their configuration to memory)"
        )
        self.key = key


def configurable_session(key: str = "session_id") -> Callable[[], str]:
    """Return a `session_id` that reads the running configuration, and fails where it names none.

    Args:
        key: The key of ``config["configurable"]``.
    """

    def resolve() -> str:
        config = var_child_runnable_config.get()
        value = (config or {}).get("configurable", {}).get(key)
        if not isinstance(value, str) or not value:
            raise MissingSessionError(key)
        return value

    return resolve


class Governors:
    """Opens the governor of the session a call belongs to, and keeps the ones in use.

    Args:
        library: The library, under its scope.
        session_id: A name, or a callable that returns the name for the current call.
        resource: Access metadata for a thread that is created, or a function from session to it.
        options: Arguments of `LibraryView.open_context_governor`.
    """

    def __init__(
        self,
        library: LibraryView,
        session_id: SessionId,
        *,
        resource: ResourceMetadata | Callable[[str], ResourceMetadata] | None = None,
        **options: Any,
    ) -> None:
        self.library = library
        self._session_id = session_id
        self._resource = resource
        self._options = options
        self._open: OrderedDict[str, ContextGovernor] = OrderedDict()
        self._lock = threading.Lock()
        if isinstance(session_id, str):
            self.of(session_id)

    def current(self) -> ContextGovernor:
        """Return the governor of the session that this call belongs to."""
        return self.of(self._session_id if isinstance(self._session_id, str) else self._session_id())

    def of(self, session_id: str) -> ContextGovernor:
        """Return the governor of a named session."""
        with self._lock:
            governor = self._open.pop(session_id, None)
            if governor is None:
                resource = self._resource(session_id) if callable(self._resource) else self._resource
                governor = self.library.open_context_governor(session_id, resource=resource, **self._options)
            self._open[session_id] = governor
            while len(self._open) > MAX_GOVERNORS:
                self._open.popitem(last=False)
            return governor
