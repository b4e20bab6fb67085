"""What an authority tells its observer: decisions and irregularities, never a protected value."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from libctx_core.errors.access import DenialReason, Operation

_log = logging.getLogger("libctx.access")


@dataclass(frozen=True, slots=True)
class AccessEvent:
    """One thing worth auditing.

    Attributes:
        name: ``access.denied``, ``access.excluded`` (left out of a listing because its
            metadata is malformed), ``access.leak`` (a scope exited out of order),
            ``access.revoked``.
        operation: What was attempted, if it was an operation on a resource.
        resource_kind: Kind of the resource.
        resource_key: Its storage key.
        reason: Why it was refused.
        chain: Principals from the root to the one that acted; empty without a scope.
        shadowed: Principal of a nested scope that the ambient one replaced.
    """

    name: str
    operation: Operation | None = None
    resource_kind: str | None = None
    resource_key: str | None = None
    reason: DenialReason | None = None
    chain: tuple[str, ...] = ()
    shadowed: str | None = None

    def attributes(self) -> dict[str, str]:
        """Return the fields that are set, as flat text for a tracing system."""
        fields = {
            "operation": self.operation,
            "resource_kind": self.resource_kind,
            "resource_key": self.resource_key,
            "reason": self.reason,
            "chain": " > ".join(self.chain) or None,
            "shadowed": self.shadowed,
        }
        return {name: str(value) for name, value in fields.items() if value is not None}


Observer = Callable[[AccessEvent], None]


class Listener(Protocol):
    """Somebody else who is told, such as the plugins of a library."""

    def on_access(self, event: AccessEvent, /) -> None:
        """Take note of an event."""
        ...


def notify(observer: Observer | None, event: AccessEvent) -> None:
    """Tell the observer; its failure is logged and changes nothing."""
    if observer is None:
        return
    try:
        observer(event)
    except Exception:  # noqa: BLE001 - an observer cannot change a decision
        _log.exception("the access observer failed on %s", event.name)
