"""Who may touch what: scopes over everything a library holds, decided before any value is touched.

`access` is the authority a library uses by default; `ContextAccess` makes others. A store
asks an `Authority` (see `libctx_core.access.authority`) and never a scope.
"""

from libctx_core.access.audit import AccessEvent
from libctx_core.access.authority import Authority
from libctx_core.access.containment import ContainmentResolver
from libctx_core.access.context import AdminToken, ContextAccess, access
from libctx_core.access.decision import Decision, Presence, Verdict, decide, decide_create, decide_write
from libctx_core.access.grid import scope_text
from libctx_core.access.identifiers import lint_ids
from libctx_core.access.kinds import ResourceKind, ResourceKinds
from libctx_core.access.metadata import (
    MetadataState,
    ResourceMetadata,
    decode_metadata,
    encode_metadata,
    metadata_for,
)
from libctx_core.access.policy import CreatePolicy, EnforcementMode, UnscopedPolicy
from libctx_core.access.propagation import ScopedExecutor
from libctx_core.access.rights import Rights
from libctx_core.access.scope import Scope
from libctx_core.access.selectors import Boundary, Contained, Principal, Resource, Selector
from libctx_core.errors import ContextAccessDenied
from libctx_core.errors.access import DenialReason, Operation

__all__ = [
    "AccessEvent",
    "AdminToken",
    "Authority",
    "Boundary",
    "Contained",
    "ContainmentResolver",
    "ContextAccess",
    "ContextAccessDenied",
    "CreatePolicy",
    "Decision",
    "DenialReason",
    "EnforcementMode",
    "MetadataState",
    "Operation",
    "Presence",
    "Principal",
    "Resource",
    "ResourceKind",
    "ResourceKinds",
    "ResourceMetadata",
    "Rights",
    "Scope",
    "ScopedExecutor",
    "Selector",
    "UnscopedPolicy",
    "Verdict",
    "access",
    "decide",
    "decide_create",
    "decide_write",
    "decode_metadata",
    "encode_metadata",
    "lint_ids",
    "metadata_for",
    "scope_text",
]
