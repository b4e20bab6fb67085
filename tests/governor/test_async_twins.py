"""Async twins never block the loop, correlate concurrent turns, and finish what they store."""

import asyncio
import contextlib
import inspect
import time

from libctx_core import ContextGovernor, LibraryOfContext, LibraryView

NO_TWIN = {
    "key", "counter", "token_budget", "scoped", "open_context_governor", "token_counter", "open_reading_desk", "stats",
    "database", "index", "runtime", "embedder", "plugins", "authority", "namespace", "memories", "bank",
}  # fmt: skip


def test_every_operation_has_a_twin() -> None:
    for holder in (ContextGovernor, LibraryView):
        names = {name for name, value in inspect.getmembers(holder) if inspect.isfunction(value)}
        operations = {n for n in names if not n.startswith("_") and not n.startswith("a")} | ({"amend"} & names)
        missing = {name for name in operations - NO_TWIN if f"a{name}" not in names}
        assert not missing, holder


async def test_concurrent_turns_find_their_own_question(tmp_path) -> None:
    with LibraryOfContext(tmp_path / "a.sqlite", plugins=[]) as library:
        governor = library.open_context_governor("t", token_budget=4_000)

        async def turn(number: int) -> None:
            await governor.aprepare(f"question {number}", event_id=f"q{number}")
            await asyncio.sleep(0.001 * (number % 5))
            await governor.acommit(f"answer {number}", event_id=f"a{number}")

        await asyncio.gather(*(turn(number) for number in range(30)))
        events = [event async for event in governor.ahistory()]
        assert len(events) == 60
        assert {event.event_id: event.reply_to for event in events if event.role == "assistant"} == {
            f"a{number}": f"q{number}" for number in range(30)
        }


async def test_the_loop_goes_on_while_commits_wait_for_the_lock(tmp_path) -> None:
    with LibraryOfContext(tmp_path / "b.sqlite", plugins=[]) as library:
        governor = library.open_context_governor("t", token_budget=4_000)
        await governor.arecord("user", "first")

        def hold(connection) -> None:
            time.sleep(0.4)

        holding = asyncio.create_task(asyncio.to_thread(library.database.write, hold))
        await asyncio.sleep(0.05)
        commit = asyncio.create_task(governor.acommit("waits"))
        ticks = 0
        while not commit.done():
            await asyncio.sleep(0.01)
            ticks += 1
        await holding
        assert ticks >= 10


async def test_a_cancelled_commit_is_stored_whole(tmp_path) -> None:
    with LibraryOfContext(tmp_path / "c.sqlite", plugins=[]) as library:
        governor = library.open_context_governor("t", token_budget=4_000)
        await governor.arecord("user", "first")

        def hold(connection) -> None:
            time.sleep(0.2)

        holding = asyncio.create_task(asyncio.to_thread(library.database.write, hold))
        await asyncio.sleep(0.05)
        commit = asyncio.create_task(governor.acommit("kept", event_id="kept"))
        await asyncio.sleep(0.05)
        commit.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await commit
        await holding
        assert (await governor.aopen_event("kept")).content == "kept"
