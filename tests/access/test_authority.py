"""What rooms ask: order of checks, policies, handles, audit, administration, vetoes."""

# ruff: noqa: SIM117 - nesting is what these tests are about

import pytest

from libctx_core.access import (
    Authority,
    Boundary,
    ContextAccess,
    ContextAccessDenied,
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
)
from libctx_core.errors import (
    AdminTokenError,
    InvalidMetadataError,
    LibctxError,
    ResourceExistsError,
    ScopeActiveError,
    ScopeForgeryError,
)

KIND = "THREAD"
MINE = ResourceMetadata(KIND, "mine", "w")
THEIRS = ResourceMetadata(KIND, "theirs", "v")
REQUIRE = EnforcementMode.REQUIRE_ENROLLMENT


def never(*args):
    raise AssertionError("asked too early")


def scope_of(access, rights=None, mode=REQUIRE, name="p"):
    return access.issue_root_scope(Principal(name), rights or Rights.all_on(Resource("mine")), mode)


def denied(call):
    with pytest.raises(ContextAccessDenied) as denial:
        call()
    return denial.value


class TestOneResource:
    def test_without_a_scope_nothing_is_looked_up(self, authority):
        authority.require(Operation.READ, KIND, "k", never, never)
        authority.require_write(KIND, "k", never, never)

    def test_presence_is_probed_only_after_permission(self, access, authority):
        with access.scope(scope_of(access)):
            error = denied(lambda: authority.require(Operation.READ, KIND, "k", THEIRS, never))
            assert error.reason is DenialReason.MISSING_PERMISSION
            for presence, reason in (
                (Presence.ABSENT, DenialReason.INVALID_METADATA),
                (Presence.UNKNOWN, DenialReason.METADATA_UNAVAILABLE),
            ):
                error = denied(lambda p=presence: authority.require(Operation.READ, KIND, "k", MINE, lambda: p))
                assert error.reason is reason

    @pytest.mark.parametrize("raised", [InvalidMetadataError("document", "is not strict JSON"), None])
    def test_what_a_store_raises_is_relabelled_with_the_attempted_operation(self, access, authority, raised):
        def look_up():
            raise raised or ContextAccessDenied(Operation.READ, "OTHER", "x", DenialReason.METADATA_UNAVAILABLE)

        with access.scope(scope_of(access)):
            error = denied(lambda: authority.require(Operation.DELETE, KIND, "k", look_up))
        expected = DenialReason.INVALID_METADATA if raised else DenialReason.METADATA_UNAVAILABLE
        assert (error.operation, error.resource_kind, error.reason) == (Operation.DELETE, KIND, expected)

    def test_t29_the_message_never_names_the_key(self, access, authority):
        with access.scope(scope_of(access)):
            error = denied(lambda: authority.require(Operation.READ, KIND, "tenant-7-salaries", THEIRS))
        assert "salaries" not in str(error)
        assert "theirs" not in str(error)
        assert error.resource_key == "tenant-7-salaries"
        assert str(error).startswith("Context access denied for read thread:")
        assert isinstance(error, PermissionError)
        assert isinstance(error, LibctxError)
        assert error.code == "access_denied"

    def test_t15_legacy_passes_are_counted(self, access, authority):
        bound = authority.bound(scope_of(access, mode=EnforcementMode.LEGACY_COMPATIBLE))
        bound.require(Operation.READ, KIND, "k", None)
        bound.require_write(KIND, "k", None)
        assert authority.legacy_access_total == bound.legacy_access_total == 2

    def test_references_are_refused_after_the_operation_itself(self, access, authority):
        authority.refuse_reference(Operation.READ, KIND, "k", never)
        for mode, metadata, reason in (
            (REQUIRE, THEIRS, DenialReason.MISSING_PERMISSION),
            (REQUIRE, MINE, DenialReason.UNSAFE_REFERENCE),
            (EnforcementMode.LEGACY_COMPATIBLE, None, DenialReason.UNSAFE_REFERENCE),
        ):
            with access.scope(scope_of(access, mode=mode)):
                error = denied(lambda m=metadata: authority.refuse_reference(Operation.WRITE, KIND, "k", m))
                assert (error.operation, error.reason) == (Operation.WRITE, reason)


