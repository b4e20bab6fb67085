"""A libctx plugin: one embedder and one protection policy.

The module that the entry point names holds the hooks and nothing else. It imports only
`libctx_core`; what is heavy loads inside the factories.
"""

from collections.abc import Callable, Mapping, Sequence

from libctx_core.models import ContextEvent
from libctx_core.plugins import hookimpl
from libctx_core.ports import Embedder, ProtectionProposal

__all__ = ["propose_protections", "register_embedders"]


@hookimpl
def register_embedders() -> Mapping[str, Callable[[], Embedder]]:
    """Bring ``trigrams``: letter trigrams hashed into 256 dimensions."""
    return {"trigrams": _trigrams}


@hookimpl
def propose_protections(events: Sequence[ContextEvent]) -> list[ProtectionProposal]:
    """Propose to keep what the user said to do always or never."""
    from libctx_example.standing import standing_instructions

    return standing_instructions(events)


def _trigrams() -> Embedder:
    from libctx_example.trigrams import TrigramEmbedder

    return TrigramEmbedder()
