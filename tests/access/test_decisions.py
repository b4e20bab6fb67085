"""The pure decisions, compared with an independent reading of the contract over every combination."""

import itertools
import os
import socket

import pytest

from libctx_core.access import (
    Boundary,
    ContextAccess,
    CreatePolicy,
    DenialReason,
    EnforcementMode,
    Operation,
    Presence,
    Principal,
    Resource,
    ResourceMetadata,
    Rights,
    UnscopedPolicy,
    Verdict,
    decide,
    decide_create,
    decide_write,
)
from libctx_core.access.scope import grant_of

KIND = "CONTEXT_WINDOW"
COVERED = ResourceMetadata(KIND, "r", "w")
BY_BOUNDARY = ResourceMetadata(KIND, "other", "inside")
FOREIGN = ResourceMetadata(KIND, "x", "y")
STATES = {
    "missing": None,
    "invalid": DenialReason.INVALID_METADATA,
    "unavailable": DenialReason.METADATA_UNAVAILABLE,
    "covered": COVERED,
    "by boundary": BY_BOUNDARY,
    "foreign": FOREIGN,
    "other kind": ResourceMetadata("TODO_LIST", "r", "w"),
    "newer": ResourceMetadata(KIND, "r", "w", 2),
    "page key": ResourceMetadata(KIND, "page", "r"),
}


def grants():
    access = ContextAccess()
    selectors = (Resource("r"), Boundary("inside"))
    yield "none", None
    for mode in EnforcementMode:
        for name, rights in {
            "all": Rights.all_on(*selectors),
            "nothing": Rights(),
            "read": Rights(readable_resources=selectors),
            "write": Rights(writable_resources=selectors),
            "create": Rights(creatable_resources=selectors),
        }.items():
            yield f"{name} {mode}", grant_of(access.issue_root_scope(Principal("p"), rights, mode))


def holds(grant, operation, metadata):
    selectors = grant.layers[0].selectors(operation)
    return Resource(metadata.resource_id) in selectors or (
        metadata.boundary_id is not None and Boundary(metadata.boundary_id) in selectors
    )


GRANTS = dict(grants())


@pytest.mark.parametrize("operation", [op for op in Operation if op is not Operation.DELEGATE])
@pytest.mark.parametrize("name", GRANTS)
def test_decide_follows_the_ordered_procedure(name, operation):
    grant = GRANTS[name]
    for policy, (label, state), presence in itertools.product(UnscopedPolicy, STATES.items(), Presence):
        decision = decide(grant, policy, state, presence, operation, KIND)
        if grant is None:
            expected = None if policy is UnscopedPolicy.LEGACY_ALLOWED else DenialReason.UNSCOPED_EXECUTION
        elif label == "missing":
            strict = grant.mode is EnforcementMode.REQUIRE_ENROLLMENT
            expected = DenialReason.METADATA_UNAVAILABLE if strict else None
        elif label in {"invalid", "unavailable"}:
            expected = state
        elif label in {"other kind", "newer"}:
            expected = DenialReason.INVALID_METADATA
        elif not holds(grant, operation, state):
            expected = DenialReason.MISSING_PERMISSION
        elif presence is Presence.UNPROBED:
            expected = "probe"
        else:
            expected = {
                Presence.PRESENT: None,
                Presence.ABSENT: DenialReason.INVALID_METADATA,
                Presence.UNKNOWN: DenialReason.METADATA_UNAVAILABLE,
            }[presence]
        got = "probe" if decision.verdict is Verdict.PROBE else decision.reason
        assert got == expected, (name, label, presence)
        assert (decision.verdict is Verdict.DENY) == isinstance(expected, DenialReason)
        assert decision.operation is operation
        assert decision.legacy == (grant is not None and label == "missing" and expected is None)


