"""Resolvers that lie, fail, hang, or are cancelled while they are asked."""

# ruff: noqa: SIM117 - nesting is what these tests are about

import asyncio
import concurrent.futures

import pytest

from libctx_core.access import Boundary, Operation, Principal, Resource, Rights
from libctx_core.access.scope import grant_of

WORKSPACE = Rights.read_only(Boundary("w"), delegable=True)
WANTED = Rights.read_only(Resource("r"))


def reads(scope, resource="r", boundary="w"):
    return grant_of(scope).allows(Operation.READ, resource, boundary)


class Directory:
    def __init__(self, *pairs):
        self.pairs = set(pairs)
        self.asked = []

    async def is_resource_in_boundary(self, resource, boundary):
        self.asked.append((resource, boundary))
        return (resource.id, boundary.id) in self.pairs


@pytest.fixture
def scope(access):
    return access.issue_root_scope(Principal("manager"), WORKSPACE)


async def test_a_contained_resource_is_kept(scope):
    directory = Directory(("r", "w"))
    narrowed = await scope.attenuate_for_resources(WANTED, directory)
    assert reads(narrowed)
    assert not reads(narrowed, "other")
    assert narrowed.principal == Principal("manager")


async def test_an_unknown_resource_is_omitted(scope):
    assert not reads(await scope.attenuate_for_resources(WANTED, Directory()))


async def test_t8_equal_selectors_are_not_asked_about_and_pairs_only_once(access):
    scope = access.issue_root_scope(Principal("m"), Rights.all_on(Boundary("w"), Boundary("v"), Resource("known")))
    directory = Directory()
    await scope.attenuate_for_resources(Rights.all_on(Resource("known"), Resource("r")), directory)
    assert directory.asked == [(Resource("r"), Boundary("v")), (Resource("r"), Boundary("w"))]


@pytest.mark.parametrize("answer", [1, "yes", [True], object(), None, 1.0])
async def test_t8_only_true_itself_grants(scope, answer):
    assert not reads(await scope.attenuate_for_resources(WANTED, lambda resource, boundary: answer))


async def test_t8_a_plain_function_may_return_a_coroutine(scope):
    async def later(value):
        await asyncio.sleep(0)
        return value

    assert reads(await scope.attenuate_for_resources(WANTED, lambda r, b: later(True)))
    assert not reads(await scope.attenuate_for_resources(WANTED, lambda r, b: later(1)))


async def test_boundaries_are_never_admitted_by_a_resolver(access):
    scope = access.issue_root_scope(Principal("m"), Rights.read_only(Boundary("w"), Resource("r")))
    narrowed = await scope.attenuate_for_resources(Rights.read_only(Boundary("v")), lambda r, b: True)
    assert not reads(narrowed, "r", "v")
    assert not reads(narrowed, "r", "w")


@pytest.mark.parametrize(
    "failure", [ValueError, TimeoutError, asyncio.TimeoutError, concurrent.futures.CancelledError, RecursionError]
)
@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_t9_a_failing_resolver_omits(scope, failure, colour):
    def fail(resource, boundary):
        raise failure

    async def afail(resource, boundary):
        raise failure

    assert not reads(await scope.attenuate_for_resources(WANTED, fail if colour == "sync" else afail))


@pytest.mark.parametrize("failure", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_t9_what_is_no_exception_passes_through(access, scope, failure):
    def fail(resource, boundary):
        raise failure

    with access.scope(scope), pytest.raises(failure):
        access.child_scope_for_resources(Principal("c"), WANTED, fail).__enter__()


@pytest.mark.parametrize("swallow", [False, True])
async def test_t9_a_cancelled_caller_stays_cancelled(access, scope, swallow):
    asked = asyncio.Event()

    async def slow(resource, boundary):
        asked.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if swallow:
                raise concurrent.futures.CancelledError from None
            raise

    async def delegate():
        async with access.scope(scope), access.child_scope_for_resources(Principal("c"), WANTED, slow):
            raise AssertionError("entered")

    task = asyncio.create_task(delegate())
    await asked.wait()
    task.cancel()
    with pytest.raises((asyncio.CancelledError, concurrent.futures.CancelledError)):
        await task
    assert access.current_scope() is None


@pytest.mark.parametrize("colour", ["sync", "async"])
async def test_t9_a_hanging_resolver_is_left_behind(access, scope, colour):
    import threading

    release = threading.Event()

    async def hang(resource, boundary):
        await asyncio.sleep(60)
        return True

    resolver = hang if colour == "async" else lambda r, b: release.wait(60)
    async with access.scope(scope):
        async with access.child_scope_for_resources(Principal("c"), WANTED, resolver, timeout=0.05) as child:
            assert not reads(child)
    release.set()


async def test_t10_a_rechecked_grant_ends_when_the_resource_moves(access, scope):
    directory = Directory(("r", "w"))
    async with access.scope(scope):
        async with access.child_scope_for_resources(Principal("c"), WANTED, directory, recheck=True) as child:
            assert reads(child, "r", "w")
            assert not reads(child, "r", "elsewhere")
            with access.scope(access.issue_root_scope(Principal("x"), WANTED)) as nested:
                assert reads(nested, "r", "w")
                assert not reads(nested, "r", "elsewhere")
        async with access.child_scope_for_resources(Principal("c"), WANTED, directory) as child:
            assert reads(child, "r", "elsewhere")


async def test_t11_the_scope_at_entry_counts(access, scope):
    wide = access.issue_root_scope(Principal("wide"), Rights.all_on(Resource("secret"), Boundary("w")))

    async def sneaky(resource, boundary):
        access.install(wide)
        return True

    async with access.scope(scope):
        requested = Rights.read_only(Resource("r"), Resource("secret"))
        async with access.child_scope_for_resources(Principal("c"), requested, sneaky) as child:
            assert child.principal == Principal("c")
            assert grant_of(child).chain == ("manager", "c")


def test_the_sync_form_asks_resolvers_that_answer_at_once(access, scope):
    async def later(resource, boundary):
        return True

    with access.scope(scope):
        with access.child_scope_for_resources(Principal("c"), WANTED, lambda r, b: True) as child:
            assert reads(child)
        with access.child_scope_for_resources(Principal("c"), WANTED, later) as child:
            assert not reads(child)
    with access.scope(scope), access.child_scope_for_resources(Principal("c"), WANTED, Directory(("r", "w"))) as child:
        assert not reads(child)


async def test_the_seeds_example_delegates_a_contained_page(access, scope):
    async with access.scope(scope):
        async with access.child_scope_for_resources(Principal("worker-1"), WANTED, Directory(("r", "w"))) as child:
            assert child.principal == Principal("worker-1")
            assert reads(child)
