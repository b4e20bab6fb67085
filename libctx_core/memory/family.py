"""The three component groups of a context, bound together."""

from typing import Generic, TypeVar

from libctx_core.sources.values import ComponentGroup

SourcesT = TypeVar("SourcesT")
ArtifactsT = TypeVar("ArtifactsT")
TriggersT = TypeVar("TriggersT")


class ContextComponents(ComponentGroup, Generic[SourcesT, ArtifactsT, TriggersT]):
    """Sources, artifacts and triggers that were chosen to work together.

    It opens nothing and closes nothing: whoever built the components owns them.

    Attributes:
        sources: What is observed.
        artifacts: What is derived.
        triggers: When it is derived.
    """

    sources: SourcesT
    artifacts: ArtifactsT
    triggers: TriggersT


PowerContext = ContextComponents
"""The seed's name."""
