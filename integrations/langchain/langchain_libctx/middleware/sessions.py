"""Which thread an agent's call belongs to: its LangGraph thread, and the sub-agent it runs in."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig

from langchain_libctx.middleware.reconcile import names_of
from langchain_libctx.sessions import Governors, MissingSessionError
from libctx_core.errors import EventNotFoundError
from libctx_core.governor import ContextGovernor
from libctx_core.store.database import Database

_SEPARATOR = "|"
_TASK = ":"
_CLAIMS = 256


class Claims:
    """Which conversation was given an empty thread: agents that begin side by side must not meet in it."""

    def __init__(self) -> None:
        self._holders: OrderedDict[tuple[str, str], frozenset[str]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, governor: ContextGovernor, first: Sequence[str]) -> bool:
        """Claim a thread for the conversation whose first message has these names; False if another one has it."""
        thread = governor.key.collection, governor.key.session_id
        with self._lock:
            holder = self._holders.setdefault(thread, frozenset(first))
            while len(self._holders) > _CLAIMS:
                self._holders.popitem(last=False)
        return not holder.isdisjoint(first)


_CLAIMED: WeakKeyDictionary[Database, Claims] = WeakKeyDictionary()
_CLAIMING = threading.Lock()


def claims_of(database: Database) -> Claims:
    """Return the claims on threads of a library file, which all middleware over it shares."""
    with _CLAIMING:
        return _CLAIMED.setdefault(database, Claims())


def thread_of(config: RunnableConfig) -> str:
    """Return the LangGraph thread of a call.

    Raises:
        MissingSessionError: The configuration names none.
    """
    value = config.get("configurable", {}).get("thread_id")
    if value is None or value == "":
        raise MissingSessionError("thread_id")
    return str(value)


def agent_path(config: RunnableConfig) -> tuple[str, ...]:
    """Return where in the graph the agent runs: empty at the root, else a segment per level.

    The last segment of the checkpoint namespace is the node that asks, a model or a tool
    node; what stands before it leads to the agent.
    """
    namespace = str(config.get("configurable", {}).get("checkpoint_ns", ""))
    return tuple(namespace.split(_SEPARATOR)[:-1]) if namespace else ()


def governor_of(
    governors: Governors,
    config: RunnableConfig,
    messages: Sequence[BaseMessage],
    session_id: Callable[[], str] | str | None,
    claims: Claims,
) -> ContextGovernor:
    """Return the governor of the conversation that these messages belong to.

    A sub-agent has a thread of its own. One that is a node of a larger graph meets the
    same conversation in every run, under another task id each time; one that a tool calls
    meets a new conversation. They are told apart by whether the thread that was used for
    this place in the graph knows the first message.
    """
    thread = session_id if isinstance(session_id, str) else session_id() if session_id else thread_of(config)
    path = agent_path(config)
    if not path:
        return governors.of(thread)
    place = governors.of(_named(thread, [segment.split(_TASK)[0] for segment in path]))
    if not messages:
        return place
    first = names_of(messages[0], 0)
    if any(_knows(place, name) for name in first):
        return place
    if _is_empty(place) and claims.take(place, first):
        return place
    return governors.of(_named(thread, path))


def _named(thread: str, path: Sequence[str]) -> str:
    return f"{thread}{_SEPARATOR}{_SEPARATOR.join(path)}"


def _knows(governor: ContextGovernor, event_id: str) -> bool:
    try:
        return governor.open_event(event_id).event_id == event_id
    except EventNotFoundError:
        return False


def _is_empty(governor: ContextGovernor) -> bool:
    return next(iter(governor.history(limit=1)), None) is None
