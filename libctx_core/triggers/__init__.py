"""Triggers: when something is to be derived, and how far that got."""

from libctx_core.triggers.cursors import CursorStore, StoredCursor
from libctx_core.triggers.policy import (
    PolicyTransition,
    ProcessSourceWindow,
    SourceHighWatermark,
    SourceWindowTrigger,
    Trigger,
)

__all__ = [
    "CursorStore",
    "PolicyTransition",
    "ProcessSourceWindow",
    "SourceHighWatermark",
    "SourceWindowTrigger",
    "StoredCursor",
    "Trigger",
]