@pytest.mark.parametrize("name", GRANTS)
def test_decide_write_needs_write_where_it_exists_and_create_where_it_does_not(name):
    grant = GRANTS[name]
    allowed = UnscopedPolicy.LEGACY_ALLOWED
    for (label, state), presence in itertools.product(STATES.items(), Presence):
        decision = decide_write(grant, allowed, state, presence, KIND)
        outcome = (decision.verdict, decision.operation, decision.reason)
        if grant is None:
            assert decision.verdict is Verdict.ALLOW
        elif label == "missing" and grant.mode is EnforcementMode.LEGACY_COMPATIBLE:
            assert decision.legacy
        elif label == "missing":
            operation = Operation.CREATE if presence is Presence.ABSENT else Operation.WRITE
            if presence is Presence.UNPROBED:
                assert decision.verdict is Verdict.PROBE
            else:
                assert outcome == (Verdict.DENY, operation, DenialReason.METADATA_UNAVAILABLE)
        elif label in {"covered", "by boundary"}:
            write, create = holds(grant, Operation.WRITE, state), holds(grant, Operation.CREATE, state)
            if not write and not create:
                assert outcome == (Verdict.DENY, Operation.WRITE, DenialReason.MISSING_PERMISSION)
            elif presence is Presence.UNPROBED:
                assert decision.verdict is Verdict.PROBE
            elif presence is Presence.UNKNOWN:
                operation = Operation.WRITE if write else Operation.CREATE
                assert outcome == (Verdict.DENY, operation, DenialReason.METADATA_UNAVAILABLE)
            else:
                operation = Operation.WRITE if presence is Presence.PRESENT else Operation.CREATE
                has = write if presence is Presence.PRESENT else create
                assert outcome[:2] == (Verdict.ALLOW if has else Verdict.DENY, operation)
        else:
            assert decision.verdict is Verdict.DENY
            assert decision.operation is Operation.WRITE


def test_t3_create_policies():
    access = ContextAccess()
    policy = UnscopedPolicy.LEGACY_ALLOWED

    def outcome(rights, proposed, create_policy):
        grant = grant_of(access.issue_root_scope(Principal("p"), rights, EnforcementMode.REQUIRE_ENROLLMENT))
        return decide_create(grant, policy, proposed, create_policy).reason

    by_resource = Rights(creatable_resources={Resource("mine")})
    by_boundary = Rights(creatable_resources={Boundary("mine")})
    both = Rights(creatable_resources={Resource("mine"), Boundary("mine")})
    into_foreign = ResourceMetadata(KIND, "mine", "theirs")
    claims_foreign = ResourceMetadata(KIND, "theirs", "mine")
    own = ResourceMetadata(KIND, "mine", "mine")
    alone = ResourceMetadata(KIND, "mine")
    missing = DenialReason.MISSING_PERMISSION
    assert outcome(by_resource, into_foreign, CreatePolicy.EITHER) is None
    assert outcome(by_boundary, claims_foreign, CreatePolicy.EITHER) is None
    assert outcome(by_resource, into_foreign, CreatePolicy.BOTH) is missing
    assert outcome(by_boundary, claims_foreign, CreatePolicy.BOTH) is missing
    assert outcome(both, own, CreatePolicy.BOTH) is None
    assert outcome(by_resource, alone, CreatePolicy.BOTH) is None
    assert outcome(by_boundary, alone, CreatePolicy.EITHER) is missing


def test_creation_under_an_unknown_version_is_refused_even_without_a_scope():
    newer = ResourceMetadata(KIND, "r", None, 2)
    decision = decide_create(None, UnscopedPolicy.LEGACY_ALLOWED, newer, CreatePolicy.EITHER)
    assert (decision.operation, decision.reason) == (Operation.CREATE, DenialReason.INVALID_METADATA)


def test_decisions_do_no_input_or_output(monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("a decision touched the outside")

    for module, name in ((os, "open"), (os, "stat"), (socket, "socket")):
        monkeypatch.setattr(module, name, forbidden)
    monkeypatch.setattr("builtins.open", forbidden)
    for grant in GRANTS.values():
        for state in STATES.values():
            decide(grant, UnscopedPolicy.DENY, state, Presence.UNPROBED, Operation.READ, KIND)
            decide_write(grant, UnscopedPolicy.DENY, state, Presence.UNPROBED, KIND)
