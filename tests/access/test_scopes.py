"""Installing, nesting, delegating, narrowing and forging scopes."""

# ruff: noqa: SIM117 - nesting is what these tests are about

import asyncio
import copy
import dataclasses
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libctx_core.access import (
    Boundary,
    ContextAccess,
    ContextAccessDenied,
    DenialReason,
    EnforcementMode,
    Operation,
    Principal,
    Resource,
    Rights,
    Scope,
    scope_text,
)
from libctx_core.access.scope import Grant, grant_of, scope_of
from libctx_core.errors import InvalidInputError, ScopeForgeryError

LEGACY, REQUIRE = EnforcementMode.LEGACY_COMPATIBLE, EnforcementMode.REQUIRE_ENROLLMENT
READ_A = Rights.read_only(Resource("a"))


def root(access, rights=READ_A, mode=LEGACY, name="root"):
    return access.issue_root_scope(Principal(name), rights, mode)


def reads(scope, resource, boundary=None):
    return grant_of(scope).allows(Operation.READ, resource, boundary)


class TestInstalling:
    def test_a_root_scope_is_legacy_compatible_by_default(self, access):
        assert root(access).enforcement_mode is LEGACY

    def test_the_scope_holds_inside_and_is_restored_outside(self, access):
        assert access.current_scope() is None
        with access.scope(root(access)) as installed:
            assert access.current_scope() is installed
        assert access.current_scope() is None

    def test_it_is_restored_after_an_exception(self, access):
        with pytest.raises(KeyError), access.scope(root(access)):
            raise KeyError
        assert access.current_scope() is None

    async def test_one_block_serves_async_code_too(self, access):
        async with access.scope(root(access)) as installed:
            await asyncio.sleep(0)
            assert access.current_scope() is installed
        assert access.current_scope() is None

    def test_installing_the_ambient_scope_again_changes_nothing(self, access):
        scope = root(access)
        with access.scope(scope), access.scope(scope) as inner:
            assert inner is scope

    def test_a_block_can_be_used_again_but_not_entered_twice(self, access):
        block = access.scope(root(access))
        with block:
            pass
        with block, pytest.raises(RuntimeError):
            block.__enter__()
        assert access.current_scope() is None

    def test_instances_do_not_see_each_others_scopes(self, access):
        other = ContextAccess()
        with access.scope(root(access)):
            assert other.current_scope() is None

    @pytest.mark.parametrize("principal", ["root", None])
    def test_only_a_principal_and_rights_make_a_scope(self, access, principal):
        with pytest.raises(InvalidInputError):
            access.issue_root_scope(principal, READ_A)
        with pytest.raises(InvalidInputError):
            access.issue_root_scope(Principal("p"), {"read": "everything"})


class TestNesting:
    def test_rights_are_intersected_and_restored(self, access):
        outer = root(access, Rights.read_only(Resource("a"), Resource("b")))
        inner = root(access, Rights.read_only(Resource("b"), Resource("c")))
        with access.scope(outer):
            with access.scope(inner) as effective:
                assert [reads(effective, name) for name in "abc"] == [False, True, False]
            assert reads(access.current_scope(), "a")

    def test_t4_the_ambient_principal_acts_and_the_other_is_on_record(self, access):
        with access.scope(root(access, name="outer")), access.scope(root(access, name="inner")) as effective:
            assert effective.principal == Principal("outer")
            assert grant_of(effective).chain == ("outer",)
            assert grant_of(effective).shadowed == "inner"

    def test_t6_two_trusted_roots_nested_shrink(self, access):
        with access.scope(root(access, Rights.all_on(Resource("a")))):
            with access.scope(root(access, Rights.all_on(Resource("b")))) as effective:
                assert not reads(effective, "a")
                assert not reads(effective, "b")

    @pytest.mark.parametrize("outer", [LEGACY, REQUIRE])
    @pytest.mark.parametrize("inner", [LEGACY, REQUIRE])
    def test_t7_the_stricter_mode_holds(self, access, outer, inner):
        with access.scope(root(access, mode=outer)), access.scope(root(access, mode=inner)) as effective:
            assert effective.enforcement_mode is (REQUIRE if REQUIRE in {outer, inner} else LEGACY)

    def test_t1_a_narrower_looking_scope_yields_nothing(self, access):
        with access.scope(root(access, Rights.read_only(Boundary("w")))):
            with access.scope(root(access, Rights.read_only(Resource("r")))) as effective:
                assert not reads(effective, "r", "w")

    def test_t1_layers_give_the_intuitive_result(self, access):
        with access.scope(root(access, Rights.read_only(Boundary("w")))):
            with access.scope(root(access, Rights.read_only(Resource("r"))), layered=True) as effective:
                assert reads(effective, "r", "w")
                assert not reads(effective, "r", "other")
                assert not reads(effective, "else", "w")
                with access.scope(root(access, Rights.read_only(Resource("r")))) as deeper:
                    assert not reads(deeper, "r", "w")