class TestHandles:
    def test_a_handle_holds_whatever_the_context_says(self, access, authority):
        bound = authority.bound(scope_of(access))
        with access.scope(scope_of(access, Rights())):
            bound.require(Operation.READ, KIND, "k", MINE)
            assert not authority.allowed(Operation.READ, KIND, "k", MINE)
        bound.require(Operation.READ, KIND, "k", MINE)
        with pytest.raises(ContextAccessDenied):
            bound.require(Operation.READ, KIND, "k", THEIRS)

    def test_binding_to_nothing_keeps_what_is_bound(self, access, authority):
        bound = authority.bound(scope_of(access))
        assert bound.bound(None) is bound
        assert authority.bound(None) is authority

    def test_only_scopes_can_be_bound(self, authority):
        with pytest.raises(ScopeForgeryError):
            authority.bound("p")

    def test_a_bound_authority_administers_nothing(self, access, authority):
        with pytest.raises(ScopeActiveError):
            authority.bound(scope_of(access)).require_admin("x", None)


class TestCreation:
    def test_the_kind_must_fit(self, authority):
        with pytest.raises(InvalidMetadataError):
            authority.require_create("MEMORY", "k", MINE)

    def test_an_unknown_version_is_denied_with_and_without_scope(self, access, authority):
        newer = ResourceMetadata(KIND, "mine", None, 2)
        assert denied(lambda: authority.require_create(KIND, "k", newer)).reason is DenialReason.INVALID_METADATA
        with access.scope(scope_of(access)):
            assert denied(lambda: authority.require_create(KIND, "k", newer)).operation is Operation.CREATE

    def test_t3_the_policy_of_an_authority_counts(self, access):
        strict = Authority(access, create_policy=CreatePolicy.BOTH)
        with access.scope(scope_of(access)):
            Authority(access).require_create(KIND, "k", MINE)
            denied(lambda: strict.require_create(KIND, "k", MINE))
        both = scope_of(access, Rights.all_on(Resource("mine"), Boundary("w")))
        strict.bound(both).require_create(KIND, "k", MINE)

    def test_t28_existence_can_be_hidden(self, access):
        open_, hiding = Authority(access), Authority(access, hide_existence=True)
        with access.scope(scope_of(access, Rights.all_on(Resource("mine")))):
            with pytest.raises(ResourceExistsError):
                open_.refuse_existing(KIND, "k", THEIRS)
            for existing in (THEIRS, None):
                error = denied(lambda e=existing: hiding.refuse_existing(KIND, "k", e))
                assert (error.operation, error.reason) == (Operation.CREATE, DenialReason.MISSING_PERMISSION)
            with pytest.raises(ResourceExistsError) as exists:
                hiding.refuse_existing(KIND, "k", MINE)
            assert "k" not in str(exists.value).split()
            invalid = denied(lambda: hiding.refuse_existing(KIND, "k", DenialReason.INVALID_METADATA))
            assert invalid.reason is DenialReason.INVALID_METADATA
        with pytest.raises(ResourceExistsError):
            hiding.refuse_existing(KIND, "k", THEIRS)


