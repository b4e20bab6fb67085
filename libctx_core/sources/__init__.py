"""Sources: what was observed, where it comes from, and how to read it back."""

from libctx_core.sources.adapters import (
    AnySourceAdapter,
    BaseSourceAdapter,
    DirectSourceAdapter,
    SourceAdapter,
    SourceRouter,
)
from libctx_core.sources.base import Checked, Value
from libctx_core.sources.catalog import SourceCatalog, SourceCatalogBackend, Sources, SourceStore
from libctx_core.sources.content import ContentAdapter, ContentCapture, ContentSource
from libctx_core.sources.guard import AuthorityGuard, Enrolment, OpenGuard, OwnerGuard
from libctx_core.sources.shelf import SourceEntry, SourceShelf, SQLiteSourceStore, payload_of
from libctx_core.sources.values import Source, SourceCursor, SourceMaterialization, SourceRef

__all__ = [
    "AnySourceAdapter",
    "AuthorityGuard",
    "BaseSourceAdapter",
    "Checked",
    "ContentAdapter",
    "ContentCapture",
    "ContentSource",
    "DirectSourceAdapter",
    "Enrolment",
    "OpenGuard",
    "OwnerGuard",
    "SQLiteSourceStore",
    "Source",
    "SourceAdapter",
    "SourceCatalog",
    "SourceCatalogBackend",
    "SourceCursor",
    "SourceEntry",
    "SourceMaterialization",
    "SourceRef",
    "SourceRouter",
    "SourceShelf",
    "SourceStore",
    "Sources",
    "Value",
    "payload_of",
]