class TestDelegation:
    DELEGABLE = Rights.all_on(Resource("a"), Resource("b"), delegable=True)

    def test_a_child_has_its_own_principal_and_at_most_the_ambient_rights(self, access):
        with access.scope(root(access, self.DELEGABLE, REQUIRE)):
            requested = Rights.read_only(Resource("a"), Resource("z"))
            with access.child_scope(Principal("child"), requested) as child:
                assert child.principal == Principal("child")
                assert child.enforcement_mode is REQUIRE
                assert reads(child, "a")
                assert not reads(child, "z")
                assert grant_of(child).chain == ("root", "child")

    async def test_the_async_form_is_the_same(self, access):
        async with access.scope(root(access, self.DELEGABLE)):
            async with access.child_scope(Principal("child"), READ_A) as child:
                assert reads(child, "a")
            assert access.current_scope().principal == Principal("root")

    def test_a_child_cannot_regain_rights_or_delegate_further_unless_asked(self, access):
        with access.scope(root(access, self.DELEGABLE)):
            with access.child_scope(Principal("child"), READ_A), pytest.raises(ContextAccessDenied):
                access.child_scope(Principal("grandchild"), self.DELEGABLE).__enter__()
            with access.child_scope(Principal("child"), Rights.read_only(Resource("a"), delegable=True)):
                with access.child_scope(Principal("grandchild"), self.DELEGABLE) as grandchild:
                    assert reads(grandchild, "a")
                    assert not reads(grandchild, "b")

    @pytest.mark.parametrize("ambient", ["none", "not delegable", "revoked"])
    def test_without_a_delegable_scope_it_is_denied(self, access, ambient):
        scope = root(access, self.DELEGABLE if ambient == "revoked" else READ_A)
        block = access.child_scope(Principal("child"), READ_A)
        with pytest.raises(ContextAccessDenied) as denial:
            if ambient == "none":
                block.__enter__()
            else:
                with access.scope(scope):
                    if ambient == "revoked":
                        access.revoke(scope)
                    block.__enter__()
        error = denial.value
        assert error.operation is Operation.DELEGATE
        assert error.resource_kind == "BANKED_CONTEXT"
        assert error.resource_key == "<execution>"
        assert error.reason is DenialReason.MISSING_PERMISSION
        assert access.current_scope() is None


class TestAttenuation:
    def test_principal_and_mode_stay_and_the_ambient_scope_is_not_consulted(self, access):
        scope = root(access, Rights.all_on(Resource("a"), Resource("b")), REQUIRE)
        with access.scope(root(access, Rights())):
            narrowed = access.attenuate(scope, READ_A)
        assert narrowed.principal == scope.principal
        assert narrowed.enforcement_mode is REQUIRE
        assert reads(narrowed, "a")
        assert not reads(narrowed, "b")

    def test_t5_any_holder_may_narrow_and_hand_on_without_delegable(self, access):
        scope = root(access, Rights.all_on(Resource("a")))
        assert not grant_of(scope).delegable()
        assert reads(scope.attenuate(READ_A), "a")

    def test_t5_a_bound_scope_is_worthless_elsewhere(self, access):
        import threading

        scope = access.issue_root_scope(Principal("p"), READ_A, bound_to_context=True)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(grant_of(scope).is_live()))
        thread.start()
        thread.join()
        assert grant_of(scope).is_live()
        assert seen == [False]

    def test_delegable_is_intersected_as_well(self, access):
        scope = root(access, Rights.all_on(Resource("a"), delegable=True))
        assert not grant_of(scope.attenuate(READ_A)).delegable()
        assert grant_of(scope.attenuate(Rights.all_on(Resource("a"), delegable=True))).delegable()

    async def test_resolving_through_layers_flattens_them(self, access):
        layered = root(access, Rights.read_only(Boundary("w"), Resource("r"))).attenuate(
            Rights.read_only(Resource("r")), layered=True
        )
        narrowed = await access.attenuate_for_resources(layered, Rights.read_only(Resource("r")), lambda r, b: True)
        assert reads(narrowed, "r", "w")
        assert not reads(narrowed, "s", "w")

    def test_layered_attenuation_keeps_resources_of_a_boundary(self, access):
        scope = root(access, Rights.read_only(Boundary("w"))).attenuate(Rights.read_only(Resource("r")), layered=True)
        assert reads(scope, "r", "w")
        assert not reads(scope, "r", "v")


