"""Where a scope goes by itself, where it has to be carried, and where it must not leak to."""

# ruff: noqa: SIM117 - nesting is what these tests are about

import asyncio
import contextvars
import gc
import signal
import threading
import weakref
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

from libctx_core.access import (
    Authority,
    ContextAccess,
    ContextAccessDenied,
    DenialReason,
    Operation,
    Principal,
    Resource,
    Rights,
    UnscopedPolicy,
)
from libctx_core.errors import ScopeLeakError


@pytest.fixture
def scope(access):
    return access.issue_root_scope(Principal("p"), Rights.read_only(Resource("a")))


def in_thread(function):
    seen = []
    thread = threading.Thread(target=lambda: seen.append(function()))
    thread.start()
    thread.join()
    return seen[0]


class TestWhereItGoesByItself:
    async def test_tasks_groups_callbacks_and_to_thread(self, access, scope):
        async def look():
            await asyncio.sleep(0)
            return access.current_scope()

        with access.scope(scope):
            seen = [await look(), *await asyncio.gather(look(), look()), await asyncio.to_thread(access.current_scope)]
            task = asyncio.create_task(look())
            async with asyncio.TaskGroup() as group:
                grouped = group.create_task(look())
            called = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(lambda: called.set_result(access.current_scope()))
            seen += [grouped.result(), await called]
        seen.append(await task)
        assert seen == [scope] * len(seen)

    async def test_a_task_started_inside_keeps_the_scope_after_the_block(self, access, scope):
        ended = asyncio.Event()

        async def look():
            await ended.wait()
            return access.current_scope()

        with access.scope(scope):
            task = asyncio.create_task(look())
        ended.set()
        assert await task is scope

    def test_asyncio_run_inherits(self, access, scope):
        async def look():
            return access.current_scope()

        with access.scope(scope):
            assert asyncio.run(look()) is scope


class TestWhereItIsLost:
    """T13: a lost scope must meet a policy that denies."""

    async def test_threads_timers_and_executors_lose_it(self, access, scope):
        seen = []
        with access.scope(scope), ThreadPoolExecutor(1) as pool:
            seen.append(in_thread(access.current_scope))
            seen.append(pool.submit(access.current_scope).result())
            seen += pool.map(lambda _: access.current_scope(), [1])
            timer = threading.Timer(0, lambda: seen.append(access.current_scope()))
            timer.start()
            timer.join()
            seen.append(await asyncio.get_running_loop().run_in_executor(pool, access.current_scope))
        assert seen == [None] * 5

    def test_the_deny_policy_refuses_what_lost_its_scope(self, scope, access):
        authority = Authority(access, unscoped_policy=UnscopedPolicy.DENY)

        def act():
            try:
                authority.require(Operation.READ, "THREAD", "k", lambda: pytest.fail("looked up"))
            except ContextAccessDenied as denial:
                return denial.reason
            return None

        with access.scope(scope):
            assert in_thread(act) is DenialReason.UNSCOPED_EXECUTION

    def test_signal_handlers_finalizers_and_atexit_get_what_the_interrupted_code_has(self, access, scope):
        seen = []
        old = signal.signal(signal.SIGUSR1, lambda *_: seen.append(access.current_scope()))
        try:
            with access.scope(scope):
                signal.raise_signal(signal.SIGUSR1)
        finally:
            signal.signal(signal.SIGUSR1, old)

        class Dying:
            def __del__(self):
                seen.append(access.current_scope())

        dying = Dying()
        with access.scope(scope):
            del dying
            gc.collect()
        finalizer = weakref.finalize(scope, lambda: None)
        assert finalizer.alive
        assert seen == [scope, scope]


class TestCarrying:
    def test_propagate_binds_the_scope_of_the_moment(self, access, scope):
        with access.scope(scope):
            carried = access.propagate(access.current_scope)
        assert carried() is scope
        assert in_thread(carried) is scope
        assert access.current_scope() is None

    def test_propagate_without_a_scope_changes_nothing(self, access):
        def function():
            return 1

        assert access.propagate(function) is function

    async def test_coroutine_functions_stay_coroutine_functions(self, access, scope):
        async def look(value):
            await asyncio.sleep(0)
            return value, access.current_scope()

        with access.scope(scope):
            carried = access.propagate(look)
        assert asyncio.iscoroutinefunction(carried)
        assert await carried(3) == (3, scope)

    def test_a_carried_scope_is_narrowed_by_the_one_it_meets(self, access, scope):
        with access.scope(scope):
            carried = access.propagate(access.current_scope)
        other = access.issue_root_scope(Principal("other"), Rights.read_only(Resource("b")))
        with access.scope(other):
            effective = carried()
        assert effective.principal == Principal("other")

    async def test_an_executor_carries_the_submitters_scope(self, access, scope):
        with ThreadPoolExecutor(1) as pool:
            executor = access.executor(pool)
            outside = executor.submit(access.current_scope).result()
            with access.scope(scope):
                inside = executor.submit(access.current_scope).result()
                mapped = list(executor.map(lambda _: access.current_scope(), range(3)))
                looped = await asyncio.get_running_loop().run_in_executor(executor, access.current_scope)
            executor.shutdown()
        assert outside is None
        assert [inside, *mapped, looped] == [scope] * 5

    def test_no_scope_leaves_the_process(self, access, scope):
        with ProcessPoolExecutor(1) as pool, access.scope(scope):
            with pytest.raises(Exception, match=r"pickl|scopes come only"):
                pool.submit(repr, scope).result()


