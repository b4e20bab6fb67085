"""Triggers: pure policies that turn a signal and their own state into actions."""

from typing import Generic, Protocol, TypeVar

from pydantic import Field

from libctx_core.sources.base import Value
from libctx_core.sources.values import SourceCursor

MAX_BINDING_NAME_LENGTH = 128
"""Characters of the name under which a trigger keeps its cursor."""

DEFAULT_SOURCE_WINDOW_LIMIT = 100
"""Sources that one activation processes at most."""

SignalT_contra = TypeVar("SignalT_contra", contravariant=True)
StateT = TypeVar("StateT")
ActionT = TypeVar("ActionT")


class PolicyTransition(Value, Generic[StateT, ActionT]):
    """What a policy decided.

    Attributes:
        state: The state to keep, together with what the actions cause.
        actions: What to do, in order.
    """

    state: StateT
    actions: tuple[ActionT, ...] = ()


class Trigger(Protocol[SignalT_contra, StateT, ActionT]):
    """A policy without input or output: the same signal and state give the same transition."""

    def initial_state(self) -> StateT:
        """Return the state before the first signal."""
        ...

    def activate(self, signal: SignalT_contra, state: StateT, /) -> PolicyTransition[StateT, ActionT]:
        """Return the next state and what to do."""
        ...


class SourceHighWatermark(Value):
    """How far a journal reaches.

    Attributes:
        sequence: Its highest position.
        limit: Sources one window may hold.
    """

    sequence: int = Field(ge=0)
    limit: int = Field(default=DEFAULT_SOURCE_WINDOW_LIMIT, gt=0)


class ProcessSourceWindow(Value):
    """Process the journal positions ``after + 1`` to ``through``.

    Attributes:
        after: Position to start behind.
        through: Last position.
    """

    after: int
    through: int


class SourceWindowTrigger:
    """Walks a journal in bounded windows, each position once."""

    name = "memory-source-window"

    def initial_state(self) -> SourceCursor:
        """Return a cursor before the first position."""
        return SourceCursor()

    def activate(
        self, signal: SourceHighWatermark, state: SourceCursor, /
    ) -> PolicyTransition[SourceCursor, ProcessSourceWindow]:
        """Ask for the next window, or for nothing if the journal has not grown."""
        if signal.sequence <= state.sequence:
            return PolicyTransition[SourceCursor, ProcessSourceWindow](state=state)
        through = min(signal.sequence, state.sequence + signal.limit)
        return PolicyTransition[SourceCursor, ProcessSourceWindow](
            state=SourceCursor(sequence=through),
            actions=(ProcessSourceWindow(after=state.sequence, through=through),),
        )