class TestManyResources:
    def test_visibility(self, access, authority, events):
        present, absent = (lambda: Presence.PRESENT), (lambda: Presence.ABSENT)
        assert authority.visible(KIND, "k", never, never)
        with access.scope(scope_of(access, Rights(enumerable_resources={Resource("mine")}))):
            assert authority.visible(KIND, "k", MINE, present)
            assert not authority.visible(KIND, "k", MINE, absent)
            assert not authority.visible(KIND, "k", THEIRS, never)
            assert not authority.visible(KIND, "k", None, never)
            assert not authority.visible(KIND, "k", ResourceMetadata("MEMORY", "mine"), never)
            assert events == []
            assert not authority.visible(KIND, "bad", DenialReason.INVALID_METADATA, never)
        assert [(event.name, event.resource_key) for event in events] == [("access.excluded", "bad")]
        with access.scope(scope_of(access, mode=EnforcementMode.LEGACY_COMPATIBLE)):
            assert authority.visible(KIND, "k", None, never)

    def test_t27_enumeration_can_be_demanded(self, access, authority):
        authority.require_enumeration(KIND)
        with access.scope(scope_of(access, Rights(readable_resources={Resource("mine")}))):
            error = denied(lambda: authority.require_enumeration(KIND))
            assert error.resource_key == "<enumeration>"
        with access.scope(scope_of(access)):
            authority.require_enumeration(KIND)

    def test_an_incapable_backend_refuses_scopes_only(self, access, authority):
        authority.refuse_incapable(Operation.ENUMERATE, KIND)
        with access.scope(scope_of(access)):
            error = denied(lambda: authority.refuse_incapable(Operation.ENUMERATE, KIND))
            assert (error.resource_key, error.reason) == ("<remote>", DenialReason.METADATA_UNAVAILABLE)


class TestPolicies:
    @pytest.fixture
    def authority(self, access):
        return Authority(access, unscoped_policy=UnscopedPolicy.DENY)

    def test_t13_without_a_scope_everything_is_denied_before_anything_is_looked_up(self, authority):
        for call in (
            lambda: authority.require(Operation.READ, KIND, "k", never, never),
            lambda: authority.require_write(KIND, "k", never, never),
            lambda: authority.require_create(KIND, "k", MINE),
            lambda: authority.refuse_reference(Operation.READ, KIND, "k", never),
            lambda: authority.selection(Operation.READ, KIND),
            lambda: authority.require_enumeration(KIND),
        ):
            assert denied(call).reason is DenialReason.UNSCOPED_EXECUTION
        assert not authority.visible(KIND, "k", never, never)
        assert not authority.allowed(Operation.READ, KIND, "k", never)

    def test_the_default_comes_from_the_access(self):
        assert Authority(ContextAccess()).unscoped_policy is UnscopedPolicy.LEGACY_ALLOWED
        strict = ContextAccess(unscoped_policy=UnscopedPolicy.DENY)
        assert Authority(strict).unscoped_policy is UnscopedPolicy.DENY
        assert strict.unscoped_policy is UnscopedPolicy.DENY

    def test_t39_administration_needs_the_token_that_is_given_out_once(self, access, authority):
        with pytest.raises(AdminTokenError):
            authority.require_admin("rule")
        token = access.take_admin_token()
        authority.require_admin("rule", token)
        with pytest.raises(AdminTokenError):
            access.take_admin_token()
        with pytest.raises(AdminTokenError):
            authority.require_admin("rule", ContextAccess().take_admin_token())
        with access.scope(scope_of(access)), pytest.raises(ScopeActiveError):
            authority.require_admin("rule", token)

    def test_a_legacy_authority_is_administered_outside_scopes_only(self, access):
        legacy = Authority(access)
        legacy.require_admin("rule")
        with access.scope(scope_of(access)), pytest.raises(ScopeActiveError):
            legacy.require_admin("rule")


