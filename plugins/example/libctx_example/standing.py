"""A protection policy: what the user said to do always, or never, should not leave the prompt."""

import re
from collections.abc import Sequence

from libctx_core.models import ContextEvent
from libctx_core.ports import ProtectionProposal

_STANDING = re.compile(r"\b(?:always|never|from now on|under no circumstances|do not ever)\b[^.!?\n]*", re.IGNORECASE)

MAX_EVIDENCE = 200
"""Characters of the event that are quoted as evidence."""


def standing_instructions(events: Sequence[ContextEvent]) -> list[ProtectionProposal]:
    """Propose the user's own events that hold a standing instruction.

    Only user events count: what an assistant or a tool wrote may quote anybody, and must not
    gain weight by it. A question is no instruction.
    """
    proposals = []
    for event in events:
        found = _STANDING.search(event.text)
        if event.role != "user" or event.protected or found is None or event.text.rstrip().endswith("?"):
            continue
        proposals.append(
            ProtectionProposal(
                event_id=event.event_id,
                reason="the user gave a standing instruction",
                evidence=found.group()[:MAX_EVIDENCE],
                release_when="the user withdraws or replaces the instruction",
            )
        )
    return proposals
