"""Automatic protection: off unless a governor names a policy, and always explained."""

from collections.abc import Sequence
from typing import Protocol

from libctx_core.governor.runtime import Runtime
from libctx_core.models import ContextEvent


class Protects(Protocol):
    """What a policy's proposals are applied to."""

    def protect_event(self, event_id: str) -> ContextEvent:
        """Give a stored event priority in every request."""
        ...


def apply_policies(
    governor: Protects, runtime: Runtime, policies: Sequence[str], events: Sequence[ContextEvent]
) -> None:
    """Protect what the named policies propose; each proposal is reported with its evidence."""
    by_id = {event.event_id: event for event in events}
    for proposal in runtime.plugins.propose_protections(events, policies=policies):
        event = by_id[proposal.event_id]
        if event.protected:
            continue
        governor.protect_event(event.event_id)
        runtime.observe(
            "libctx.protection.applied",
            {
                "libctx.event_id": event.event_id,
                "libctx.policy": proposal.policy,
                "libctx.reason": proposal.reason,
                "libctx.release_when": proposal.release_when,
            },
        )