MODES = st.sampled_from(list(EnforcementMode))
NAMES = st.frozensets(st.sampled_from("abcd"), max_size=4)


@given(st.lists(st.tuples(NAMES, MODES, st.booleans(), st.booleans()), min_size=1, max_size=6))
def test_t7_rights_never_grow_and_the_mode_never_relaxes(steps):
    access = ContextAccess()
    installed = []
    allowed, strict = set("abcd"), False
    for number, (names, mode, delegable, as_child) in enumerate(steps):
        rights = Rights.read_only(*[Resource(name) for name in names], delegable=delegable)
        block = (
            access.child_scope(Principal(f"c{number}"), rights)
            if as_child and number
            else access.scope(access.issue_root_scope(Principal(f"p{number}"), rights, mode))
        )
        try:
            scope = block.__enter__()
        except ContextAccessDenied:
            continue
        installed.append(block)
        allowed &= names
        strict = strict or (mode is REQUIRE and not (as_child and number))
        assert {name for name in "abcd" if reads(scope, name)} == allowed
        assert (scope.enforcement_mode is REQUIRE) == strict
    for block in reversed(installed):
        block.__exit__(None, None, None)
    assert access.current_scope() is None


class TestForging:
    """Attack A: there is no way to a scope except through its authority."""

    def test_the_constructor_and_subclassing(self):
        with pytest.raises(ScopeForgeryError):
            Scope()
        with pytest.raises(ScopeForgeryError):
            Scope(Principal("root"), Rights())
        with pytest.raises(ScopeForgeryError):
            type("Wide", (Scope,), {})

    @pytest.mark.parametrize("forge", [copy.copy, copy.deepcopy, pickle.dumps, dataclasses.replace, dataclasses.asdict])
    def test_copies(self, access, forge):
        with pytest.raises((ScopeForgeryError, TypeError)):
            forge(root(access))

    @pytest.mark.parametrize("name", ["principal", "enforcement_mode", "_grant", "__class__", "extra"])
    def test_assignment(self, access, name):
        with pytest.raises((ScopeForgeryError, AttributeError)):
            setattr(root(access), name, Principal("admin"))
        with pytest.raises((ScopeForgeryError, AttributeError, TypeError)):
            delattr(root(access), name)

    def test_an_empty_shell_or_a_lookalike_installs_nothing(self, access):
        class Lookalike:
            principal, enforcement_mode, _grant = Principal("p"), LEGACY, None

        for forged in (object.__new__(Scope), Lookalike(), None, "scope", grant_of(root(access))):
            with pytest.raises(ScopeForgeryError):
                access.scope(forged).__enter__()
        assert access.current_scope() is None

    def test_the_door_is_not_exported(self):
        import libctx_core.access as package

        assert not {"scope_of", "grant_of", "Grant", "derive"} & set(package.__all__)
        assert scope_of is not None and Grant is not None

    def test_changing_the_callers_set_after_issue(self, access):
        selectors = {Resource("a")}
        scope = root(access, Rights(readable_resources=selectors))
        selectors.add(Resource("b"))
        assert not reads(scope, "b")


class TestShowing:
    def test_reprs_show_no_selectors(self, access):
        assert repr(root(access, Rights.all_on(Resource("secret")))) == "<Scope 'root' LEGACY_COMPATIBLE>"

    def test_the_grid_lists_operations_by_selector_and_escapes(self, access):
        scope = root(access, Rights.read_only(Resource("<script>"), Boundary("w")))
        text = scope_text(scope)
        assert "boundary w" in text
        assert "enumerate" in text
        html = scope._repr_html_()
        assert "<script>" not in html
        assert "&lt;script&gt;" in html