class TestAudit:
    def test_t4_a_denial_reports_the_chain_and_the_shadowed_principal(self, access, authority, events):
        rights = Rights.all_on(Resource("mine"), delegable=True)
        with access.scope(scope_of(access, rights, name="root")), access.child_scope(Principal("child"), rights):
            with access.scope(scope_of(access, rights, name="tool")):
                denied(lambda: authority.require(Operation.READ, KIND, "k", THEIRS))
        (event,) = events
        assert event.name == "access.denied"
        assert event.chain == ("root", "child")
        assert event.shadowed == "tool"
        assert event.attributes() == {
            "operation": "READ",
            "resource_kind": KIND,
            "resource_key": "k",
            "reason": "MISSING_PERMISSION",
            "chain": "root > child",
            "shadowed": "tool",
        }

    def test_a_failing_observer_changes_no_decision(self, caplog):
        def fail(event):
            raise RuntimeError("observer")

        access = ContextAccess(on_event=fail)
        authority = Authority(access, unscoped_policy=UnscopedPolicy.DENY)
        assert denied(lambda: authority.require(Operation.READ, KIND, "k", MINE)).reason is (
            DenialReason.UNSCOPED_EXECUTION
        )
        assert "observer failed" in caplog.text

    def test_revocations_are_reported(self, access, events):
        access.revoke(scope_of(access, name="root"))
        assert [(event.name, event.chain) for event in events] == [("access.revoked", ("root",))]


class TestVetoes:
    def test_a_guard_denies_and_is_asked_once(self, access):
        asked = []

        def guard(question):
            asked.append(question)
            return {"mine"}

        authority = Authority(access, guard=guard)
        scope = scope_of(access, Rights.all_on(Resource("mine"), Resource("also")))
        with access.scope(scope):
            for _ in range(3):
                denied(lambda: authority.require(Operation.READ, KIND, "k", MINE))
            assert not authority.allowed(Operation.READ, KIND, "k", MINE)
            assert not authority.visible(KIND, "k", MINE, lambda: Presence.PRESENT)
        assert [question.operation for question in asked] == ["READ", "ENUMERATE"]
        assert asked[0].principal == "p"
        authority.guard.forget()
        with access.scope(scope):
            denied(lambda: authority.require(Operation.READ, KIND, "k", MINE))
        assert len(asked) == 3

    def test_a_guard_cannot_grant_and_is_not_asked_about_what_is_denied_anyhow(self, access):
        authority = Authority(access, guard=never)
        with access.scope(scope_of(access)):
            denied(lambda: authority.require(Operation.READ, KIND, "k", THEIRS))
        authority.require(Operation.READ, KIND, "k", MINE)

    def test_a_failing_guard_denies_and_is_asked_again(self, access):
        answers = [RuntimeError("down"), set()]

        def guard(question):
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        authority = Authority(access, guard=guard)
        with access.scope(scope_of(access)):
            denied(lambda: authority.require(Operation.READ, KIND, "k", MINE))
            authority.require(Operation.READ, KIND, "k", MINE)
            authority.require(Operation.READ, KIND, "k", MINE)
        assert answers == []


class TestConfinement:
    def test_a_confined_scope_reaches_one_resource_only(self, access, authority):
        scope = scope_of(access, Rights(readable_resources={Boundary("w"), Boundary("v")}, delegable=True))
        with access.scope(scope), access.scope(authority.confined(MINE)) as confined:
            authority.require(Operation.READ, KIND, "k", MINE)
            denied(lambda: authority.require(Operation.READ, KIND, "k", THEIRS))
            denied(lambda: authority.require(Operation.READ, KIND, "k", ResourceMetadata(KIND, "mine", "v")))
            denied(lambda: authority.require(Operation.WRITE, KIND, "k", MINE))
            denied(lambda: authority.require(Operation.READ, KIND, "k", None))
            assert confined.principal == scope.principal
        assert authority.confined(MINE) is None

    def test_a_resource_without_boundary_is_confined_by_its_id(self, access, authority):
        alone = ResourceMetadata(KIND, "mine")
        layered = scope_of(access).attenuate(Rights.all_on(Resource("mine"), Boundary("w")), layered=True)
        with access.scope(layered), access.scope(authority.confined(alone)):
            authority.require(Operation.WRITE, KIND, "k", alone)
            denied(lambda: authority.require(Operation.WRITE, KIND, "k", THEIRS))
