"""T41: expiry, revocation, and clocks that jump."""

from datetime import UTC, datetime, timedelta

import pytest

from libctx_core.access import (
    Authority,
    ContextAccess,
    ContextAccessDenied,
    EnforcementMode,
    Operation,
    Principal,
    Resource,
    ResourceMetadata,
    Rights,
)
from libctx_core.access.scope import grant_of
from libctx_core.errors import InvalidInputError

RIGHTS = Rights.all_on(Resource("a"), delegable=True)
PAGE = ResourceMetadata("THREAD", "a")


class Clock:
    def __init__(self):
        self.monotonic, self.wall = 1000.0, 1_800_000_000.0

    def __call__(self):
        return self.monotonic, self.wall

    def after(self, seconds):
        return datetime.fromtimestamp(self.wall + seconds, UTC)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def access(clock):
    return ContextAccess(clock=clock)


def may_read(access, scope):
    with access.scope(scope):
        return Authority(access).allowed(Operation.READ, "THREAD", "k", PAGE)


def test_a_scope_expires(access, clock):
    scope = access.issue_root_scope(Principal("p"), RIGHTS, expires_at=clock.after(60))
    assert may_read(access, scope)
    clock.monotonic += 61
    clock.wall += 61
    assert not may_read(access, scope)


@pytest.mark.parametrize(("monotonic", "wall"), [(61, -3600), (0, 3600)])
def test_no_jump_of_a_clock_extends_it_and_once_over_is_over(access, clock, monotonic, wall):
    scope = access.issue_root_scope(Principal("p"), RIGHTS, expires_at=clock.after(60))
    clock.monotonic += monotonic
    clock.wall += wall
    assert not may_read(access, scope)
    clock.monotonic, clock.wall = 1000.0, 1_800_000_000.0
    assert not may_read(access, scope)


def test_an_expired_scope_denies_what_a_legacy_scope_would_share(access, clock):
    scope = access.issue_root_scope(Principal("p"), RIGHTS, expires_at=clock.after(-1))
    authority = Authority(access)
    with access.scope(scope):
        for call in (
            lambda: authority.require(Operation.READ, "THREAD", "k", None),
            lambda: authority.require_write("THREAD", "k", None),
            lambda: authority.require_create("THREAD", "k", PAGE),
            lambda: authority.selection(Operation.READ, "THREAD"),
            lambda: authority.require_enumeration("THREAD"),
        ):
            with pytest.raises(ContextAccessDenied):
                call()
        assert not authority.visible("THREAD", "k", None, lambda: pytest.fail("probed"))


def test_expiry_needs_a_time_zone(access):
    with pytest.raises(InvalidInputError):
        access.issue_root_scope(Principal("p"), RIGHTS, expires_at=datetime.now())  # noqa: DTZ005
    access.issue_root_scope(Principal("p"), RIGHTS, expires_at=datetime.now(UTC) + timedelta(days=1))


def test_revoking_a_root_ends_everything_derived_from_it(access):
    root = access.issue_root_scope(Principal("p"), RIGHTS)
    sibling = access.issue_root_scope(Principal("q"), RIGHTS, EnforcementMode.REQUIRE_ENROLLMENT)
    narrowed = root.attenuate(RIGHTS)
    with access.scope(root), access.child_scope(Principal("c"), RIGHTS) as child, access.scope(sibling) as nested:
        derived = [root, narrowed, child, nested]
        assert all(grant_of(scope).is_live() for scope in derived)
        access.revoke(root)
        assert not any(grant_of(scope).is_live() for scope in derived)
    assert grant_of(sibling).is_live()
    assert may_read(access, sibling)


def test_revoking_a_derived_scope_leaves_its_origin_alone(access):
    root = access.issue_root_scope(Principal("p"), RIGHTS)
    narrowed = root.attenuate(RIGHTS)
    other = root.attenuate(RIGHTS)
    access.revoke(narrowed)
    assert not may_read(access, narrowed)
    assert may_read(access, root)
    assert may_read(access, other)
    with access.scope(root), access.scope(other) as effective:
        access.revoke(effective)
    assert may_read(access, other)


def test_revocation_reaches_scopes_that_are_installed_already(access):
    root = access.issue_root_scope(Principal("p"), RIGHTS)
    authority = Authority(access)
    with access.scope(root):
        authority.require(Operation.READ, "THREAD", "k", PAGE)
        access.revoke(root)
        with pytest.raises(ContextAccessDenied):
            authority.require(Operation.READ, "THREAD", "k", PAGE)