class TestGenerators:
    """T45 and T46."""

    def leaking(self, access, scope):
        with access.scope(scope):
            yield 1
            yield 2

    def test_a_plain_generator_leaks_and_leaving_it_elsewhere_widens_nothing(self, events, scope, access):
        generator = self.leaking(access, scope)
        next(generator)
        assert access.current_scope() is scope
        contextvars.copy_context().run(generator.close)
        assert access.current_scope() is scope
        assert [event.name for event in events] == ["access.leak"]
        access.install(None)

    def test_debugging_raises(self, scope):
        strict = ContextAccess(debug=True)
        outer = strict.scope(strict.issue_root_scope(Principal("a"), Rights()))
        inner = strict.scope(strict.issue_root_scope(Principal("b"), Rights()))
        outer.__enter__()
        inner.__enter__()
        with pytest.raises(ScopeLeakError):
            outer.__exit__(None, None, None)
        inner.__exit__(None, None, None)

    def test_exits_out_of_order_never_widen(self, access, events):
        narrow = access.issue_root_scope(Principal("n"), Rights())
        wide = access.issue_root_scope(Principal("w"), Rights.all_on(Resource("a")))
        outer, inner = access.scope(narrow), access.scope(wide)
        outer.__enter__()
        effective = inner.__enter__()
        outer.__exit__(None, None, None)
        assert access.current_scope() is effective
        inner.__exit__(None, None, None)
        assert access.current_scope() is narrow
        assert len(events) == 1
        access.install(None)

    def test_a_wrapped_iterator_keeps_its_scope_to_itself(self, access, scope):
        with access.scope(scope):
            steps = access.wrap_iter(access.current_scope() for _ in range(3))
        assert next(steps) is scope
        assert access.current_scope() is None
        leaking = access.wrap_iter(self.leaking(access, scope))
        assert next(leaking) == 1
        assert access.current_scope() is None
        leaking.close()
        assert list(steps) == [scope, scope]
        assert list(access.wrap_iter([1, 2])) == [1, 2]
        access.wrap_iter([]).close()

    async def test_a_wrapped_async_iterator_keeps_its_scope_to_itself(self, access, scope):
        async def stream():
            async with access.scope(scope):
                for number in range(3):
                    await asyncio.sleep(0)
                    yield number, access.current_scope()

        wrapped = access.wrap_aiter(stream())
        async for _, seen in wrapped:
            assert seen is scope
            assert access.current_scope() is None
            break
        await wrapped.aclose()
        assert access.current_scope() is None

    async def test_errors_and_cancellation_reach_the_wrapped_stream(self, access):
        log = []

        async def stream():
            try:
                yield 1
                await asyncio.sleep(60)
            finally:
                log.append("closed")

        wrapped = access.wrap_aiter(stream())
        assert await anext(wrapped) == 1
        task = asyncio.ensure_future(anext(wrapped))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == ["closed"]

        async def failing():
            raise KeyError
            yield

        with pytest.raises(KeyError):
            await anext(access.wrap_aiter(failing()))


async def test_a_thousand_interleaved_tasks_of_two_tenants_never_mix(access):
    tenants = {
        name: access.issue_root_scope(Principal(name), Rights.read_only(Resource(name))) for name in ("one", "two")
    }
    authority = Authority(access)
    from libctx_core.access import ResourceMetadata

    documents = {name: ResourceMetadata("THREAD", name, None) for name in tenants}
    crossed = 0

    async def work(number):
        nonlocal crossed
        own = "one" if number % 2 else "two"
        other = "two" if own == "one" else "one"
        async with access.scope(tenants[own]):
            for step in range(5):
                await asyncio.sleep(0 if step % 2 else 0.0001)
                authority.require(Operation.READ, "THREAD", own, documents[own])
                crossed += authority.allowed(Operation.READ, "THREAD", other, documents[other])
                crossed += access.current_scope().principal.id != own

    await asyncio.gather(*[work(number) for number in range(1000)])
    assert crossed == 0
