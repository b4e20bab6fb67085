"""The portal: asynchronous parts behind synchronous calls."""

import asyncio
import contextvars
import subprocess
import sys
import threading

import pytest

from libctx_core.concurrency import Portal

seen = contextvars.ContextVar("seen", default="nothing")


async def look() -> tuple[str, str]:
    await asyncio.sleep(0)
    return seen.get(), threading.current_thread().name


def test_a_call_runs_under_the_callers_context_on_one_thread():
    portal = Portal()
    seen.set("mine")
    assert portal.call(look) == portal.call(look) == ("mine", "libctx-portal")
    portal.close()
    portal.close()
    assert portal.call(look)[0] == "mine"
    portal.close()


async def test_it_works_inside_a_running_loop():
    portal = Portal()
    assert portal.call(look)[1] == "libctx-portal"
    portal.close()


def test_what_it_runs_may_call_synchronously_again():
    portal = Portal()

    async def outer() -> tuple[str, str]:
        return portal.call(look)

    assert portal.call(outer)[1] == "libctx-portal"
    portal.close()


def test_errors_reach_the_caller():
    async def fail() -> None:
        raise LookupError("no")

    with pytest.raises(LookupError):
        Portal().call(fail)


def test_many_threads_share_it():
    portal, found = Portal(), []
    threads = [threading.Thread(target=lambda: found.append(portal.call(look))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    portal.close()


def test_a_portal_that_is_never_closed_does_not_keep_the_interpreter():
    code = "from libctx_core.concurrency import Portal\nasync def f(): return 1\np = Portal()\nprint(p.call(f))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True, text=True)
    assert done.stdout == "1\n"
