"""Access decisions as pure functions: facts in, one verdict out, no input or output.

Each function answers with a `Decision`. `PROBE` means that permission holds and the
caller must now find out whether the payload exists and ask again with that answer:
presence is never looked up for somebody who may not touch the resource.
"""

from enum import Enum
from typing import Final, NamedTuple

from libctx_core.access.metadata import MetadataState
from libctx_core.access.policy import CreatePolicy, EnforcementMode, UnscopedPolicy
from libctx_core.access.scope import Grant
from libctx_core.errors.access import DenialReason, Operation


class Verdict(Enum):
    """Outcome of a decision."""

    ALLOW = "allow"
    DENY = "deny"
    PROBE = "probe"


class Presence(Enum):
    """What is known about a payload."""

    UNPROBED = "unprobed"
    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Decision(NamedTuple):
    """A verdict and, for a denial, what it is about.

    Attributes:
        verdict: Allow, deny, or find out presence and ask again.
        operation: The operation the denial names; a write may turn out to be a CREATE.
        reason: Why it is denied.
        legacy: It is allowed only because the resource is not enrolled.
    """

    verdict: Verdict
    operation: Operation
    reason: DenialReason | None = None
    legacy: bool = False


_ALLOW: Final = {operation: Decision(Verdict.ALLOW, operation) for operation in Operation}
_LEGACY: Final = {operation: Decision(Verdict.ALLOW, operation, legacy=True) for operation in Operation}
_PROBE: Final = {operation: Decision(Verdict.PROBE, operation) for operation in Operation}
_DENY: Final = {
    (operation, reason): Decision(Verdict.DENY, operation, reason) for operation in Operation for reason in DenialReason
}

# attribute access on an enumeration costs more than a whole set lookup
_UNPROBED: Final = Presence.UNPROBED
_PRESENT: Final = Presence.PRESENT
_ABSENT: Final = Presence.ABSENT
_UNKNOWN: Final = Presence.UNKNOWN
_REQUIRE: Final = EnforcementMode.REQUIRE_ENROLLMENT
_LEGACY_MODE: Final = EnforcementMode.LEGACY_COMPATIBLE
_DENY_UNSCOPED: Final = UnscopedPolicy.DENY
_MISSING_PERMISSION: Final = DenialReason.MISSING_PERMISSION
_METADATA_UNAVAILABLE: Final = DenialReason.METADATA_UNAVAILABLE
_INVALID_METADATA: Final = DenialReason.INVALID_METADATA
_UNSCOPED_EXECUTION: Final = DenialReason.UNSCOPED_EXECUTION
_WRITE: Final = Operation.WRITE
_CREATE: Final = Operation.CREATE


def decide(
    grant: Grant | None,
    policy: UnscopedPolicy,
    metadata: MetadataState,
    presence: Presence,
    operation: Operation,
    kind: str,
) -> Decision:
    """Decide a read, delete, eviction, mutation or presence check.

    Args:
        grant: What the scope holds; None without a scope.
        policy: What a call without a scope may do.
        metadata: The resource's document, None if it has none, or why it cannot be read.
        presence: Whether the payload exists, `UNPROBED` at the first call.
        operation: What is attempted.
        kind: The kind the caller asked for.
    """
    if grant is None:
        if policy is _DENY_UNSCOPED:
            return _DENY[operation, _UNSCOPED_EXECUTION]
        return _ALLOW[operation]
    if metadata is None:
        if grant.mode is _REQUIRE:
            return _DENY[operation, _METADATA_UNAVAILABLE]
        return _LEGACY[operation]
    if isinstance(metadata, DenialReason):
        return _DENY[operation, metadata]
    if not metadata.usable or metadata.resource_kind != kind:
        return _DENY[operation, _INVALID_METADATA]
    if not grant.allows(operation, metadata.resource_id, metadata.boundary_id):
        return _DENY[operation, _MISSING_PERMISSION]
    if presence is _PRESENT:
        return _ALLOW[operation]
    if presence is _UNPROBED:
        return _PROBE[operation]
    if presence is _ABSENT:
        return _DENY[operation, _INVALID_METADATA]
    return _DENY[operation, _METADATA_UNAVAILABLE]


def decide_write(
    grant: Grant | None,
    policy: UnscopedPolicy,
    metadata: MetadataState,
    presence: Presence,
    kind: str,
) -> Decision:
    """Decide storing a whole value: WRITE where the payload exists, CREATE where it does not.

    Without metadata, presence only labels the denial; with metadata that neither right
    covers, the denial comes before presence is probed.
    """
    write, create = _WRITE, _CREATE
    if grant is None or isinstance(metadata, DenialReason):
        return decide(grant, policy, metadata, presence, write, kind)
    if metadata is None:
        if grant.mode is _LEGACY_MODE:
            return _LEGACY[write]
        if presence is _UNPROBED:
            return _PROBE[write]
        absent = presence is _ABSENT
        return _DENY[create if absent else write, _METADATA_UNAVAILABLE]
    if not metadata.usable or metadata.resource_kind != kind:
        return _DENY[write, _INVALID_METADATA]
    may_write = grant.allows(write, metadata.resource_id, metadata.boundary_id)
    may_create = grant.allows(create, metadata.resource_id, metadata.boundary_id)
    if not (may_write or may_create):
        return _DENY[write, _MISSING_PERMISSION]
    if presence is _UNPROBED:
        return _PROBE[write]
    if presence is _UNKNOWN:
        return _DENY[write if may_write else create, _METADATA_UNAVAILABLE]
    operation, allowed = (write, may_write) if presence is _PRESENT else (create, may_create)
    return _ALLOW[operation] if allowed else _DENY[operation, _MISSING_PERMISSION]


def decide_create(
    grant: Grant | None,
    policy: UnscopedPolicy,
    proposed: MetadataState,
    create_policy: CreatePolicy,
) -> Decision:
    """Decide enrolling a new resource under the proposed metadata.

    A document this release does not understand is refused even without a scope.
    """
    create = _CREATE
    if proposed is None or isinstance(proposed, DenialReason) or not proposed.usable:
        return _DENY[create, _INVALID_METADATA]
    if grant is None:
        return decide(None, policy, proposed, _UNPROBED, create, proposed.resource_kind)
    check = grant.covers_both if create_policy is CreatePolicy.BOTH else grant.allows
    if check(create, proposed.resource_id, proposed.boundary_id):
        return _ALLOW[create]
    return _DENY[create, _MISSING_PERMISSION]
